package qwen

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/newfile"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

// Cut copies the turns up to one into a session with a new id, which `qwen --resume`
// continues. Branches that were left are not copied.
func (Adapter) Cut(ctx context.Context, _ foreign.Host, s foreign.Session, after foreign.Turn) (foreign.Continuation, error) {
	cannot := func(reason string) (foreign.Continuation, error) {
		return foreign.Continuation{}, fmt.Errorf("%w: %s", foreign.ErrCannotCut, reason)
	}
	switch {
	case after.Cut == "":
		return cannot("the turn has no message that the record names")
	case s.Workspace == "":
		return cannot("the session does not say in which directory it works")
	}
	spans, err := leading(ctx, s, after)
	if err != nil {
		return foreign.Continuation{}, err
	}
	if spans == nil {
		return cannot("the session does not have the turn any more")
	}
	id := uuid.NewString()
	path := filepath.Join(filepath.Dir(s.Path), id+".jsonl")
	if err := newfile.Create(path, func(w io.Writer) error { return copyLines(ctx, w, s.Path, spans, s.ID, id) }); err != nil {
		return foreign.Continuation{}, err
	}
	return foreign.Continuation{Session: id, Command: []string{"qwen", "--resume", id}, Dir: s.Workspace, Created: []string{path}}, nil
}

// leading returns the parts of a record that lead to a turn, or nil.
func leading(ctx context.Context, s foreign.Session, after foreign.Turn) (spans []turns.Span, err error) {
	r := newReader("", func(_ foreign.Turn, failed error) bool {
		if failed != nil && !foreign.Unreadable(failed) {
			err = failed
		}
		return err == nil
	})
	cut := int64(0)
	r.seen = func(l line, end int64) {
		if l.UUID == after.Cut && cut == 0 {
			cut = end
		}
	}
	r.read(ctx, s.Path, "")
	if err != nil {
		return nil, err
	}
	return r.lines.Leading(after.ID, cut), nil
}

// copyLines copies lines under another session id, so that Qwen Code does not write
// to the old session, and records where they come from. A line that is too long to be
// read is left out.
func copyLines(ctx context.Context, w io.Writer, path string, spans []turns.Span, old, id string) error {
	for l, err := range jsonl.Lines(ctx, path, 0) {
		if foreign.Unreadable(err) && l.End > 0 {
			continue
		}
		if err != nil {
			return err
		}
		if !turns.Within(spans, l.Offset) {
			continue
		}
		if l.Short {
			err = copyLong(w, path, l, old, id)
		} else {
			_, err = w.Write(append(renamed(l.Data, old, id), '\n'))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyLong copies a line of which only a short form was read.
func copyLong(w io.Writer, path string, l jsonl.Line, old, id string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, min(l.Size, 64<<10)) // the id stands in it
	if _, err := f.ReadAt(head, l.Offset); err != nil {
		return err
	}
	if _, err := w.Write(renamed(head, old, id)); err != nil {
		return err
	}
	rest := io.NewSectionReader(f, l.Offset+int64(len(head)), l.Size-int64(len(head)))
	if _, err := io.Copy(w, rest); err != nil {
		return err
	}
	_, err = w.Write([]byte{'\n'})
	return err
}

// renamed returns a line with another session id. The id comes before all content.
func renamed(line []byte, old, id string) []byte {
	const key = `"sessionId":"`
	with := key + id + `"`
	if !bytes.Contains(line, []byte(`"forkedFrom":`)) {
		with += `,"forkedFrom":{` + key + old + `"}`
	}
	return bytes.Replace(line, []byte(key+old+`"`), []byte(with), 1)
}
