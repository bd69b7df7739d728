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
)

// span is the part of a record that a turn takes.
type span struct {
	id, follows string
	begin, end  int64
}

// Cut copies the turns up to one into a session with a new id, which `claude --resume`
// continues. Branches that were left are not copied. It works across a compaction, where
// Claude Code's own way of resuming at a message does not.
func (a Adapter) Cut(ctx context.Context, _ foreign.Host, s foreign.Session, after foreign.Turn) (foreign.Continuation, error) {
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
	spans, err := a.spans(ctx, s, after)
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

// spans returns the parts of a record that lead to a turn, in order, or nil.
func (Adapter) spans(ctx context.Context, s foreign.Session, after foreign.Turn) ([]span, error) {
	var failed error
	r := newReader("", func(_ foreign.Turn, err error) bool {
		if err != nil && !foreign.Unreadable(err) {
			failed = err
		}
		return failed == nil
	})
	all, cut := []span{{}}, int64(0) // the first span is what precedes the first turn
	r.begun = func(t foreign.Turn, at int64) {
		all[len(all)-1].end = at
		all = append(all, span{id: t.ID, follows: t.Follows, begin: at})
	}
	r.seen = func(l line, end int64) {
		if l.UUID == after.Cut && cut == 0 {
			cut = end
		}
	}
	r.read(ctx, s.Path, "")
	if failed != nil || cut == 0 {
		return nil, failed
	}
	at := map[string]int{}
	for i := range all {
		at[all[i].id] = i
	}
	last, ok := at[after.ID]
	if !ok || cut < all[last].begin {
		return nil, nil
	}
	keep := map[int]bool{0: true}
	for i := last; i > 0; {
		keep[i] = true
		switch follows := all[i].follows; follows {
		case foreign.Beginning:
			i = 0
		case "":
			i--
		default:
			i = at[follows]
		}
	}
	all[last].end = cut
	var out []span
	for i := range all[:last+1] {
		if keep[i] {
			out = append(out, all[i])
		}
	}
	return out, nil
}

// copySpans copies parts of a file that consist of whole lines.
func copySpans(w io.Writer, path string, spans []span) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, s := range spans {
		if s.end <= s.begin {
			continue
		}
		if _, err := io.Copy(w, io.NewSectionReader(f, s.begin, s.end-s.begin)); err != nil {
			return err
		}
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, spans[len(spans)-1].end-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = w.Write([]byte("\n"))
	return err
}
