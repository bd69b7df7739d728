package claudecode

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/newfile"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

// Cut copies the turns up to one into a session with a new id, which `claude --resume`
// continues. Branches that were left are not copied. It works across a compaction, where
// Claude Code's own way of resuming at a message does not.
func (Adapter) Cut(ctx context.Context, _ foreign.Host, s foreign.Session, after foreign.Turn) (foreign.Continuation, error) {
	cannot := func(reason string) (foreign.Continuation, error) {
		return foreign.Continuation{}, fmt.Errorf("%w: %s", foreign.ErrCannotCut, reason)
	}
	switch {
	case s.Parent != "":
		return cannot("a subagent continues only inside the session that started it")
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
	if err := newfile.Create(path, func(w io.Writer) error { return copySpans(w, s.Path, spans) }); err != nil {
		return foreign.Continuation{}, err
	}
	return foreign.Continuation{Session: id, Command: []string{"claude", "--resume", id}, Dir: s.Workspace, Created: []string{path}}, nil
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

// copySpans copies parts of a file that consist of whole lines.
func copySpans(w io.Writer, path string, spans []turns.Span) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, s := range spans {
		if _, err := io.Copy(w, io.NewSectionReader(f, s.Begin, s.End-s.Begin)); err != nil {
			return err
		}
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, spans[len(spans)-1].End-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = w.Write([]byte("\n"))
	return err
}
