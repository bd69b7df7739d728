package codex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
)

// Directories of rollouts below the directory of Codex.
const (
	sessionsDir = "sessions"
	archiveDir  = "archived_sessions"
)

// rollout is one file of a session. The fields after path are known only after the
// first lines were read.
type rollout struct {
	time, id, segment string // of the name
	path              string

	cwd, parent, forkedFrom string
	started                 time.Time
	base                    *position // where the file continues another one
	first                   int64     // ordinal of the first line
}

// position is the end of a part of a session.
type position struct {
	Thread  string `json:"thread_id"`
	Ordinal int64  `json:"end_ordinal_exclusive"`
}

var rolloutName = regexp.MustCompile(`^rollout-(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)-([0-9A-Za-z-]+?)(?:_([0-9A-Za-z-]+))?\.jsonl(?:\.zst)?$`)

// parseName parses the name of a file.
func parseName(path string) (rollout, bool) {
	m := rolloutName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return rollout{}, false
	}
	return rollout{time: m[1], id: m[2], segment: m[3], path: path}, true
}

// name is the name of the file, which it keeps when Codex compresses it.
func (r rollout) name() string { return jsonl.Name(filepath.Base(r.path)) }

func unreadable(err error) error { return fmt.Errorf("%w: %w", foreign.ErrUnreadable, err) }

// maxHead is how many lines are searched for the description of a session.
const maxHead = 20

// readRollout reads the description at the beginning of a rollout.
func readRollout(ctx context.Context, path string) (rollout, error) {
	r, named := parseName(path)
	r.path = path
	lines := 0
	for raw, err := range jsonl.Lines(ctx, path, 0) {
		if err != nil && !foreign.Unreadable(err) {
			return r, err
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return r, err
		}
		var l line
		if err == nil && json.Unmarshal(raw.Data, &l) == nil && r.describe(l, raw.Data) {
			return r, nil
		}
		if lines++; lines >= maxHead {
			break
		}
	}
	if !named {
		return r, unreadable(fmt.Errorf("%s is not a session of codex", path))
	}
	return r, nil
}

// describe takes the description of the session from a line. It reports whether the
// line is its description.
func (r *rollout) describe(l line, raw []byte) bool {
	body := l.Payload
	if l.Type == "" { // before September 2025 a description stood alone
		body = raw
	} else if l.Type != "session_meta" {
		return false
	}
	var m struct {
		ID         string    `json:"id"`
		Timestamp  time.Time `json:"timestamp"`
		Cwd        string    `json:"cwd"`
		Parent     string    `json:"parent_thread_id"`
		ForkedFrom string    `json:"forked_from_id"`
		Base       *position `json:"history_base"`
		Ordinal    int64     `json:"forked_from_ordinal_exclusive"`
		Source     json.RawMessage
	}
	if json.Unmarshal(body, &m) != nil || m.ID == "" {
		return false
	}
	var source struct {
		Subagent struct {
			Spawn struct {
				Parent string `json:"parent_thread_id"`
			} `json:"thread_spawn"`
		}
	}
	_ = json.Unmarshal(m.Source, &source) // a word for sessions of people
	r.id, r.cwd, r.forkedFrom, r.base, r.first = m.ID, m.Cwd, m.ForkedFrom, m.Base, l.ordinal()
	r.parent, r.started = cmp.Or(m.Parent, source.Subagent.Spawn.Parent), m.Timestamp
	if r.base == nil && m.ForkedFrom != "" && m.Ordinal > 0 && r.first > 0 {
		r.base = &position{Thread: m.ForkedFrom, Ordinal: m.Ordinal}
	}
	return true
}

// library is a directory in which Codex keeps rollouts. A flat one is any directory.
type library struct {
	home string
	flat bool
}

func isHome(dir string) bool {
	for _, name := range []string{sessionsDir, archiveDir} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
			return true
		}
	}
	return false
}

// libraryOf returns the library that a rollout is in.
func libraryOf(path string) library {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if base := filepath.Base(dir); base == sessionsDir || base == archiveDir {
			return library{home: filepath.Dir(dir)}
		}
		if dir == filepath.Dir(dir) {
			return library{home: filepath.Dir(path), flat: true}
		}
	}
}

// names returns the rollouts whose name contains a text, by the age of their
// sessions, those of one session together. A session that was archived and brought
// back is listed once, and so is a file that exists both plain and compressed.
func (l library) names(contains string) ([]rollout, error) {
	dirs := []string{filepath.Join(l.home, sessionsDir), filepath.Join(l.home, archiveDir)}
	if l.flat {
		dirs = []string{l.home}
	}
	var found []rollout
	have := map[string]bool{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				if path == dir && errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				if d != nil && d.IsDir() && path != dir {
					return fs.SkipDir
				}
				return err
			}
			r, ok := parseName(path)
			if ok && !d.IsDir() && strings.Contains(d.Name(), contains) && !have[r.id+"_"+r.segment] {
				have[r.id+"_"+r.segment] = true
				found = append(found, r)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	began := map[string]string{}
	for _, r := range found {
		if at, ok := began[r.id]; !ok || r.time < at {
			began[r.id] = r.time
		}
	}
	slices.SortFunc(found, func(a, b rollout) int {
		return cmp.Or(cmp.Compare(began[a.id], began[b.id]), cmp.Compare(a.id, b.id),
			cmp.Compare(a.time, b.time), cmp.Compare(a.segment, b.segment))
	})
	return found, nil
}

// thread returns the rollouts of one session, the oldest first.
func (l library) thread(ctx context.Context, id string) ([]rollout, error) {
	names, err := l.names(id)
	if err != nil {
		return nil, unreadable(err)
	}
	var out []rollout
	for _, n := range names {
		if n.id != id {
			continue
		}
		r, err := readRollout(ctx, n.path)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// rollouts returns the rollouts of a session. A file under another name is the only one.
func (l library) rollouts(ctx context.Context, s foreign.Session) ([]rollout, error) {
	own, err := l.thread(ctx, s.ID)
	if err != nil || len(own) > 0 {
		return own, err
	}
	r, err := readRollout(ctx, jsonl.Present(s.Path))
	if err != nil {
		return nil, err
	}
	return []rollout{r}, nil
}

// titles returns the names that people gave to sessions.
func (l library) titles(ctx context.Context) map[string]string {
	titles := map[string]string{}
	if l.flat {
		return titles
	}
	for raw, err := range jsonl.Lines(ctx, filepath.Join(l.home, "session_index.jsonl"), 0) {
		var entry struct {
			ID   string `json:"id"`
			Name string `json:"thread_name"`
		}
		if err == nil && json.Unmarshal(raw.Data, &entry) == nil {
			titles[entry.ID] = entry.Name
		}
	}
	return titles
}
