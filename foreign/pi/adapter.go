package pi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/npm"
)

const name = "pi"

// Adapter implements foreign.Adapter.
type Adapter struct{}

// New returns the adapter.
func New() *Adapter { return &Adapter{} }

// Name returns "pi".
func (*Adapter) Name() string { return name }

// agentDir is where pi keeps everything.
func agentDir(h foreign.Host) string { return h.Dir("PI_CODING_AGENT_DIR", ".pi", "agent") }

// sessionsDir is where pi keeps its sessions.
func sessionsDir(h foreign.Host) string {
	if h.Getenv != nil {
		if dir := h.Getenv("PI_CODING_AGENT_SESSION_DIR"); filepath.IsAbs(dir) {
			return filepath.Clean(dir)
		}
	}
	return filepath.Join(agentDir(h), "sessions")
}

// Detect looks for pi. Other programs have this name, too: one that does not belong
// to pi's package counts only if pi's directory exists.
func (*Adapter) Detect(_ context.Context, h foreign.Host) (foreign.Installation, error) {
	in := foreign.Installation{Settings: extensionPath(h, "")}
	_, err := os.Stat(agentDir(h))
	in.Found = err == nil
	if program := h.Program("pi"); program != "" {
		in.Version = npm.Version(program, "@mariozechner/pi-coding-agent")
		if in.Found = in.Found || in.Version != ""; in.Found {
			in.Program = program
		}
	}
	return in, nil
}

// Sessions returns the saved sessions.
func (a *Adapter) Sessions(ctx context.Context, h foreign.Host) iter.Seq2[foreign.Session, error] {
	return a.SessionAt(ctx, h, sessionsDir(h))
}

// SessionAt returns the session of a file, or those below a directory.
func (*Adapter) SessionAt(ctx context.Context, _ foreign.Host, path string) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.Is(err, fs.ErrNotExist) && file == path:
				return nil
			case err != nil:
				if !yield(foreign.Session{}, unreadable(err)) {
					return fs.SkipAll
				}
				return nil
			case d.IsDir() || filepath.Ext(file) != ".jsonl":
				return nil
			}
			s, err := describe(ctx, file)
			if errors.Is(err, errOther) && file != path {
				return nil
			}
			if !yield(s, err) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(foreign.Session{}, err)
		}
	}
}

var errOther = fmt.Errorf("%w: it does not begin with a session of pi", foreign.ErrUnreadable)

// describe reads the beginning of a session.
func describe(ctx context.Context, path string) (foreign.Session, error) {
	info, err := os.Stat(path)
	if err != nil {
		return foreign.Session{}, unreadable(err)
	}
	h, err := readHeader(ctx, path)
	if err != nil {
		return foreign.Session{}, fmt.Errorf("%s: %w", path, err)
	}
	s := foreign.Session{
		Agent: name, ID: h.ID, Path: path, Workspace: h.Cwd,
		Started: h.Timestamp, Updated: info.ModTime(), Size: info.Size(),
	}
	if h.ParentSession != "" {
		s.ForkedFrom = sessionID(ctx, h.ParentSession)
		s.ForkedAfter = lastShared(ctx, path, h.Timestamp)
	}
	return s, nil
}

// header is the first line of a session.
type header struct {
	Type          string    `json:"type"`
	Version       int       `json:"version,omitempty"`
	ID            string    `json:"id"`
	Timestamp     time.Time `json:"timestamp"`
	Cwd           string    `json:"cwd"`
	ParentSession string    `json:"parentSession,omitempty"`
}

func readHeader(ctx context.Context, path string) (header, error) {
	for line, err := range jsonl.Lines(ctx, path, 0) {
		if err != nil {
			return header{}, err
		}
		var h header
		if json.Unmarshal(line.Data, &h) != nil || h.Type != "session" || h.ID == "" {
			return header{}, errOther
		}
		return h, nil
	}
	return header{}, errOther
}

// sessionID returns the id of the session in a file that may be gone: pi's file names end
// in it.
func sessionID(ctx context.Context, path string) string {
	if h, err := readHeader(ctx, path); err == nil {
		return h.ID
	}
	base := strings.TrimSuffix(filepath.Base(path), ".jsonl")
	_, id, _ := strings.Cut(base, "_")
	return id
}

// lastShared returns the last turn that a fork has from its origin: pi copies entries
// unchanged, so these are older than the fork.
func lastShared(ctx context.Context, path string, forked time.Time) (last string) {
	for line, err := range jsonl.Lines(ctx, path, 0) {
		if foreign.Unreadable(err) {
			continue
		}
		if err != nil {
			return ""
		}
		e, ok := decode(line.Data)
		if !ok || e.Type == "session" {
			continue
		}
		if e.Timestamp.After(forked) {
			break
		}
		if e.begins() {
			last = e.ID
		}
	}
	return last
}

// Files returns the session's file.
func (*Adapter) Files(_ context.Context, s foreign.Session) iter.Seq2[foreign.File, error] {
	return func(yield func(foreign.File, error) bool) {
		yield(foreign.File{Name: "session.jsonl", Path: s.Path}, nil)
	}
}

func unreadable(err error) error { return fmt.Errorf("%w: %w", foreign.ErrUnreadable, err) }
