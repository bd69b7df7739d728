package copilot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/newfile"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

// Cut copies the session's directory under a new id, with the events until the end of a
// turn. Copilot's own copies of changed files stay with the old session.
func (Adapter) Cut(ctx context.Context, h foreign.Host, s foreign.Session, after foreign.Turn) (foreign.Continuation, error) {
	if s.Parent != "" {
		return foreign.Continuation{}, fmt.Errorf("%w: copilot does not resume a subagent", foreign.ErrCannotCut)
	}
	end, err := find(ctx, s, after.Cut)
	if err != nil {
		return foreign.Continuation{}, err
	}
	id := uuid.NewString()
	ids, err := renames(ctx, s, id)
	if err != nil {
		return foreign.Continuation{}, err
	}
	dir := filepath.Join(states(h), id)
	created := []string{filepath.Join(dir, eventsFile)}
	err = newfile.CreateDir(dir, func(dir string) error {
		err := newfile.Create(filepath.Join(dir, eventsFile), func(w io.Writer) error {
			return copyEvents(ctx, w, s.Path, end, ids)
		})
		if err != nil {
			return err
		}
		yaml, err := os.ReadFile(filepath.Join(filepath.Dir(s.Path), workspaceFile))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return unreadable(err)
		}
		created = append(created, filepath.Join(states(h), id, workspaceFile))
		return newfile.Create(filepath.Join(dir, workspaceFile), func(w io.Writer) error {
			_, err := w.Write(bytes.ReplaceAll(yaml, []byte(s.ID), []byte(id)))
			return err
		})
	})
	if err != nil {
		return foreign.Continuation{}, fmt.Errorf("cut session %s: %w", s.ID, err)
	}
	return foreign.Continuation{Session: id, Command: []string{"copilot", "--resume=" + id}, Dir: s.Workspace, Created: created}, nil
}

// find returns where a turn ends.
func find(ctx context.Context, s foreign.Session, turn string) (int64, error) {
	end := int64(0)
	var failed error
	r := newReader(s, nil)
	r.b = turns.New("", func(t foreign.Turn, err error) bool {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || !foreign.Unreadable(err) {
				failed = err
			}
			return true
		}
		if t.ID != turn || turn == "" {
			return true
		}
		if end = r.done; end == 0 {
			end = r.end // the record does not say where it ended
		}
		return false
	})
	r.read(ctx, s.Path, 0)
	if failed == nil && end == 0 {
		failed = fmt.Errorf("%w: the session has no turn %q", foreign.ErrCannotCut, turn)
	}
	return end, failed
}

// renames returns what replaces the ids of a session in its copy. Subagents get new ids,
// too: each is a session, and the old ones stay.
func renames(ctx context.Context, s foreign.Session, id string) (map[string]string, error) {
	ids := map[string]string{`"` + s.ID + `"`: `"` + id + `"`, `"agent-` + s.ID + `"`: `"agent-` + id + `"`}
	for sub, err := range subagents(ctx, s) {
		if err != nil {
			return nil, err
		}
		made := uuid.NewString()
		ids[`"`+sub.ID+`"`], ids[`"agent-`+sub.ID+`"`] = `"`+made+`"`, `"agent-`+made+`"`
	}
	return ids, nil
}

// copyEvents copies the events until an offset, with new ids.
func copyEvents(ctx context.Context, w io.Writer, path string, end int64, ids map[string]string) error {
	f, err := os.Open(path)
	if err != nil {
		return unreadable(err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(io.LimitReader(f, end), 64<<10)
	for ctx.Err() == nil {
		raw, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return unreadable(err)
		}
		for old, id := range ids {
			raw = bytes.ReplaceAll(raw, []byte(old), []byte(id))
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
		if err == io.EOF {
			return nil
		}
	}
	return ctx.Err()
}
