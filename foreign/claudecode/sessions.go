package claudecode

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
)

// Limits on reading when sessions are listed.
const (
	headLines = 64
	tailBytes = 64 << 10
)

// Sessions returns the sessions of all projects.
func (a Adapter) Sessions(ctx context.Context, h foreign.Host) iter.Seq2[foreign.Session, error] {
	return a.below(ctx, filepath.Join(dir(h), "projects"))
}

// SessionAt returns the session of a file. A directory may be a project's, or one
// that holds the directories of projects.
func (a Adapter) SessionAt(ctx context.Context, _ foreign.Host, path string) iter.Seq2[foreign.Session, error] {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return failed(fmt.Errorf("%w: %w", foreign.ErrUnreadable, err))
	case info.IsDir() && isDir(filepath.Join(path, "projects")):
		return a.below(ctx, filepath.Join(path, "projects"))
	case info.IsDir() && len(records(path)) == 0:
		return a.below(ctx, path)
	case info.IsDir():
		return a.project(ctx, path, "")
	case filepath.Base(filepath.Dir(path)) == "subagents":
		return one(subagentAt(ctx, path))
	default:
		return a.project(ctx, filepath.Dir(path), path)
	}
}

func failed(err error) iter.Seq2[foreign.Session, error] { return one(foreign.Session{}, err) }

func one(s foreign.Session, err error) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) { yield(s, err) }
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// below returns the sessions of the projects in a directory.
func (a Adapter) below(ctx context.Context, dir string) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(foreign.Session{}, fmt.Errorf("%w: %w", foreign.ErrUnreadable, err))
			return
		}
		for _, e := range entries {
			if !e.IsDir() {
				continue
			}
			for s, err := range a.project(ctx, filepath.Join(dir, e.Name()), "") {
				if !yield(s, err) {
					return
				}
			}
		}
	}
}

// records returns the files of sessions in a directory, sorted.
func records(dir string) []string {
	paths, _ := filepath.Glob(filepath.Join(escape(dir), "*.jsonl"))
	return paths
}

// escape returns a pattern that matches only the path itself.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// head is read from the beginning of a record.
type head struct {
	session foreign.Session
	root    string    // uuid of the first line that has one
	first   time.Time // the first time that stands in the file
}

// project returns the sessions of a project, or only the one at a path.
func (a Adapter) project(ctx context.Context, dir, only string) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		var heads []head
		for _, path := range records(dir) {
			if ctx.Err() != nil {
				yield(foreign.Session{}, ctx.Err())
				return
			}
			h, err := headOf(ctx, path)
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
			a.origin(ctx, &h, heads)
			if !yield(h.session, nil) || !subagents(ctx, h.session, yield) {
				return
			}
		}
	}
}

// headOf reads the beginning and the end of a record.
func headOf(ctx context.Context, path string) (head, error) {
	info, err := os.Stat(path)
	if err != nil {
		return head{}, fmt.Errorf("%w: %w", foreign.ErrUnreadable, err)
	}
	stem := strings.TrimSuffix(filepath.Base(path), ".jsonl")
	h := head{session: foreign.Session{Agent: Name, ID: stem, Path: path, Size: info.Size()}}
	s := &h.session
	place := filepath.Base(filepath.Dir(path))
	owner, agent, dir, n := "", false, "", 0
	for raw, err := range jsonl.Lines(ctx, path, 0) {
		if n++; n > headLines {
			break
		}
		if err != nil && !foreign.Unreadable(err) {
			return head{}, err
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return head{}, err
		}
		l, err := decode(raw.Data)
		if err != nil || len(raw.Data) == 0 {
			continue
		}
		title(s, l)
		if at := l.at(); !at.IsZero() {
			h.first = cmp.Or(h.first, at)
			if l.UUID != "" && s.Started.IsZero() {
				s.Started = at
			}
		}
		h.root, dir, owner = cmp.Or(h.root, l.UUID), cmp.Or(dir, l.Dir), cmp.Or(owner, l.Session)
		agent = agent || l.Sidechain
		if s.Workspace == "" && l.Dir != "" && dashed(l.Dir) == place {
			s.Workspace = l.Dir
		}
		if s.Workspace != "" && h.root != "" && !s.Started.IsZero() {
			break
		}
	}
	s.Workspace = cmp.Or(s.Workspace, dir)
	s.Started = cmp.Or(s.Started, h.first)
	s.Updated = cmp.Or(tail(path, info.Size(), s), info.ModTime())
	if strings.HasPrefix(stem, "agent-") && agent && owner != "" { // where earlier releases put subagents
		s.ID, s.Parent = subagentID(owner, strings.TrimPrefix(stem, "agent-")), owner
	} else if owner != stem {
		s.ForkedFrom = owner
	}
	return h, nil
}

// title takes the title from a line.
func title(s *foreign.Session, l line) {
	switch {
	case l.Type == "custom-title" && l.CustomTitle != "":
		s.Title = l.CustomTitle
	case l.Type == "ai-title" && l.AITitle != "":
		s.Title = l.AITitle
	case l.Type == "summary" && l.Summary != "":
		s.Title = l.Summary
	}
}

// tail reads the end of a record for its title and the time of its last line.
func tail(path string, size int64, s *foreign.Session) (last time.Time) {
	f, err := os.Open(path)
	if err != nil {
		return last
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, max(0, size-tailBytes), tailBytes))
	if err != nil {
		return last
	}
	lines := bytes.Split(data, []byte("\n"))
	if size > tailBytes {
		lines = lines[1:]
	}
	for _, raw := range lines {
		if l, err := decode(append(raw, ' ')); err == nil {
			title(s, l)
			if at := l.at(); at.After(last) {
				last = at
			}
		}
	}
	return last
}

// dashed is the name of the directory of a project.
func dashed(dir string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, dir)
}

// subagents yields the subagents of a session.
func subagents(ctx context.Context, s foreign.Session, yield func(foreign.Session, error) bool) bool {
	if s.Parent != "" {
		return true
	}
	for _, path := range records(filepath.Join(strings.TrimSuffix(s.Path, ".jsonl"), "subagents")) {
		sub, err := subagentAt(ctx, path)
		sub.Workspace = cmp.Or(s.Workspace, sub.Workspace)
		if !yield(sub, err) {
			return false
		}
	}
	return true
}

// subagentAt returns the session of a subagent.
func subagentAt(ctx context.Context, path string) (foreign.Session, error) {
	h, err := headOf(ctx, path)
	if err != nil {
		return foreign.Session{}, err
	}
	s := h.session
	s.Parent = filepath.Base(filepath.Dir(filepath.Dir(path)))
	s.ID = subagentID(s.Parent, strings.TrimPrefix(strings.TrimSuffix(filepath.Base(path), ".jsonl"), "agent-"))
	s.ForkedFrom = ""
	var meta struct {
		Call        string `json:"toolUseId"`
		Description string `json:"description"`
	}
	if data, err := os.ReadFile(metaOf(path)); err == nil && json.Unmarshal(data, &meta) == nil {
		s.ParentCall, s.Title = meta.Call, cmp.Or(s.Title, meta.Description)
	}
	return s, nil
}

func metaOf(path string) string { return strings.TrimSuffix(path, ".jsonl") + ".meta.json" }

// Files returns the file of the session and, for a subagent, the file with its
// description.
func (Adapter) Files(_ context.Context, s foreign.Session) iter.Seq2[foreign.File, error] {
	return func(yield func(foreign.File, error) bool) {
		if !yield(foreign.File{Name: "session.jsonl", Path: s.Path}, nil) {
			return
		}
		if meta := metaOf(s.Path); s.Parent != "" {
			if _, err := os.Stat(meta); err == nil {
				yield(foreign.File{Name: "session.meta.json", Path: meta}, nil)
			}
		}
	}
}
