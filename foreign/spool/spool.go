// Package spool keeps the events of hooks in files beside a store until a turn begins
// or ends. It promises that adding an event is one append without a lock, a database
// or a scan, that an event whose Add returned is not lost if its process is killed,
// and that a half-written line damages only itself.
//
// A session has one directory; each turn has one file in it, and a file is removed
// when the turn after the next one begins. Recording a session requires its lock.
//
//	{dir}/{agent}/{session}/{turn, eight hex digits}.jsonl
//	{dir}/{agent}/{session}/lock
//	{dir}/{agent}/{session}/process.json   the process that has the session open
package spool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
)

// maxPayload is the longest payload that is kept. Of a longer one only the decoded
// event is kept.
const maxPayload = 256 << 10

// atOnce is the time within which the same event counts as reported twice.
const atOnce = 5 * time.Second

// Entry is an event in the spool.
type Entry struct {
	Time time.Time `json:"time"`
	// Name is the agent's name of the event.
	Name string            `json:"name"`
	Kind foreign.EventKind `json:"kind"`
	Turn string            `json:"turn,omitempty"`
	Call string            `json:"call,omitempty"`
	Tool foreign.Tool      `json:"tool,omitempty"`
	// Paths are the files of the call, unless it failed: then it wrote none.
	Paths []string `json:"paths,omitempty"`
	// Session is the session's id, and Workspace the directory in which it works.
	Session   string          `json:"session,omitempty"`
	Workspace string          `json:"workspace,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	// Bare means that the payload was not decoded: Tool and Paths are missing.
	Bare bool `json:"bare,omitempty"`
	// Recorded means that the store has the beginning of the turn. Such an entry is not an
	// event.
	Recorded bool `json:"recorded,omitempty"`
}

// Spool is the spool of one session.
type Spool struct{ dir string }

// Open returns the spool of a session. It creates nothing.
func Open(dir, agent, session string) *Spool {
	return &Spool{dir: filepath.Join(dir, fileName(agent), fileName(session))}
}

// fileName returns a file name for an id. Ids that are not valid names are hashed.
func fileName(id string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)
	}
	if id != "" && len(id) <= 100 && id[0] != '.' && strings.IndexFunc(id, func(r rune) bool { return !plain(r) }) < 0 {
		return id
	}
	return "=" + blob.Sum([]byte(id)).String()[:40]
}

// Add appends an event. One that begins a turn begins a file.
func (s *Spool) Add(name string, e foreign.Event, at time.Time) error {
	entry := Entry{Time: at, Name: name, Kind: e.Kind, Turn: e.Turn, Session: e.Session, Workspace: e.Workspace}
	if len(e.Raw) <= maxPayload && json.Valid(e.Raw) {
		entry.Payload = e.Raw
	}
	if e.Call != nil {
		entry.Call, entry.Tool = e.Call.ID, e.Call.Tool
		if !e.Call.Failed {
			entry.Paths = e.Call.Paths
		}
	}
	files, err := s.files()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return err
		}
		files = []uint32{0}
	}
	last := files[len(files)-1]
	if e.Kind == foreign.TurnStart && e.Subagent == "" && !s.again(last, entry) {
		last++
		for _, old := range files[:max(0, len(files)-1)] {
			_ = os.Remove(s.path(old)) // the next turn tries again
		}
	}
	return s.append(last, entry)
}

// again reports whether the start of a turn is already the only event of a file: an agent
// that is connected twice reports it twice.
func (s *Spool) again(file uint32, start Entry) bool {
	t, err := s.readFile(context.Background(), file)
	if err != nil || len(t.Events) == 0 || start.Payload == nil {
		return false
	}
	for _, e := range t.Events {
		if e.Kind != foreign.TurnStart || start.Time.Sub(e.Time).Abs() > atOnce || !t.Has(foreign.TurnStart, start.Payload) {
			return false
		}
	}
	return true
}

// append adds an entry to the file of a turn.
func (s *Spool) append(turn uint32, entry Entry) error {
	line, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(s.path(turn), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	// The line begins with its own line end, so that it stands alone behind a torn one.
	_, err = f.Write(append(append([]byte{'\n'}, line...), '\n'))
	return errors.Join(err, f.Close())
}

func (s *Spool) path(turn uint32) string {
	return filepath.Join(s.dir, fmt.Sprintf("%08x.jsonl", turn))
}

// files returns the numbers of the files, in order.
func (s *Spool) files() ([]uint32, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []uint32
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if n, err := strconv.ParseUint(name, 16, 32); ok && err == nil {
			out = append(out, uint32(n))
		}
	}
	slices.Sort(out)
	return out, err
}

// Turn returns the current turn, from its start on.
func (s *Spool) Turn(ctx context.Context) (Turn, error) { return s.read(ctx, 1) }

// Previous returns the turn before the current one.
func (s *Spool) Previous(ctx context.Context) (Turn, error) { return s.read(ctx, 2) }

// read reads a file, counted from the last one.
func (s *Spool) read(ctx context.Context, back int) (Turn, error) {
	files, err := s.files()
	if err != nil || len(files) < back {
		return Turn{spool: s}, err
	}
	return s.readFile(ctx, files[len(files)-back])
}

func (s *Spool) readFile(ctx context.Context, number uint32) (Turn, error) {
	t := Turn{spool: s, number: number}
	for line, err := range jsonl.Lines(ctx, s.path(number), 0) {
		var e Entry
		if err != nil && !foreign.Unreadable(err) {
			return t, err
		}
		switch {
		case err != nil || json.Unmarshal(line.Data, &e) != nil:
		case e.Recorded:
			t.Recorded = true
		default:
			t.Events = append(t.Events, e)
		}
	}
	return t, nil
}

// Last returns when the session's last event came, zero if there is none.
func (s *Spool) Last() time.Time {
	files, err := s.files()
	if err != nil || len(files) == 0 {
		return time.Time{}
	}
	info, err := os.Stat(s.path(files[len(files)-1]))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// LastOf returns when the last event of an agent came, zero if none did.
func LastOf(dir, agent string) (last time.Time) {
	sessions, _ := os.ReadDir(filepath.Join(dir, fileName(agent)))
	for _, e := range sessions {
		s := &Spool{dir: filepath.Join(dir, fileName(agent), e.Name())}
		if at := s.Last(); at.After(last) {
			last = at
		}
	}
	return last
}

// Prune removes the spools of sessions without an event since a time.
func Prune(dir string, before time.Time) error {
	var errs []error
	agents, _ := os.ReadDir(dir)
	for _, agent := range agents {
		sessions, _ := os.ReadDir(filepath.Join(dir, agent.Name()))
		for _, e := range sessions {
			s := &Spool{dir: filepath.Join(dir, agent.Name(), e.Name())}
			if e.IsDir() && s.Last().Before(before) {
				errs = append(errs, os.RemoveAll(s.dir))
			}
		}
	}
	return errors.Join(errs...)
}
