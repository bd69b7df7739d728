package qwen

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/newfile"
)

// Cut copies the turns up to one into a session with a new id, which `qwen --resume`
// continues. Branches that were left are not copied.
func (a Adapter) Cut(ctx context.Context, _ foreign.Host, s foreign.Session, after foreign.Turn) (foreign.Continuation, error) {
	cannot := func(reason string) (foreign.Continuation, error) {
		return foreign.Continuation{}, fmt.Errorf("%w: %s", foreign.ErrCannotCut, reason)
	}
	switch {
	case after.Cut == "":
		return cannot("the turn has no message that the record names")
	case s.Workspace == "":
		return cannot("the session does not say in which directory it works")
	}
	keep, err := a.leading(ctx, s, after)
	if err != nil {
		return foreign.Continuation{}, err
	}
	if keep == nil {
		return cannot("the session does not have the turn any more")
	}
	id := uuid.NewString()
	path := filepath.Join(filepath.Dir(s.Path), id+".jsonl")
	if err := newfile.Create(path, func(w io.Writer) error { return copyLines(ctx, w, s.Path, keep, s.ID, id) }); err != nil {
		return foreign.Continuation{}, err
	}
	return foreign.Continuation{Session: id, Command: []string{"qwen", "--resume", id}, Dir: s.Workspace, Created: []string{path}}, nil
}

// leading returns which parts of a record lead to a turn, or nil.
func (Adapter) leading(ctx context.Context, s foreign.Session, after foreign.Turn) (keep func(at int64) bool, err error) {
	r := newReader("", func(_ foreign.Turn, failed error) bool {
		if failed != nil && !foreign.Unreadable(failed) {
			err = failed
		}
		return err == nil
	})
	type span struct {
		follows string
		begin   int64
	}
	spans, at, cut := []span{{}}, map[string]int{}, int64(0) // the first is what precedes the first turn
	r.begun = func(t foreign.Turn, begin int64) {
		at[t.ID] = len(spans)
		spans = append(spans, span{t.Follows, begin})
	}
	r.seen = func(l line, end int64) {
		if l.UUID == after.Cut && cut == 0 {
			cut = end
		}
	}
	r.read(ctx, s.Path, "")
	last, ok := at[after.ID]
	if err != nil || !ok || cut <= spans[last].begin {
		return nil, err
	}
	kept := map[int]bool{0: true}
	for i := last; i > 0; {
		kept[i] = true
		switch follows := spans[i].follows; follows {
		case foreign.Beginning:
			i = 0
		case "":
			i--
		default:
			i = at[follows]
		}
	}
	return func(offset int64) bool {
		i := 0
		for i+1 < len(spans) && spans[i+1].begin <= offset {
			i++
		}
		return offset < cut && kept[i]
	}, nil
}

// copyLines copies lines under another session id, so that Qwen Code does not write to the
// old session, and notes where they come from. A line that is too long to be read is left
// out.
func copyLines(ctx context.Context, w io.Writer, path string, keep func(at int64) bool, old, id string) error {
	for l, err := range jsonl.Lines(ctx, path, 0) {
		if foreign.Unreadable(err) && l.End > 0 {
			continue
		}
		if err != nil {
			return err
		}
		if keep(l.Offset) {
			if _, err := w.Write(append(renamed(l.Data, old, id), '\n')); err != nil {
				return err
			}
		}
	}
	return nil
}

// renamed returns a line with another session id. The id stands before all content.
func renamed(line []byte, old, id string) []byte {
	const key = `"sessionId":"`
	with := key + id + `"`
	if !bytes.Contains(line, []byte(`"forkedFrom":`)) {
		with += `,"forkedFrom":{` + key + old + `"}`
	}
	return bytes.Replace(line, []byte(key+old+`"`), []byte(with), 1)
}
