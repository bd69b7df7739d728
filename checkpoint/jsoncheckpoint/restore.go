package jsoncheckpoint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stet-dev/stet/blob"
)

// Original is V0 of a file: its content when the conversation first used it.
type Original struct {
	Content string
	// NewlyCreated means that the file did not exist; Content is empty.
	NewlyCreated bool
}

// Target is the result of going back to a checkpoint.
type Target struct {
	// Files are the contents to restore, by URI.
	Files map[string]string
	// Blobs are the contents of files that are kept by reference, by URI.
	Blobs map[string]blob.ID
	// Absent are the files that must not exist, sorted.
	Absent []string
	// Folders are the folders to remove if they are empty, sorted.
	Folders []string
	// Made are the folders that the conversation had created by then, sorted.
	Made []string
	// Diffs are the edits that were pending then, to be shown again.
	Diffs []InlineDiff
}

// Restore computes the result of going back to a checkpoint, given the checkpoints of
// the later messages, oldest first, and V0 of each file. The files are those of the
// chosen checkpoint and those first mentioned by a later one: the first mention has
// the content at that time.
func Restore(chosen *Checkpoint, later []*Checkpoint, v0 map[string]Original) (*Target, error) {
	t := &Target{Files: map[string]string{}, Diffs: append([]InlineDiff(nil), chosen.InlineDiffs...)}
	originals := make(map[string]Original, len(v0))
	for uri, o := range v0 {
		originals[identity(uri)] = o
	}
	absent, known := map[string]bool{}, map[string]bool{} // known by identity
	for i, cp := range append([]*Checkpoint{chosen}, later...) {
		var mentioned []string
		for j := range cp.Files {
			f := &cp.Files[j]
			uri := f.URI.String()
			mentioned = append(mentioned, identity(uri))
			if known[identity(uri)] {
				continue
			}
			if i > 0 && f.NewlyCreated { // created after the chosen checkpoint
				absent[uri] = true
				continue
			}
			if !f.Blob.IsZero() {
				if t.Blobs == nil {
					t.Blobs = map[string]blob.ID{}
				}
				t.Blobs[uri] = f.Blob
				continue
			}
			original, ok := originals[identity(uri)]
			if !ok && !f.NewlyCreated {
				return nil, fmt.Errorf("%w: no original content of %s", ErrNotFound, uri)
			}
			t.Files[uri] = f.Text(original.Content)
		}
		for _, u := range cp.NonExistent {
			mentioned = append(mentioned, identity(u.String()))
			if !known[identity(u.String())] {
				absent[u.String()] = true
			}
		}
		for _, u := range cp.InlineNewFiles {
			uri := u.String()
			if known[identity(uri)] || slices.Contains(mentioned, identity(uri)) {
				continue
			}
			mentioned = append(mentioned, identity(uri))
			if i > 0 { // created by an edit after the chosen checkpoint
				absent[uri] = true
			} else if content, ok := cp.pending(identity(uri)); ok {
				t.Files[uri] = content
			}
		}
		for _, file := range mentioned {
			known[file] = true
		}
	}
	t.Absent = slices.Sorted(maps.Keys(absent))
	t.Made = slices.Sorted(maps.Values(madeFolders(chosen)))
	t.Folders = slices.Sorted(maps.Values(laterFolders(chosen, later)))
	return t, nil
}

// pending returns the text that a pending edit gives to a file that it created.
func (c *Checkpoint) pending(file string) (string, bool) {
	for i := range c.InlineDiffs {
		if d := &c.InlineDiffs[i]; identity(d.URI.String()) == file {
			_, after := d.InlineTexts("")
			return after, true
		}
	}
	return "", false
}

// madeFolders returns the folders created by the time of some checkpoints, by
// identity.
func madeFolders(cps ...*Checkpoint) map[string]string {
	made := map[string]string{}
	for _, cp := range cps {
		for _, u := range append(slices.Clone(cp.NewFolders), cp.InlineNewFolders...) {
			made[identity(u.String())] = u.String()
		}
	}
	return made
}

// laterFolders returns the folders created after the chosen checkpoint.
func laterFolders(chosen *Checkpoint, later []*Checkpoint) map[string]string {
	made := madeFolders(later...)
	for folder := range madeFolders(chosen) {
		delete(made, folder)
	}
	return made
}

// InlineTexts returns the texts before and after a pending edit.
func (d *InlineDiff) InlineTexts(v0 string) (before, after string) {
	from := split(v0)
	before = text{Apply(from.lines, d.Original), from.eol}.String()
	after = text{Apply(from.lines, d.New), from.eol}.String()
	return before, after
}

// Later joins a checkpoint with the later ones that rest stands for, so that Restore
// can treat both as one: it has the first mention of each file. A nil rest stands for
// none. The result of Restore with a list of later checkpoints is the same as with
// the list joined from its end.
func Later(cp, rest *Checkpoint) *Checkpoint {
	out := &Checkpoint{
		Files: slices.Clone(cp.Files), NonExistent: slices.Clone(cp.NonExistent), NewFolders: slices.Clone(cp.NewFolders),
		InlineNewFiles: slices.Clone(cp.InlineNewFiles), InlineNewFolders: slices.Clone(cp.InlineNewFolders),
	}
	if rest == nil {
		return out
	}
	known := map[string]bool{}
	for i := range cp.Files {
		known[identity(cp.Files[i].URI.String())] = true
	}
	for _, u := range append(slices.Clone(cp.NonExistent), cp.InlineNewFiles...) {
		known[identity(u.String())] = true
	}
	for i := range rest.Files {
		if f := rest.Files[i]; !known[identity(f.URI.String())] {
			out.Files = append(out.Files, f)
		}
	}
	fresh := func(to, from []URI) []URI {
		for _, u := range from {
			if !known[identity(u.String())] {
				to = append(to, u)
			}
		}
		return to
	}
	out.NonExistent = fresh(out.NonExistent, rest.NonExistent)
	out.InlineNewFiles = fresh(out.InlineNewFiles, rest.InlineNewFiles)
	out.NewFolders = append(out.NewFolders, rest.NewFolders...)
	out.InlineNewFolders = append(out.InlineNewFolders, rest.InlineNewFolders...)
	return out
}

// URIs returns the files and folders that a checkpoint names.
func (c *Checkpoint) URIs() []URI {
	var out []URI
	for i := range c.Files {
		out = append(out, c.Files[i].URI)
	}
	return slices.Concat(out, c.NonExistent, c.NewFolders, c.InlineNewFiles, c.InlineNewFolders)
}
