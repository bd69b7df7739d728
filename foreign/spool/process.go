package spool

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/internal/osfile"
)

// processFile names the process that has a session open.
const processFile = "process.json"

// OpenSession is a session that an agent has open, at work or between turns.
type OpenSession struct {
	Agent, Session string
	// Workspace is the directory in which the agent works.
	Workspace string
	// Process is the agent.
	Process checkpoint.Process
	// Last is when the last event of the session came.
	Last time.Time `json:"-"`
}

// SetOpen records which process has the session open. The file is replaced as a
// whole, so readers find the old or the new one. It is not synced: a process does not
// survive a crash of the system.
func (s *Spool) SetOpen(o OpenSession) error {
	o.Last = time.Time{}
	if have, err := s.opened(); err == nil && have == o {
		return nil
	}
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, processFile+"-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = osfile.Rename(f.Name(), filepath.Join(s.dir, processFile))
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// SetClosed records that a process has closed the session, unless another one has
// opened it since.
func (s *Spool) SetClosed(p checkpoint.Process) error {
	have, err := s.opened()
	if err != nil || have.Process != p {
		return nil // nothing to remove: a file that cannot be read names nobody
	}
	err = os.Remove(filepath.Join(s.dir, processFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *Spool) opened() (o OpenSession, err error) {
	data, err := os.ReadFile(filepath.Join(s.dir, processFile))
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	return o, err
}

// Opened returns the sessions of all agents whose process is running.
func Opened(dir string) ([]OpenSession, error) {
	var out []OpenSession
	for s, err := range all(dir) {
		if err != nil {
			return nil, err
		}
		o, err := s.opened()
		if err != nil || o.Process.Life() != checkpoint.Alive {
			continue
		}
		o.Last = s.Last()
		out = append(out, o)
	}
	return out, nil
}
