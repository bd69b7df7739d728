package jsoncheckpoint

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// Original is V0 of a file: what it was when the conversation first met it.
type Original struct {
	Content string
	// NewlyCreated says that there was no file; Content is empty.
	NewlyCreated bool
}

// Create makes a checkpoint of the files that a conversation met. read returns
// the content of a file now, and false if there is none.
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
			return nil, fmt.Errorf("describe %s: %w: lines cannot tell its content", uri, ErrMalformed)
		}
		cp.Files = append(cp.Files, File{URI: URI{text: uri}, Changes: changes, NewlyCreated: v0.NewlyCreated})
	}
	return cp, nil
}

// Target is what going back to a checkpoint means.
type Target struct {
	// Files are the contents to bring back, by URI.
	Files map[string]string
	// Absent are the files that must not exist, sorted.
	Absent []string
	// Folders are the folders that go if nothing is left in them, sorted.
	Folders []string
	// Made are the folders that the conversation had made by then, sorted.
	Made []string
}

// Restore says what going back to a checkpoint means, given the checkpoints of
// the messages after it, oldest first, and V0 of each file. The files are those
// of the chosen checkpoint and, for every later one, those that none before it
// mentions: there the first mention tells what the file was.
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
			if i > 0 && f.NewlyCreated { // it came after the chosen checkpoint
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

// madeFolders returns the folders that were made by the time of some checkpoints,
// by identity.
func madeFolders(cps ...*Checkpoint) map[string]string {
	made := map[string]string{}
	for _, cp := range cps {
		for _, u := range append(slices.Clone(cp.NewFolders), cp.InlineNewFolders...) {
			made[identity(u.String())] = u.String()
		}
	}
	return made
}

// laterFolders returns the folders that were made after the chosen checkpoint.
func laterFolders(chosen *Checkpoint, later []*Checkpoint) map[string]string {
	made := madeFolders(later...)
	for folder := range madeFolders(chosen) {
		delete(made, folder)
	}
	return made
}

// InlineTexts returns the texts before and after an edit that awaits a decision.
func (d *InlineDiff) InlineTexts(v0 string) (before, after string) {
	from := split(v0)
	before = text{Apply(from.lines, d.Original), from.eol}.String()
	after = text{Apply(from.lines, d.New), from.eol}.String()
	return before, after
}
