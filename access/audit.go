package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/oklog/ulid/v2"
)

// AuditName is the usual name of the audit log, in the directory of a store.
const AuditName = "audit.jsonl"

// Record is one line of the audit log. A call has two: one before it is done, so
// that nothing happens unseen, and one with its result.
type Record struct {
	Schema string    `json:"schema"` // stet.audit.v1
	Time   time.Time `json:"time"`
	// ID is the same in both lines of a call.
	ID    string `json:"id"`
	Phase string `json:"phase"` // begin or end
	// Token is the id of the token, never the token; Tenant is whose data it is.
	// Calls from the command line have neither.
	Token  string `json:"token,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	// Request is the id under which the server's log has the call.
	Request string `json:"request,omitempty"`
	// Action is what was called, Target what it was about.
	Action string `json:"action"`
	Target string `json:"target,omitempty"`
	// Result is "ok" or the code of an error; only in the second line.
	Result string `json:"result,omitempty"`
}

// The phases of a call.
const (
	PhaseBegin = "begin"
	PhaseEnd   = "end"
)

// Audit is a log of calls that take something away, one line of JSON for each
// step. Lines are only ever added, and durable when Begin and End return. Several
// processes may write one log. It is safe for concurrent use.
type Audit struct {
	path string
	mu   sync.Mutex // one line at a time
}

// OpenAudit returns the log in a file, which need not exist yet.
func OpenAudit(path string) *Audit { return &Audit{path: path} }

// Path returns where the log is.
func (a *Audit) Path() string { return a.path }

// Begin notes that something is about to be done. It must not be done if this
// fails. The result is what End wants back.
func (a *Audit) Begin(who Principal, request, action, target string) (Record, error) {
	r := Record{
		ID: ulid.Make().String(), Phase: PhaseBegin, Token: who.Token, Tenant: who.Tenant,
		Request: request, Action: action, Target: target,
	}
	return r, a.add(r)
}

// End notes what came of it.
func (a *Audit) End(r Record, result string) error {
	r.Phase, r.Result = PhaseEnd, result
	return a.add(r)
}

func (a *Audit) add(r Record) error {
	r.Schema, r.Time = "stet.audit.v1", time.Now().UTC()
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.append(append(line, '\n')); err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

// append opens the file each time, so that it may be moved away while the server
// runs, and locks it against other processes.
func (a *Audit) append(line []byte) (err error) {
	lock := flock.New(a.path + ".lock")
	if err := lock.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	f, err := os.OpenFile(a.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	torn, err := endsTorn(f)
	if err != nil {
		return err
	}
	if torn { // a line that a crash cut off stays one line
		line = append([]byte{'\n'}, line...)
	}
	if _, err := f.Write(line); err != nil {
		return err
	}
	return f.Sync()
}

func endsTorn(f *os.File) (bool, error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil || end == 0 {
		return false, err
	}
	var last [1]byte
	_, err = f.ReadAt(last[:], end-1)
	return last[0] != '\n', err
}

// Records calls fn for every line of the log, the oldest first. A line that a
// crash cut off is left out; a missing log is empty.
func (a *Audit) Records(fn func(Record) error) error {
	f, err := os.Open(a.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	defer f.Close()
	return eachLine(f, func(line []byte) error {
		var r Record
		if json.Unmarshal(line, &r) != nil {
			return nil
		}
		return fn(r)
	})
}
