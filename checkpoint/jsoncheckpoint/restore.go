package jsoncheckpoint

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// Original is V0 of a file: its content when the conversation first used it.
type Original struct {
	Content string
	// NewlyCreated means that the file did not exist; Content is empty.
	NewlyCreated bool
}

// Create makes a checkpoint of the files that a conversation used. read returns the
// current content of a file, and false if it does not exist.
func Create(originals map[string]Original, read func(uri string) (content string, exists bool, err error)) (*Checkpoint, error) {
	cp := &Checkpoint{}
	for _, uri := range slices.Sorted(maps.Keys(originals)) {
		v0 := originals[uri]
		content, exists, err := read(uri)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", uri, err)
		}
		if !exists {
			cp.NonExistent = append(cp.NonExistent, URI{text: uri})
			continue
		}
		if v0.NewlyCreated {
			v0.Content = ""
		}
		changes, ok := changesTo(v0.Content, content)
		if !ok || !utf8.ValidString(content) {
			return nil, fmt.Errorf("describe %s: %w: lines cannot represent its content", uri, ErrMalformed)
		}
		cp.Files = append(cp.Files, File{URI: URI{text: uri}, Changes: changes, NewlyCreated: v0.NewlyCreated})
	}
	return cp, nil
}

// Target is the result of going back to a checkpoint.
type Target struct {
	// Files are the contents to restore, by URI.
	Files map[string]string
	// Absent are the files that must not exist, sorted.
	Absent []string
	// Folders are the folders to remove if they are empty, sorted.
	Folders []string
	// Made are the folders that the conversation had created by then, sorted.
	Made []string
}

// Restore computes the result of going back to a checkpoint, given the checkpoints of
// the later messages, oldest first, and V0 of each file. The files are those of the
// chosen checkpoint and those first mentioned by a later one: the first mention has
// the content at that time.
func Restore(chosen *Checkpoint, later []*Checkpoint, v0 map[string]Original) (*Target, error) {
	t := &Target{Files: map[string]string{}}
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
		for _, file := range mentioned {
			known[file] = true
		}
	}
	t.Absent = slices.Sorted(maps.Keys(absent))
	t.Made = slices.Sorted(maps.Values(madeFolders(chosen)))
	t.Folders = slices.Sorted(maps.Values(laterFolders(chosen, later)))
	return t, nil
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
