package access

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"
)

// AuditName is the usual name of the audit log, in the directory of a store.
const AuditName = "audit.jsonl"

// Record is one line of the audit log. A call has two lines: one before it runs, so
// that no call goes unrecorded, and one with its result. An entry without a result,
// such as a refused call, has one line.
type Record struct {
	Schema string    `json:"schema"` // stet.audit.v1
	Time   time.Time `json:"time"`
	// ID is the same in all lines of a call.
	ID    string `json:"id"`
	Phase string `json:"phase"`
	// Token is the id of the token, never the token; Tenant owns the data. Calls from
	// the command line have neither.
	Token  string `json:"token,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	// Address is the address of the caller, without the port.
	Address string `json:"address,omitempty"`
	// Request is the id of the call in the server's log.
	Request string `json:"request,omitempty"`
	// Action is the procedure, Target its object. Both are printable and at most 256
	// bytes long.
	Action string `json:"action"`
	Target string `json:"target,omitempty"`
	// Keys lists the keys of rows that a call overwrites or removes, in printable
	// form.
	Keys []string `json:"keys,omitempty"`
	// Result is "ok" or the code of an error, if known.
	Result string `json:"result,omitempty"`
	// Seq counts the lines of the log, and Prev is the hash of the line before, so
	// that a changed or removed line can be detected; see Verify.
	Seq  uint64 `json:"seq,omitempty"`
	Prev string `json:"prev,omitempty"`
}

// The phases of a call.
const (
	PhaseBegin = "begin"
	PhaseKeys  = "keys" // between begin and end: the affected rows
	PhaseEnd   = "end"
	PhaseNote  = "note" // a line by itself
)

const (
	maxAuditText = 256 // bytes of an action or a target
	maxAuditKeys = 64  // keys in one line
)

// AuditOptions configure a log; nil gives the defaults.
type AuditOptions struct {
	// MaxFile is the size at which the file is rotated, 64 MiB if 0. Files is how
	// many rotated files are kept, 8 if 0; older ones are removed.
	MaxFile int64
	Files   int
}

// Audit is a log of destructive and refused calls, with one line of JSON for each
// step. Lines are only added, each holds the hash of the one before, and a line is
// durable when the method that adds it returns. Several processes may write one log.
// It is safe for concurrent use.
type Audit struct {
	path string
	opts AuditOptions
	mu   sync.Mutex // one line at a time
}

// OpenAudit returns the log in a file, which need not exist yet.
func OpenAudit(path string, opts *AuditOptions) *Audit {
	a := &Audit{path: path}
	if opts != nil {
		a.opts = *opts
	}
	if a.opts.MaxFile <= 0 {
		a.opts.MaxFile = 64 << 20
	}
	if a.opts.Files <= 0 {
		a.opts.Files = 8
	}
	return a
}

// Path returns the path of the log.
func (a *Audit) Path() string { return a.path }

// Begin records that a call is about to run. The call must not run if this fails.
// Pass the result to Keys and End.
func (a *Audit) Begin(who Principal, request, action, target string) (Record, error) {
	r := Record{
		ID: ulid.Make().String(), Phase: PhaseBegin, Token: who.Token, Tenant: who.Tenant,
		Request: request, Action: action, Target: target,
	}
	return r, a.add(r)
}

// Keys records the keys of rows that a call is about to overwrite or remove.
func (a *Audit) Keys(r Record, keys []string) error {
	r.Phase = PhaseKeys
	for len(keys) > 0 {
		n := min(maxAuditKeys, len(keys))
		r.Keys = make([]string, n)
		for i, key := range keys[:n] {
			r.Keys[i] = printable(key)
		}
		if err := a.add(r); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// End records the result of a call.
func (a *Audit) End(r Record, result string) error {
	r.Phase, r.Result, r.Keys = PhaseEnd, result, nil
	return a.add(r)
}

// Note adds a single line, for example for a refused call.
func (a *Audit) Note(r Record) error {
	r.ID, r.Phase = ulid.Make().String(), PhaseNote
	return a.add(r)
}

func (a *Audit) add(r Record) error {
	r.Schema, r.Time = "stet.audit.v1", time.Now().UTC()
	r.Action, r.Target = cut(printable(r.Action)), cut(printable(r.Target))
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.append(r); err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

// printable escapes characters that a terminal or a log reader could misinterpret.
func printable(text string) string {
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// cut shortens a text to the limit of a line.
func cut(text string) string {
	if len(text) <= maxAuditText {
		return text
	}
	const more = "…"
	end := maxAuditText - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}

// Records calls fn for every line of the log, oldest first, including rotated files.
// It skips a line that a crash cut off; a missing log is empty.
func (a *Audit) Records(fn func(Record) error) error {
	return a.eachLine(func(_ string, _ int, line []byte) error {
		var r Record
		if json.Unmarshal(line, &r) != nil {
			return nil
		}
		return fn(r)
	})
}
