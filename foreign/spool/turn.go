package spool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/stet-dev/stet/foreign"
)

// Turn is the file of a turn: its events in the order in which they came.
type Turn struct {
	Events []Entry
	// Recorded means that the store has the beginning of the turn.
	Recorded bool

	spool  *Spool
	number uint32
}

// Has reports whether an event with this payload is in the turn. Events whose payload
// was not kept may be.
func (t Turn) Has(kind foreign.EventKind, payload []byte) bool {
	raw, err := json.Marshal(json.RawMessage(payload)) // in the form of the spool
	for _, e := range t.Events {
		if e.Kind == kind && (e.Payload == nil || err != nil || len(payload) == 0 || bytes.Equal(raw, e.Payload)) {
			return true
		}
	}
	return false
}

// SetRecorded records that the store has the beginning of the turn.
func (t Turn) SetRecorded(at time.Time) error {
	return t.spool.append(t.number, Entry{Time: at, Name: "recorded", Recorded: true})
}

// Recorded reports whether a store has the beginning of one of the last two turns. A store
// that is not there now was there then.
func (s *Spool) Recorded(ctx context.Context) (bool, error) {
	for _, read := range []func(context.Context) (Turn, error){s.Turn, s.Previous} {
		if t, err := read(ctx); err != nil || t.Recorded {
			return t.Recorded, err
		}
	}
	return false, nil
}

// Ends counts the events that report the end of the turn or of its session.
func (t Turn) Ends() (n int) {
	for _, e := range t.Events {
		if e.Kind == foreign.TurnEnd || e.Kind == foreign.SessionEnd {
			n++
		}
	}
	return n
}

// Ended returns when the end of the turn was reported, or the last of what went on in the
// background after it; zero if no end was. The end of the session is none: people leave long
// after they have interrupted a turn.
func (t Turn) Ended() (at time.Time) {
	for _, e := range t.Events {
		if e.Kind == foreign.TurnEnd || !at.IsZero() && e.Kind != foreign.NoEvent && e.Kind != foreign.SessionEnd {
			at = e.Time
		}
	}
	return at
}

// Working reports whether the events show work whose beginning the store does not
// have. open means that it continues; otherwise it ended with the event at last.
func (t Turn) Working() (open bool, last time.Time) {
	unrecorded, stray := !t.Recorded, false
	for _, e := range t.Events {
		switch e.Kind {
		case foreign.TurnStart:
			open, stray = true, false
		case foreign.ToolStart, foreign.ToolEnd, foreign.TaskStart:
			if !open { // the start of a turn was lost
				open, stray, unrecorded = true, true, true
			}
		case foreign.TaskEnd: // of a task in the background, if the turn has ended
			open = open && !stray
		case foreign.TurnEnd, foreign.SessionEnd, foreign.SessionStart:
			open = false
		}
		if unrecorded && e.Kind != foreign.SessionStart {
			last = e.Time
		}
	}
	return open && unrecorded, last
}

// Lock keeps other processes from recording the session until the returned function is
// called or the process ends. Adding events does not wait for it.
func (s *Spool) Lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	const retry = 5 * time.Millisecond
	lock := flock.New(filepath.Join(s.dir, "lock"))
	if ok, err := lock.TryLockContext(ctx, retry); !ok {
		return nil, fmt.Errorf("lock session: %w", err)
	}
	return func() { _ = lock.Close() }, nil // the lock ends with the descriptor, even if close fails
}

// TryLock is Lock, except that it waits for nobody: ok is false if a process records the
// session now.
func (s *Spool) TryLock() (unlock func(), ok bool, err error) {
	lock := flock.New(filepath.Join(s.dir, "lock"))
	if ok, err = lock.TryLock(); !ok {
		return nil, false, err
	}
	return func() { _ = lock.Close() }, true, nil
}

// Worker is a session that is at work.
type Worker struct {
	Session string
	// Workspaces are the directories in which it works.
	Workspaces []string
}

// workLife is how long a turn counts as running without an event.
const workLife = time.Hour

// Unrecorded returns the sessions of all agents with work whose beginning the store
// does not have: work that continues, and work with an event since a given time.
func Unrecorded(ctx context.Context, dir string, since, now time.Time) ([]Worker, error) {
	var out []Worker
	for s, err := range all(dir) {
		if err != nil {
			return nil, err
		}
		if at := s.Last(); at.Before(since) && now.Sub(at) > workLife {
			continue
		}
		t, err := s.Turn(ctx)
		if err != nil {
			return nil, err
		}
		if open, last := t.Working(); open && now.Sub(last) <= workLife || !last.IsZero() && !last.Before(since) {
			out = append(out, t.worker())
		}
	}
	return out, nil
}

// worker returns the session of a turn that has events.
func (t Turn) worker() Worker {
	var w Worker
	for _, e := range t.Events {
		if e.Session != "" {
			w.Session = e.Session
		}
		if e.Workspace != "" && !slices.Contains(w.Workspaces, e.Workspace) {
			w.Workspaces = append(w.Workspaces, e.Workspace)
		}
	}
	return w
}

// all yields the spools of the sessions of all agents.
func all(dir string) iter.Seq2[*Spool, error] {
	return func(yield func(*Spool, error) bool) {
		agents, err := readDir(dir)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, agent := range agents {
			sessions, err := readDir(filepath.Join(dir, agent))
			if err != nil {
				yield(nil, err)
				return
			}
			for _, session := range sessions {
				if !yield(&Spool{dir: filepath.Join(dir, agent, session)}, nil) {
					return
				}
			}
		}
	}
}

// readDir returns the names of the directories in a directory, none if it is missing.
func readDir(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}
