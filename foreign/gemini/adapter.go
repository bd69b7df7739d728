package gemini

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/npm"
)

const name = "gemini"

// Adapter implements foreign.Adapter.
type Adapter struct{}

// New returns the adapter.
func New() *Adapter { return &Adapter{} }

// Name returns "gemini".
func (*Adapter) Name() string { return name }

// dir is where the CLI keeps everything.
func dir(h foreign.Host) string {
	if h.Getenv != nil {
		if home := h.Getenv("GEMINI_CLI_HOME"); filepath.IsAbs(home) {
			return filepath.Join(home, ".gemini")
		}
	}
	return h.Dir("", ".gemini")
}

func settingsPath(h foreign.Host, project string) string {
	if project != "" {
		return filepath.Join(project, ".gemini", "settings.json")
	}
	return filepath.Join(dir(h), "settings.json")
}

// Detect looks for the CLI.
func (*Adapter) Detect(_ context.Context, h foreign.Host) (foreign.Installation, error) {
	in := foreign.Installation{Settings: settingsPath(h, ""), Program: h.Program("gemini")}
	_, err := os.Stat(dir(h))
	in.Found = err == nil || in.Program != ""
	if in.Program != "" {
		in.Version = npm.Version(in.Program, "@google/gemini-cli")
	}
	return in, nil
}

// Sessions returns the sessions of all projects.
func (*Adapter) Sessions(ctx context.Context, h foreign.Host) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		chats, err := filepath.Glob(filepath.Join(escape(dir(h)), "tmp", "*", "chats"))
		if err != nil {
			yield(foreign.Session{}, err)
			return
		}
		for _, chat := range chats {
			for s, err := range sessionsIn(ctx, chat) {
				if !yield(s, err) || err != nil && !foreign.Unreadable(err) {
					return
				}
			}
		}
	}
}

// escape makes a path safe for Glob.
func escape(path string) string {
	return strings.NewReplacer(`[`, `[[]`, `*`, `[*]`, `?`, `[?]`).Replace(path)
}

// sessionsIn returns the sessions of one project, subagents after the sessions that
// started them.
func sessionsIn(ctx context.Context, chats string) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		entries, err := os.ReadDir(chats)
		if err != nil {
			yield(foreign.Session{}, unreadable(err))
			return
		}
		for _, e := range entries {
			if ctx.Err() != nil {
				yield(foreign.Session{}, ctx.Err())
				return
			}
			if e.IsDir() || filepath.Ext(e.Name()) != ".jsonl" {
				continue
			}
			for s, err := range family(ctx, filepath.Join(chats, e.Name())) {
				if !yield(s, err) {
					return
				}
			}
		}
	}
}

// SessionAt returns the session of a file with its subagents, or those of a directory.
func (*Adapter) SessionAt(ctx context.Context, _ foreign.Host, path string) iter.Seq2[foreign.Session, error] {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return sessionsIn(ctx, path)
	}
	return family(ctx, path)
}

// family returns the session of a file and its subagents.
func family(ctx context.Context, path string) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		s, err := describe(ctx, path)
		if !yield(s, err) || err != nil || s.Parent != "" {
			return
		}
		sub := filepath.Join(filepath.Dir(path), s.ID)
		entries, err := os.ReadDir(sub)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				yield(foreign.Session{}, unreadable(err))
			}
			return
		}
		for _, e := range entries {
			if e.IsDir() || filepath.Ext(e.Name()) != ".jsonl" {
				continue
			}
			if s, err := describe(ctx, filepath.Join(sub, e.Name())); !yield(s, err) {
				return
			}
		}
	}
}

// header is the line with which a session, and each resumption, begins.
type header struct {
	SessionID   string    `json:"sessionId"`
	ProjectHash string    `json:"projectHash"`
	StartTime   time.Time `json:"startTime"`
	LastUpdated time.Time `json:"lastUpdated"`
	Kind        string    `json:"kind"`
	Directories []string  `json:"directories"`
	Summary     string    `json:"summary"`
}

// describe reads the beginning of a session.
func describe(ctx context.Context, path string) (foreign.Session, error) {
	info, err := os.Stat(path)
	if err != nil {
		return foreign.Session{}, unreadable(err)
	}
	for line, err := range jsonl.Lines(ctx, path, 0) {
		if err != nil {
			return foreign.Session{}, err
		}
		var h header
		if json.Unmarshal(line.Data, &h) != nil || h.SessionID == "" || h.ProjectHash == "" {
			break
		}
		s := foreign.Session{
			Agent: name, ID: h.SessionID, Path: path, Title: h.Summary, Workspace: workspace(path, h),
			Started: h.StartTime, Updated: info.ModTime(), Size: info.Size(),
		}
		if h.Kind == "subagent" {
			s.Parent = filepath.Base(filepath.Dir(path))
		}
		if s.Updated.Before(s.Started) { // a copy keeps the times inside
			s.Updated = h.LastUpdated
		}
		return s, nil
	}
	return foreign.Session{}, fmt.Errorf("%w: %s does not begin with a session of gemini", foreign.ErrUnreadable, path)
}

// workspace finds the directory of a session: the CLI writes it beside the sessions
// of a project, or lists it under the name or the hash of the project.
func workspace(path string, h header) string {
	project := path
	for range 4 {
		project = filepath.Dir(project)
		if filepath.Base(filepath.Dir(project)) == "tmp" {
			break
		}
	}
	if root, err := os.ReadFile(filepath.Join(project, ".project_root")); err == nil && len(root) < 4096 {
		if dir := strings.TrimSpace(string(root)); dir != "" {
			return dir
		}
	}
	var list struct{ Projects map[string]string }
	if data, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(project)), "projects.json")); err == nil && json.Unmarshal(data, &list) == nil {
		for _, dir := range slices.Sorted(keys(list.Projects)) {
			sum := sha256.Sum256([]byte(dir))
			if list.Projects[dir] == filepath.Base(project) || hex.EncodeToString(sum[:]) == h.ProjectHash {
				return dir
			}
		}
	}
	return cmp.Or(h.Directories...)
}

func keys(m map[string]string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// Files returns the session's file.
func (*Adapter) Files(_ context.Context, s foreign.Session) iter.Seq2[foreign.File, error] {
	return func(yield func(foreign.File, error) bool) {
		yield(foreign.File{Name: "session.jsonl", Path: s.Path}, nil)
	}
}

func unreadable(err error) error { return fmt.Errorf("%w: %w", foreign.ErrUnreadable, err) }
