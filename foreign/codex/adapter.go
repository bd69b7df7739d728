package codex

import (
	"context"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/npm"
)

// Name is the name of the agent.
const Name = "codex"

// Adapter is the adapter for Codex.
type Adapter struct{}

// New returns the adapter.
func New() Adapter { return Adapter{} }

var _ foreign.Adapter = Adapter{}

// Name returns the name of the agent.
func (Adapter) Name() string { return Name }

// home is the directory of Codex.
func home(h foreign.Host) string { return h.Dir("CODEX_HOME", ".codex") }

// Detect looks for the program and its directory.
func (Adapter) Detect(_ context.Context, h foreign.Host) (foreign.Installation, error) {
	found := foreign.Installation{Program: h.Program("codex"), Settings: filepath.Join(home(h), hooksFile)}
	if found.Program != "" {
		found.Version = npm.Version(found.Program, "@openai/codex")
	}
	info, err := os.Stat(home(h))
	found.Found = found.Program != "" || err == nil && info.IsDir()
	return found, nil
}

// Sessions returns the sessions that Codex keeps, archived ones included, the oldest
// first: a subagent begins after the session that started it.
func (Adapter) Sessions(ctx context.Context, h foreign.Host) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		list(ctx, library{home: home(h)}, func(rollout) bool { return true }, yield)
	}
}

// SessionAt returns the session of a rollout and its subagents, or all sessions below a
// directory.
func (Adapter) SessionAt(ctx context.Context, _ foreign.Host, path string) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		path = jsonl.Present(path)
		info, err := os.Stat(path)
		if err != nil {
			yield(foreign.Session{}, unreadable(err))
			return
		}
		if info.IsDir() {
			list(ctx, library{home: path, flat: !isHome(path)}, func(rollout) bool { return true }, yield)
			return
		}
		first, err := readRollout(ctx, path)
		if err != nil {
			yield(foreign.Session{}, err)
			return
		}
		family := map[string]bool{first.id: true}
		list(ctx, libraryOf(path), func(r rollout) bool {
			if r.time < first.time && r.id != first.id {
				return false
			}
			if family[r.parent] {
				family[r.id] = true
			}
			return family[r.id]
		}, yield)
	}
}

// list yields the wanted sessions of a library. It calls wanted in the order in which
// they began.
func list(ctx context.Context, l library, wanted func(rollout) bool, yield func(foreign.Session, error) bool) {
	names, err := l.names("")
	if err != nil {
		yield(foreign.Session{}, unreadable(err))
		return
	}
	titles := l.titles(ctx)
	for i := 0; i < len(names); {
		if ctx.Err() != nil {
			yield(foreign.Session{}, ctx.Err())
			return
		}
		n := i + 1
		for n < len(names) && names[n].id == names[i].id {
			n++
		}
		first, err := readRollout(ctx, names[i].path)
		if err != nil {
			if !yield(foreign.Session{}, err) {
				return
			}
		} else if wanted(first) {
			s := l.session(ctx, first, names[i:n])
			s.Title = titles[s.ID]
			if !yield(s, nil) {
				return
			}
		}
		i = n
	}
}

// session describes a session by its first rollout and the names of all of them.
func (l library) session(ctx context.Context, first rollout, own []rollout) foreign.Session {
	s := foreign.Session{
		Agent: Name, ID: first.id, Path: first.path, Workspace: first.cwd, Started: first.started, Parent: first.parent,
	}
	for _, r := range own {
		if info, err := os.Stat(r.path); err == nil {
			s.Size += info.Size()
			if info.ModTime().After(s.Updated) {
				s.Updated = info.ModTime()
			}
		}
	}
	if first.forkedFrom != "" && first.parent == "" {
		s.ForkedFrom = first.forkedFrom
		if before, err := l.before(ctx, first); err == nil {
			s.ForkedAfter = lastTurn(ctx, before)
		}
	}
	return s
}

// Files returns the rollouts of a session. Those of its origin are files of the origin.
func (Adapter) Files(ctx context.Context, s foreign.Session) iter.Seq2[foreign.File, error] {
	return func(yield func(foreign.File, error) bool) {
		own, err := libraryOf(s.Path).rollouts(ctx, s)
		if err != nil {
			yield(foreign.File{}, err)
			return
		}
		for _, r := range own {
			f := foreign.File{Name: r.name(), Path: r.path}
			if f.Name != filepath.Base(r.path) {
				f.Open = func() (io.ReadCloser, error) { return jsonl.Open(r.path) }
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}
