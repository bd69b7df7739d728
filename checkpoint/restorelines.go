package checkpoint

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

// Lines names lines of one file that a rewind puts back, as a diff shows them.
type Lines struct {
	Path string
	// From is a reference to the version that has other lines in their place; "@" or
	// empty is the present. The version that has the lines is RewindRequest.To.
	From   string
	Ranges []LineRange
}

// LineRange names lines of the version to restore and the lines of the other version
// that they replace. Lines are counted from 1; an empty range names the line before
// it, as in the headers of a diff.
type LineRange struct{ Line, Lines, FromLine, FromLines int }

// index returns the place of a range in a list of lines.
func index(first, count int) (from, to int) {
	if count == 0 {
		return first, first
	}
	return first - 1, first - 1 + count
}

// PutBack returns the text of from with the lines of to in some ranges. It fails if a
// range is not in both texts, or if two ranges overlap.
func PutBack(to, from []byte, ranges []LineRange) ([]byte, error) {
	with, in := splitLines(to), splitLines(from)
	ranges = slices.SortedFunc(slices.Values(ranges), func(a, b LineRange) int { return a.FromLine - b.FromLine })
	var out bytes.Buffer
	pos := 0 // in in
	for _, r := range ranges {
		start, end := index(r.Line, r.Lines)
		first, last := index(r.FromLine, r.FromLines)
		if r.Lines < 0 || r.FromLines < 0 || start < 0 || end > len(with) || first < pos || last > len(in) {
			return nil, fmt.Errorf("%w: lines %d+%d and %d+%d are not in both versions", ErrBadRef, r.Line, r.Lines, r.FromLine, r.FromLines)
		}
		writeLines(&out, in[pos:first])
		writeLines(&out, with[start:end])
		pos = last
	}
	writeLines(&out, in[pos:])
	return out.Bytes(), nil
}

// planLines plans to put lines back. Changes of the file after From stay, as far as
// they merge.
func (w *Workspace) planLines(ctx context.Context, st *state, req RewindRequest) (*job, error) {
	if req.Choice == "" {
		req.Choice = Merge
	}
	to, err := w.Resolve(ctx, req.To, req.Conversation)
	if err != nil {
		return nil, err
	}
	if to == nil {
		return nil, fmt.Errorf("%w: %q is the present", ErrBadRef, req.To)
	}
	present, err := w.captured(ctx, st, &Request{})
	if err != nil {
		return nil, err
	}
	from := present.tree
	p := &Plan{Target: to, Conversation: req.Conversation, request: req, present: present.tree, NotCaptured: present.skipped, foreign: to.Received}
	if p.Conversation == "" {
		p.Conversation = to.Conversation
	}
	if ref := req.Lines.From; ref != "" && ref != "@" {
		rec, err := w.Resolve(ctx, ref, req.Conversation)
		if err != nil {
			return nil, err
		}
		if rec != nil {
			from, p.foreign = rec.Tree, p.foreign || rec.Received
		}
	}
	e, err := w.lineExchange(ctx, req.Lines, to.Tree, from)
	if err != nil {
		return nil, err
	}
	if present, err = w.exchange(ctx, st, p, e, nil, present); err != nil {
		return nil, err
	}
	p.Untouched = untouched(present, p.Actions)
	p.sign(w.id)
	return &job{plan: p, present: present, kind: OpRewind, scope: []string{req.Lines.Path}}, nil
}

// lineExchange returns the exchange of a tree for the same tree with lines of
// another.
func (w *Workspace) lineExchange(ctx context.Context, l *Lines, to, from blob.ID) (Exchange, error) {
	at, err := w.entriesAt(ctx, l.Path, to, from)
	if err != nil {
		return Exchange{}, err
	}
	var texts [2][]byte
	for i, e := range at {
		ok := isFile(e)
		if ok {
			texts[i], ok, err = textOf(ctx, w.s.blobs, e)
		}
		if err != nil {
			return Exchange{}, err
		}
		if !ok {
			return Exchange{}, fmt.Errorf("%w: %q is not a text in both versions; restore the whole file", ErrBadRef, l.Path)
		}
	}
	text, err := PutBack(texts[0], texts[1], l.Ranges)
	if err != nil {
		return Exchange{}, err
	}
	content := blob.New(text)
	if err := w.s.blobs.Put(ctx, content); err != nil {
		return Exchange{}, err
	}
	entry := *at[1]
	entry.ID, entry.Size = content.ID, int64(len(text))
	e := Exchange{Last: from, Paths: []string{l.Path}}
	e.To, err = workspace.Edit(ctx, w.s.blobs, from, map[string]*workspace.Entry{l.Path: &entry})
	return e, err
}
