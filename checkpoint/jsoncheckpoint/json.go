package jsoncheckpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrMalformed says that a document cannot be read. A misread change would give a
	// file different contents, so reading is strict.
	ErrMalformed = fault.Named(fault.Damaged, "bad-json-checkpoint", "malformed JSON checkpoint")
	// ErrNotFound says that there is no such checkpoint.
	ErrNotFound = fault.Named(fault.NotFound, "json-checkpoint-not-found", "JSON checkpoint not found")
	// ErrChanged says that a checkpoint was changed by another writer in the meantime.
	ErrChanged = fault.Named(fault.Stale, "json-checkpoint-changed", "JSON checkpoint was changed meanwhile")
)

// Checkpoint is a state of the files that a conversation used.
type Checkpoint struct {
	Files []File
	// NonExistent are files that no longer existed.
	NonExistent []URI
	// NewFolders are folders that the conversation had created.
	NewFolders []URI
	// InlineDiffs are edits pending the user's decision.
	InlineDiffs []InlineDiff
	// RemovedDiffs are edits that are no longer pending; they are kept for reference.
	RemovedDiffs []InlineDiff
	// InlineNewFiles and InlineNewFolders were created by such edits.
	InlineNewFiles, InlineNewFolders []URI

	extra, inlineExtra fields // other fields of the document
}

// File is one file of a checkpoint.
type File struct {
	URI URI
	// Changes lead from V0 to the content.
	Changes []Change
	// NewlyCreated means that the conversation created the file; V0 is empty.
	NewlyCreated bool
	// Blob, if not zero, is the blob with the content of a file that lines cannot
	// represent, such as a binary one. There are no changes then.
	Blob blob.ID

	extra fields
}

// InlineDiff is an edit pending the user's decision.
type InlineDiff struct {
	URI URI
	// Original and New lead from V0 to the texts before and after the edit.
	Original, New []Change
	Generation    string
	CodeBlock     string
	// DecorationsOnly means that the file already has the text after the edit; the edit
	// is only shown.
	DecorationsOnly bool

	extra fields
}

// fields are the unknown fields of a JSON object.
type fields map[string]json.RawMessage

// take removes a field and decodes it. A missing field leaves v unchanged.
func (f fields) take(name string, v any) error {
	raw, ok := f[name]
	if !ok {
		return nil
	}
	delete(f, name)
	if err := json.Unmarshal(raw, v); err != nil {
		if errors.Is(err, ErrMalformed) {
			return fmt.Errorf("%s: %w", name, err)
		}
		return fmt.Errorf("%w: %s: %v", ErrMalformed, name, err)
	}
	return nil
}

// with returns an object of the unknown fields and the given ones.
func (f fields) with(known map[string]any) ([]byte, error) {
	out := make(map[string]any, len(f)+len(known))
	for k, v := range f {
		out[k] = v
	}
	maps.Copy(out, known)
	return json.Marshal(out)
}

func object(data []byte) (fields, error) {
	var f fields
	if err := json.Unmarshal(data, &f); err != nil || f == nil {
		return nil, fmt.Errorf("%w: not an object", ErrMalformed)
	}
	return f, nil
}

// UnmarshalJSON reads a document.
func (c *Checkpoint) UnmarshalJSON(data []byte) error {
	f, err := object(data)
	if err != nil {
		return err
	}
	*c = Checkpoint{}
	inline := fields{}
	err = errors.Join(f.take("files", &c.Files), f.take("nonExistentFiles", &c.NonExistent),
		f.take("newlyCreatedFolders", &c.NewFolders), f.take("activeInlineDiffs", &c.InlineDiffs),
		f.take("removedInlineDiffs", &c.RemovedDiffs), f.take("inlineDiffNewlyCreatedResources", &inline))
	if err != nil {
		return err
	}
	err = errors.Join(inline.take("files", &c.InlineNewFiles), inline.take("folders", &c.InlineNewFolders))
	c.extra, c.inlineExtra = f, inline
	return err
}

// MarshalJSON writes the document, with all fields that were read.
func (c *Checkpoint) MarshalJSON() ([]byte, error) {
	inline, err := c.inlineExtra.with(map[string]any{"files": list(c.InlineNewFiles), "folders": folders(c.InlineNewFolders)})
	if err != nil {
		return nil, err
	}
	known := map[string]any{
		"files": list(c.Files), "nonExistentFiles": folders(c.NonExistent), "newlyCreatedFolders": folders(c.NewFolders),
		"activeInlineDiffs": list(c.InlineDiffs), "inlineDiffNewlyCreatedResources": json.RawMessage(inline),
	}
	if len(c.RemovedDiffs) > 0 {
		known["removedInlineDiffs"] = c.RemovedDiffs
	}
	return c.extra.with(known)
}

// UnmarshalJSON reads a file.
func (f *File) UnmarshalJSON(data []byte) error {
	o, err := object(data)
	if err != nil {
		return err
	}
	*f = File{}
	id := ""
	err = errors.Join(o.take("uri", &f.URI), o.take("originalModelDiffWrtV0", &f.Changes), o.take("isNewlyCreated", &f.NewlyCreated), o.take("blobId", &id))
	if err == nil && id != "" {
		if f.Blob, err = blob.ParseID(id); err != nil {
			err = fmt.Errorf("%w: blobId: %v", ErrMalformed, err)
		}
	}
	if err == nil && f.URI.text == "" {
		err = fmt.Errorf("%w: a file without URI", ErrMalformed)
	}
	f.extra = o
	return errors.Join(err, checkChanges(f.Changes))
}

// MarshalJSON writes a file.
func (f File) MarshalJSON() ([]byte, error) {
	known := map[string]any{"uri": f.URI, "originalModelDiffWrtV0": list(f.Changes)}
	if f.NewlyCreated {
		known["isNewlyCreated"] = true
	}
	if !f.Blob.IsZero() {
		known["blobId"] = f.Blob.String()
	}
	return f.extra.with(known)
}

// UnmarshalJSON reads an edit.
func (d *InlineDiff) UnmarshalJSON(data []byte) error {
	o, err := object(data)
	if err != nil {
		return err
	}
	*d = InlineDiff{}
	err = errors.Join(o.take("uri", &d.URI), o.take("originalTextDiffWrtV0", &d.Original), o.take("newTextDiffWrtV0", &d.New),
		o.take("generationUUID", &d.Generation), o.take("codeBlockId", &d.CodeBlock), o.take("isDecorationsOnly", &d.DecorationsOnly))
	d.extra = o
	return errors.Join(err, checkChanges(d.Original), checkChanges(d.New))
}

// MarshalJSON writes an edit.
func (d InlineDiff) MarshalJSON() ([]byte, error) {
	known := map[string]any{
		"uri": d.URI, "originalTextDiffWrtV0": list(d.Original), "newTextDiffWrtV0": list(d.New), "generationUUID": d.Generation,
	}
	if d.CodeBlock != "" {
		known["codeBlockId"] = d.CodeBlock
	}
	if d.DecorationsOnly {
		known["isDecorationsOnly"] = true
	}
	return d.extra.with(known)
}

// list turns nil into an empty list, which readers of the format expect.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func folders(uris []URI) []folderURI {
	out := make([]folderURI, len(uris))
	for i, u := range uris {
		out[i] = folderURI{u}
	}
	return out
}
