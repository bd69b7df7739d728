package jsoncheckpoint

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/stet-dev/stet/blob"
)

// Scene is what a checkpoint is made of. Only Originals and Read are required.
type Scene struct {
	// Originals are V0 of the files that the conversation used, by URI.
	Originals map[string]Original
	// Read returns the current content of a file, and false if it does not exist.
	Read func(uri string) (content string, exists bool, err error)
	// Keep stores content that lines cannot represent, such as a binary file, or that is
	// longer than MaxText. Without it such files are left out of the checkpoint and
	// reported.
	Keep func(content string) (blob.ID, error)
	// MaxText is the longest content that is described by lines; 0 means any.
	MaxText int
	// NewFolders are the URIs of folders that the conversation has created.
	NewFolders []string
	// Edits are the edits that are, or were, pending the user's decision.
	Edits []Edit
}

// Edit is an edit of a file that is shown to the user.
type Edit struct {
	URI string
	// Before and After are the texts of the file without and with the edit.
	Before, After string
	// Generation and CodeBlock name the edit. Create makes up a generation if it is
	// empty.
	Generation, CodeBlock string
	// Removed means that the edit is no longer pending; it is kept for reference.
	Removed bool
	// DecorationsOnly means that the file already has the text after the edit.
	DecorationsOnly bool
	// NewFile and NewFolders are what the edit has created.
	NewFile    bool
	NewFolders []string
}

// Create makes a checkpoint of the files that a conversation used, the folders that
// it created and the edits that wait for a decision. It returns the URIs of the files
// that the form cannot express if there is no Keep to store them; one such file does
// not fail the others.
func Create(scene Scene) (cp *Checkpoint, unsaid []string, err error) {
	cp = &Checkpoint{NewFolders: uris(scene.NewFolders)}
	for _, uri := range slices.Sorted(maps.Keys(scene.Originals)) {
		content, exists, err := scene.Read(uri)
		if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", uri, err)
		}
		if !exists {
			cp.NonExistent = append(cp.NonExistent, URI{text: uri})
			continue
		}
		f, said, err := scene.file(uri, content)
		if err != nil {
			return nil, nil, fmt.Errorf("keep %s: %w", uri, err)
		}
		if !said {
			unsaid = append(unsaid, uri)
			continue
		}
		cp.Files = append(cp.Files, f)
	}
	for _, e := range scene.Edits {
		if !cp.addEdit(scene.Originals[e.URI], e) {
			unsaid = append(unsaid, e.URI)
		}
	}
	return cp, unsaid, nil
}

// file describes a file by its changes, or refers to its content.
func (s *Scene) file(uri, content string) (f File, said bool, err error) {
	v0 := s.Originals[uri]
	f = File{URI: URI{text: uri}, NewlyCreated: v0.NewlyCreated}
	if s.MaxText == 0 || len(content) <= s.MaxText {
		if changes, ok := changesTo(v0.text(), content); ok && utf8.ValidString(content) {
			f.Changes = changes
			return f, true, nil
		}
	}
	if s.Keep == nil {
		return File{}, false, nil
	}
	f.Blob, err = s.Keep(content)
	return f, err == nil, err
}

// text returns V0, which is empty for a file that the conversation created.
func (o Original) text() string {
	if o.NewlyCreated {
		return ""
	}
	return o.Content
}

// addEdit reports whether lines can express the edit.
func (c *Checkpoint) addEdit(v0 Original, e Edit) bool {
	d := InlineDiff{URI: URI{text: e.URI}, Generation: e.Generation, CodeBlock: e.CodeBlock, DecorationsOnly: e.DecorationsOnly}
	if d.Generation == "" {
		d.Generation = uuid.NewString()
	}
	var before, after bool
	d.Original, before = changesTo(v0.text(), e.Before)
	d.New, after = changesTo(v0.text(), e.After)
	if !before || !after || !utf8.ValidString(e.Before) || !utf8.ValidString(e.After) {
		return false
	}
	if e.Removed {
		c.RemovedDiffs = append(c.RemovedDiffs, d)
		return true
	}
	c.InlineDiffs = append(c.InlineDiffs, d)
	if e.NewFile {
		c.InlineNewFiles = append(c.InlineNewFiles, d.URI)
	}
	c.InlineNewFolders = append(c.InlineNewFolders, uris(e.NewFolders)...)
	return true
}

func uris(texts []string) []URI {
	var out []URI
	for _, text := range texts {
		out = append(out, URI{text: text})
	}
	return out
}
