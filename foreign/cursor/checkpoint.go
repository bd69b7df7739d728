package cursor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
)

// Checkpoint is a workspace checkpoint in the editor's JSON form: for each file,
// what differs from the first known content, which is called V0.
type Checkpoint struct {
	ID    string
	Files []CheckpointFile
	// Gone are the URIs of files that did not exist.
	Gone []string
	// NewFolders are the URIs of folders that the conversation had made.
	NewFolders []string
	// InlineDiffs are edits that awaited the user's decision.
	InlineDiffs []InlineDiff
	// InlineNewFiles and InlineNewFolders were made by such edits.
	InlineNewFiles, InlineNewFolders []string
	// Raw is the row as it is stored.
	Raw json.RawMessage
}

// CheckpointFile is one file of a checkpoint.
type CheckpointFile struct {
	URI          string
	Changes      []Change
	NewlyCreated bool
}

// InlineDiff is an edit that awaited the user's decision.
type InlineDiff struct {
	URI              string
	Original, New    []Change
	Generation, Code string
}

// Change replaces the lines Start to End-1 of V0, counted from 1, by Lines. An
// empty range inserts before the line Start.
type Change struct {
	Start, End int
	Lines      []string
}

// Apply returns the lines of V0 with the changes made. Changes past the end
// append.
func Apply(v0 []string, changes []Change) []string {
	out := make([]string, 0, len(v0))
	at := 1 // the line of V0 that comes next
	for _, c := range changes {
		start := max(c.Start, at)
		for ; at < start && at <= len(v0); at++ {
			out = append(out, v0[at-1])
		}
		out = append(out, c.Lines...)
		at = max(at, min(c.End, len(v0)+1))
	}
	if at <= len(v0) {
		out = append(out, v0[at-1:]...)
	}
	return out
}

// Checkpoint reads a workspace checkpoint of a conversation, from its row or
// from inside a conversation's old row.
func (s *Store) Checkpoint(ctx context.Context, conv *Conversation, id string) (*Checkpoint, error) {
	raw, err := s.checkpointRow(ctx, conv, id)
	if err != nil {
		return nil, err
	}
	return decodeCheckpoint(id, raw)
}

// checkpointRow returns a checkpoint as it is stored.
func (s *Store) checkpointRow(ctx context.Context, conv *Conversation, id string) ([]byte, error) {
	if raw, ok := conv.inlineCheckpoints[id]; ok {
		return raw, nil
	}
	v, err := s.Value(ctx, checkpointPrefix+conv.ID+":"+id)
	if err != nil {
		return nil, fmt.Errorf("read checkpoint %s: %w", id, err)
	}
	return v.Data, nil
}

// Checkpoints gives the ids of a conversation's workspace checkpoints: those in
// rows in key order, then those inside its old row.
func (s *Store) Checkpoints(ctx context.Context, conv *Conversation) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		prefix := checkpointPrefix + conv.ID + ":"
		for row, err := range s.scan(ctx, prefixRange(prefix), scanSizes) {
			if err != nil {
				yield("", err)
				return
			}
			if !row.value.Absent() && !yield(row.key[len(prefix):], nil) {
				return
			}
		}
		for _, id := range sortedKeys(conv.inlineCheckpoints) {
			if !yield(id, nil) {
				return
			}
		}
	}
}

func decodeCheckpoint(id string, raw []byte) (*Checkpoint, error) {
	doc, err := parseDocument(raw)
	if err != nil {
		return nil, fmt.Errorf("read checkpoint %s: %w", id, err)
	}
	cp := &Checkpoint{ID: id, Raw: raw}
	for i, item := range doc.list("files") {
		d, err := parseDocument(item)
		if err != nil || uriOf(d["uri"]) == "" {
			return nil, fmt.Errorf("read checkpoint %s: %w: file %d has no URI", id, ErrMalformed, i)
		}
		changes, err := decodeChanges(d["originalModelDiffWrtV0"])
		if err != nil {
			return nil, fmt.Errorf("read checkpoint %s: file %d: %w", id, i, err)
		}
		cp.Files = append(cp.Files, CheckpointFile{uriOf(d["uri"]), changes, d.flag("isNewlyCreated")})
	}
	cp.Gone = uris(doc.list("nonExistentFiles"))
	cp.NewFolders = uris(doc.list("newlyCreatedFolders"))
	inline := doc.document("inlineDiffNewlyCreatedResources")
	cp.InlineNewFiles, cp.InlineNewFolders = uris(inline.list("files")), uris(inline.list("folders"))
	for i, item := range doc.list("activeInlineDiffs") {
		diff, err := decodeInlineDiff(item)
		if err != nil {
			return nil, fmt.Errorf("read checkpoint %s: inline diff %d: %w", id, i, err)
		}
		cp.InlineDiffs = append(cp.InlineDiffs, diff)
	}
	return cp, nil
}

func decodeInlineDiff(item json.RawMessage) (InlineDiff, error) {
	d, err := parseDocument(item)
	if err != nil {
		return InlineDiff{}, err
	}
	diff := InlineDiff{URI: uriOf(d["uri"]), Generation: d.text("generationUUID"), Code: d.text("codeBlockId")}
	if diff.Original, err = decodeChanges(d["originalTextDiffWrtV0"]); err != nil {
		return InlineDiff{}, err
	}
	diff.New, err = decodeChanges(d["newTextDiffWrtV0"])
	return diff, err
}

// decodeChanges is strict: a change that is misread would give a file with
// other contents.
func decodeChanges(raw json.RawMessage) ([]Change, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil, nil
	}
	var items []struct {
		Original *struct {
			Start int `json:"startLineNumber"`
			End   int `json:"endLineNumberExclusive"`
		} `json:"original"`
		Modified []string `json:"modified"`
	}
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("%w: changes: %w", ErrMalformed, err)
	}
	out := make([]Change, 0, len(items))
	next := 1
	for i, it := range items {
		if it.Original == nil || it.Original.Start < next || it.Original.End < it.Original.Start {
			return nil, fmt.Errorf("%w: change %d is out of order or has no range", ErrMalformed, i)
		}
		next = it.Original.End
		out = append(out, Change{it.Original.Start, it.Original.End, it.Modified})
	}
	return out, nil
}

// uriOf reads a URI: text, an object of the editor, or an entry around one.
func uriOf(raw json.RawMessage) string { return uriAt(raw, 1) }

func uriAt(raw json.RawMessage, depth int) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	d, err := parseDocument(raw)
	if err != nil {
		return ""
	}
	if external := d.text("external"); external != "" {
		return external
	}
	if inner, ok := d["uri"]; ok && depth > 0 {
		return uriAt(inner, depth-1)
	}
	if path := d.text("path"); path != "" {
		scheme := d.text("scheme")
		if scheme == "" {
			scheme = "file"
		}
		return scheme + "://" + d.text("authority") + path
	}
	return ""
}

func uris(items []json.RawMessage) []string {
	var out []string
	for _, item := range items {
		if u := uriOf(item); u != "" {
			out = append(out, u)
		}
	}
	return out
}
