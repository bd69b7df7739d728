package qwen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

const headLines = 16

// Sessions returns the sessions of all projects.
func (a Adapter) Sessions(ctx context.Context, h foreign.Host) iter.Seq2[foreign.Session, error] {
	return a.below(ctx, filepath.Join(dir(h), "projects"))
}

// SessionAt returns the session of a file. A directory may be a project's, its chats,
// or one that holds projects.
func (a Adapter) SessionAt(ctx context.Context, _ foreign.Host, path string) iter.Seq2[foreign.Session, error] {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return func(yield func(foreign.Session, error) bool) {
			yield(foreign.Session{}, fmt.Errorf("%w: %w", foreign.ErrUnreadable, err))
		}
	case !info.IsDir():
		return a.chats(ctx, filepath.Dir(path), path)
	case filepath.Base(path) == "chats":
		return a.chats(ctx, path, "")
	}
	for _, below := range []string{"projects", "chats"} {
		if info, err := os.Stat(filepath.Join(path, below)); err == nil && info.IsDir() {
			return a.SessionAt(ctx, foreign.Host{}, filepath.Join(path, below))
		}
	}
	return a.below(ctx, path)
}

func (a Adapter) below(ctx context.Context, dir string) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(foreign.Session{}, fmt.Errorf("%w: %w", foreign.ErrUnreadable, err))
			return
		}
		for _, e := range entries {
			for s, err := range a.chats(ctx, filepath.Join(dir, e.Name(), "chats"), "") {
				if !yield(s, err) {
					return
				}
			}
		}
	}
}

// head is read from the beginning of a record.
type head struct {
	session foreign.Session
	root    string // the first uuid
}

// chats returns the sessions of a project, or only the one at a path.
func (a Adapter) chats(ctx context.Context, dir, only string) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		entries, _ := os.ReadDir(dir) // a project without chats has none
		var heads []head
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if e.IsDir() || filepath.Ext(path) != ".jsonl" {
				continue
			}
			h, err := headOf(ctx, path)
			if ctx.Err() != nil {
				yield(foreign.Session{}, ctx.Err())
				return
			}
			if err == nil {
				heads = append(heads, h)
			} else if (only == "" || only == path) && !yield(foreign.Session{}, err) {
				return
			}
		}
		for _, h := range heads {
			if only != "" && h.session.Path != only {
				continue
			}
			a.origin(ctx, &h.session, heads)
			if !yield(h.session, nil) {
				return
			}
		}
	}
}

func headOf(ctx context.Context, path string) (head, error) {
	info, err := os.Stat(path)
	if err != nil {
		return head{}, fmt.Errorf("%w: %w", foreign.ErrUnreadable, err)
	}
	id := strings.TrimSuffix(filepath.Base(path), ".jsonl")
	h := head{session: foreign.Session{Agent: Name, ID: id, Path: path, Size: info.Size(), Updated: info.ModTime()}}
	s, n := &h.session, 0
	for raw, err := range jsonl.Lines(ctx, path, 0) {
		if n++; n > headLines || s.Workspace != "" && h.root != "" && !s.Started.IsZero() {
			break
		}
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || err != nil && !foreign.Unreadable(err) {
			return head{}, err
		}
		if l, err := decode(raw.Data); err == nil {
			s.Workspace, s.Started = cmp.Or(s.Workspace, l.Dir), cmp.Or(s.Started, l.at())
			h.root = cmp.Or(h.root, l.UUID)
			s.ForkedFrom = cmp.Or(s.ForkedFrom, l.ForkedFrom.Session)
			s.ForkedFrom = cmp.Or(s.ForkedFrom, other(l.Session, id))
		}
	}
	if s.Updated.Before(s.Started) {
		s.Updated = s.Started
	}
	return h, nil
}

// origin finds the session that a cut copy was made from, which its lines name. Of a copy
// that went on and was cut again, that is the last one.
func (a Adapter) origin(ctx context.Context, s *foreign.Session, heads []head) {
	if s.ForkedFrom == "" {
		return
	}
	origins := turns.Origins(ctx, s.Path, func(data []byte) (string, bool) {
		l, err := decode(data)
		if err != nil {
			return "", true
		}
		return cmp.Or(l.ForkedFrom.Session, other(l.Session, s.ID)), true
	})
	for _, origin := range slices.Backward(origins) {
		at := slices.IndexFunc(heads, func(h head) bool { return h.session.ID == origin })
		if at < 0 {
			continue
		}
		h := heads[at]
		s.ForkedFrom = origin
		has := map[string]bool{}
		for t, err := range a.Turns(ctx, h.session, "") {
			has[t.ID] = err == nil
		}
		for t, err := range a.Turns(ctx, *s, "") {
			if err == nil && !has[t.ID] {
				return
			}
			s.ForkedAfter = cmp.Or(t.ID, s.ForkedAfter)
		}
		return
	}
}

// other returns the session of a line, "" if it is the given one.
func other(session, own string) string {
	if session == own {
		return ""
	}
	return session
}

// Files returns the file of the session.
func (Adapter) Files(_ context.Context, s foreign.Session) iter.Seq2[foreign.File, error] {
	return func(yield func(foreign.File, error) bool) {
		yield(foreign.File{Name: "session.jsonl", Path: s.Path}, nil)
	}
}
