package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/agents"
	"github.com/stet-dev/stet/internal/osfile"
)

// Agents delete old sessions. What the store does not have of them is copied once a day,
// in a process of its own, when a session of a connected agent begins.
const (
	earlierEvery = 24 * time.Hour
	earlierLimit = time.Hour
)

// earlierNote is what the file {agent}.earlier, beside the spool, says about the sessions that
// hooks did not copy. The process that copies them holds a lock on {agent}.earlier.lock.
type earlierNote struct {
	// Time is when all were copied last.
	Time time.Time `json:"time"`
	// Damaged counts the parts that could not be read then.
	Damaged int `json:"damaged,omitempty"`
	// Declined means that the user does not want them.
	Declined bool `json:"declined,omitempty"`
}

// due reports whether they are copied again. A time that lies ahead, by a clock that was
// wrong, does not put that off for long.
func (e earlierNote) due(at time.Time) bool {
	return !e.Declined && at.Sub(e.Time).Abs() >= earlierEvery
}

// earlierPath is the file for an agent.
func (a *app) earlierPath(agent string) (string, error) {
	dir, err := a.hookDir()
	return filepath.Join(dir, agent+".earlier"), err
}

// readEarlier reads the file. One that is missing or damaged says nothing.
func readEarlier(path string) (e earlierNote) {
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &e) != nil {
		return earlierNote{}
	}
	return e
}

// noteEarlier changes the file of an agent.
func (a *app) noteEarlier(agent string, change func(*earlierNote)) error {
	path, err := a.earlierPath(agent)
	if err != nil {
		return err
	}
	e := readEarlier(path)
	change(&e)
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), agent+"-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already if it was renamed
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return osfile.Rename(f.Name(), path)
}

// wantedEarlier notes that the user had all sessions of an agent copied.
func (a *app) wantedEarlier(agent string, damaged int) error {
	return a.noteEarlier(agent, func(e *earlierNote) { *e = earlierNote{Time: now().UTC(), Damaged: damaged} })
}

// declineEarlier notes that the user does not want the earlier sessions of an agent.
func (a *app) declineEarlier(agent string) error {
	return a.noteEarlier(agent, func(e *earlierNote) { e.Declined = true })
}

// hookEarlier is what earlierBehind starts.
func (a *app) hookEarlier(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%w: stet hook --earlier needs an agent", foreign.ErrEvent)
	}
	standBack()
	ctx, cancel := context.WithTimeout(ctx, earlierLimit)
	defer cancel()
	return a.copyEarlier(ctx, args[0])
}

// earlierBehind starts a process that copies the sessions of an agent that hooks did not
// copy, if that is due and no other process does it.
func (a *app) earlierBehind(agent string) error {
	path, err := a.earlierPath(agent)
	if err != nil || !a.background || !readEarlier(path).due(now()) {
		return err
	}
	lock, err := osfile.OpenAlone(path + ".lock")
	if errors.Is(err, osfile.ErrInUse) {
		return nil // another process does it
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if !readEarlier(path).due(now()) {
		return nil // another process has just done it
	}
	store, err := a.lastingPlace()
	if err != nil {
		return err
	}
	// The process has the locked file as its input, so that the lock lasts until it ends,
	// however it ends.
	return a.behind(store, lock, "GOMAXPROCS=1", "hook", "--earlier", agent)
}

// copyEarlier copies what the store does not have of the sessions of an agent. What was
// copied before it is interrupted is not copied again.
func (a *app) copyEarlier(ctx context.Context, agent string) error {
	adapter, err := agents.Find(agent)
	if err != nil {
		return err
	}
	host, err := foreign.ThisHost()
	if err != nil {
		return err
	}
	path, err := a.earlierPath(agent)
	if err != nil {
		return err
	}
	found, err := findSessions(adapter.Sessions(ctx, host), nil)
	if err != nil {
		return err
	}
	damaged := len(found.errs)
	if len(found.list) > 0 { // else no store is made for nothing
		totals, err := a.copySessions(ctx, adapter, found, importFlags{})
		if err != nil {
			return fmt.Errorf("some earlier sessions of %s were not copied: %w", agent, err)
		}
		damaged = totals.Damaged()
	}
	if n := damaged - readEarlier(path).Damaged; n > 0 { // it is reported once
		a.hookFailed(agent, fmt.Errorf("%s of earlier sessions cannot be read; 'stet import --from %s' lists them", plural(int64(n), "part"), agent))
	}
	return a.noteEarlier(agent, func(e *earlierNote) { e.Time, e.Damaged = now().UTC(), damaged })
}
