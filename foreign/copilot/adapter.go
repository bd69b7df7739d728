package copilot

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

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/npm"
)

// Name is the name of the agent.
const Name = "copilot"

const (
	eventsFile    = "events.jsonl"
	workspaceFile = "workspace.yaml"
)

// Adapter is the adapter for the Copilot command line.
type Adapter struct{}

// New returns the adapter.
func New() Adapter { return Adapter{} }

var _ foreign.Adapter = Adapter{}

// Name returns the name of the agent.
func (Adapter) Name() string { return Name }

func home(h foreign.Host) string { return filepath.Join(h.Home, ".copilot") }

func states(h foreign.Host) string { return filepath.Join(home(h), "session-state") }

func unreadable(err error) error { return fmt.Errorf("%w: %w", foreign.ErrUnreadable, err) }

// Detect looks for the program and its directory.
func (Adapter) Detect(_ context.Context, h foreign.Host) (foreign.Installation, error) {
	found := foreign.Installation{Program: h.Program("copilot"), Settings: filepath.Join(home(h), "hooks")}
	if found.Program != "" {
		found.Version = npm.Version(found.Program, "@github/copilot")
	}
	info, err := os.Stat(home(h))
	found.Found = found.Program != "" || err == nil && info.IsDir()
	return found, nil
}

// Sessions returns the sessions that Copilot keeps, the oldest first.
func (Adapter) Sessions(ctx context.Context, h foreign.Host) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) { below(ctx, states(h), yield) }
}

// SessionAt returns the session of a directory or of its events.jsonl, and its subagents,
// or the sessions of all directories below one.
func (Adapter) SessionAt(ctx context.Context, _ foreign.Host, path string) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		info, err := os.Stat(path)
		if err != nil {
			yield(foreign.Session{}, unreadable(err))
			return
		}
		if info.IsDir() {
			if _, err := os.Stat(filepath.Join(path, eventsFile)); err != nil {
				below(ctx, path, yield)
				return
			}
			path = filepath.Join(path, eventsFile)
		}
		family(ctx, path, yield)
	}
}

// below yields the sessions whose directories are in a directory.
func below(ctx context.Context, dir string, yield func(foreign.Session, error) bool) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		yield(foreign.Session{}, unreadable(err))
		return
	}
	type dated struct {
		path string
		head head
	}
	var found []dated
	for _, e := range entries {
		path := filepath.Join(dir, e.Name(), eventsFile)
		if _, err := os.Stat(path); err != nil {
			continue // made when the first prompt is submitted
		}
		found = append(found, dated{path, readHead(ctx, path)})
	}
	slices.SortStableFunc(found, func(a, b dated) int {
		return cmp.Or(a.head.started.Compare(b.head.started), cmp.Compare(a.path, b.path))
	})
	for _, d := range found {
		if ctx.Err() != nil {
			yield(foreign.Session{}, ctx.Err())
			return
		}
		if !family(ctx, d.path, yield) {
			return
		}
	}
}

// family yields the session of a file and its subagents. It reports whether the
// caller wants more.
func family(ctx context.Context, path string, yield func(foreign.Session, error) bool) bool {
	h := readHead(ctx, path)
	s := foreign.Session{Agent: Name, ID: h.id, Path: path, Workspace: h.cwd, Title: h.title, Started: h.started}
	info, err := os.Stat(path)
	if err != nil {
		return yield(foreign.Session{}, unreadable(err))
	}
	s.Size, s.Updated = info.Size(), info.ModTime()
	if !yield(s, nil) {
		return false
	}
	for sub, err := range subagents(ctx, s) {
		if !yield(sub, err) {
			return false
		}
	}
	return true
}

// Files returns the files of a session. A subagent shares those of its session.
func (Adapter) Files(_ context.Context, s foreign.Session) iter.Seq2[foreign.File, error] {
	return func(yield func(foreign.File, error) bool) {
		for _, name := range []string{eventsFile, workspaceFile} {
			path := filepath.Join(filepath.Dir(s.Path), name)
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && name != eventsFile {
				continue
			}
			if !yield(foreign.File{Name: name, Path: path}, nil) {
				return
			}
		}
	}
}
