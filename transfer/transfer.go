package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/conversation/wirelimit"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrNotFound says that the source has no such conversation.
	ErrNotFound = errors.New("there is no such conversation")
	// ErrChanged says that somebody else wrote to the conversation meanwhile.
	// Doing it again helps.
	ErrChanged = errors.New("the conversation was changed meanwhile")
	// ErrPlain says that contents of an encrypted store would be written to one that
	// is not.
	ErrPlain = errors.New("the source is encrypted and the target is not")
	// ErrIncomplete says that the source lacks a blob that it needs.
	ErrIncomplete = errors.New("the source is damaged")
)

// Side is one of the two stores.
type Side struct {
	Blobs blob.Store
	Rows  kv.Store
	// Encrypted says that the store seals what it keeps.
	Encrypted bool
	// Stored, if both sides have it and seal alike, moves blobs as they are kept:
	// sealed ones are not opened and sealed again, and differences stay differences.
	Stored Stored
}

// Options shape a transfer; nil gives the defaults.
type Options struct {
	// Force moves the head of a conversation that has diverged. What the target had
	// stays in its history, as a branch.
	Force bool
	// DryRun finds out what would be moved and moves nothing.
	DryRun bool
	// AllowPlain lets an encrypted store be copied into one that is not.
	AllowPlain bool
	// Progress, if set, is called now and then with what was moved so far.
	Progress func(Report)
}

// Status says what became of a conversation.
type Status string

// The statuses.
const (
	// Created says that the target did not have it.
	Created Status = "created"
	// Updated says that the target was behind.
	Updated Status = "updated"
	// Current says that both have the same head.
	Current Status = "current"
	// Ahead says that the target has everything, and more: there was nothing to do.
	Ahead Status = "ahead"
	// Diverged says that both went on, and nothing was done.
	Diverged Status = "diverged"
	// Forced says that both went on, and the source's head was taken.
	Forced Status = "forced"
	// Failed says that the conversation cannot be read at one of the sides, or that
	// the target would not be able to read it; Moved.Err says why. The others were
	// moved.
	Failed Status = "failed"
)

// Moved tells about one conversation.
type Moved struct {
	ID     string
	Title  string
	Status Status
	// Saves and Checkpoints count what was added.
	Saves, Checkpoints int
	// Err is why it failed, if it did.
	Err error
}

// Report is the outcome of a transfer.
type Report struct {
	Conversations []Moved
	// Blobs and Bytes count what was sent; Present counts what the target had.
	Blobs, Present int
	Bytes          int64
}

// Diverged returns the conversations that were left alone.
func (r *Report) Diverged() []string {
	var ids []string
	for _, c := range r.Conversations {
		if c.Status == Diverged {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Run moves conversations, all of them if none is named, from one store to the
// other. A conversation is looked at as a whole before anything of it is written:
// what readers would refuse stays out, and leaves no row behind. One that fails does
// not keep the others from being moved; the error is then a *FailedError. After
// another error the report tells what had been moved; doing it again goes on from
// there.
func Run(ctx context.Context, from, to Side, ids []string, opts *Options) (*Report, error) {
	m := &mover{from: from, to: to, report: &Report{}}
	m.forget()
	if opts != nil {
		m.opts = *opts
	}
	if from.Encrypted && !to.Encrypted && !m.opts.AllowPlain {
		return m.report, ErrPlain
	}
	all := len(ids) == 0
	if all {
		var err error
		if ids, err = allConversations(ctx, from.Rows); err != nil {
			return m.report, err
		}
	}
	failed := &FailedError{}
	for _, id := range ids {
		err := m.conversation(ctx, id)
		if err == nil || all && errors.Is(err, ErrNotFound) { // deleted since it was listed
			continue
		}
		err = fmt.Errorf("move conversation %s: %w", id, err)
		if ctx.Err() != nil || !ofOne(err) {
			return m.report, err
		}
		m.failed(id, err)
		failed.Errs = append(failed.Errs, err)
		m.forget()
	}
	if len(failed.Errs) > 0 {
		return m.report, failed
	}
	return m.report, nil
}

// FailedError says that some conversations were not moved, and the others were.
type FailedError struct{ Errs []error }

func (e *FailedError) Error() string {
	texts := make([]string, len(e.Errs))
	for i, err := range e.Errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the error of each conversation.
func (e *FailedError) Unwrap() []error { return e.Errs }

// ofOne reports whether an error is about a conversation and not about a store.
func ofOne(err error) bool {
	for _, class := range []error{
		ErrNotFound, ErrChanged, ErrIncomplete, blob.ErrCorrupt, blob.ErrInvalidID, blob.ErrMismatch, kv.ErrInvalidKey, kv.ErrInvalidBatch, kv.ErrTooLarge,
		graph.ErrMalformed, graph.ErrTooDeep, wirelimit.ErrMalformed, wirelimit.ErrExceeded, workspace.ErrBadNode, workspace.ErrBadPath,
	} {
		if errors.Is(err, class) {
			return true
		}
	}
	return kv.Damaged(err)
}

// failed notes what became of a conversation.
func (m *mover) failed(id string, err error) {
	list := m.report.Conversations
	if n := len(list); n == 0 || list[n-1].ID != id {
		m.report.Conversations = append(list, Moved{ID: id})
	}
	at := &m.report.Conversations[len(m.report.Conversations)-1]
	at.Status, at.Err = Failed, err
}

func allConversations(ctx context.Context, rows kv.Store) ([]string, error) {
	var ids []string
	for row, err := range rows.Scan(ctx, keyspace.Conversations(), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return nil, fmt.Errorf("list conversations: %w", err)
		}
		ids = append(ids, keyspace.Last(row.Key))
	}
	return ids, nil
}

// conversation moves one conversation: first all of it is looked at, then saves are
// added in their order, then checkpoints.
func (m *mover) conversation(ctx context.Context, id string) error {
	m.root, m.before = blob.ID{}, blob.ID{}
	here, err := load(ctx, m.from.Rows, id)
	if err != nil {
		return err
	}
	if here.record == nil {
		return ErrNotFound
	}
	there, err := load(ctx, m.to.Rows, id)
	if err != nil {
		return err
	}
	moved := Moved{ID: id, Title: here.record.GetTitle()}
	p := compare(here, there)
	if moved.Status = p.status; p.status == Diverged && m.opts.Force {
		moved.Status = Forced
	}
	m.report.Conversations = append(m.report.Conversations, moved)
	at := &m.report.Conversations[len(m.report.Conversations)-1]
	if moved.Status == Diverged {
		return nil
	}
	saves, err := m.lookAtSaves(ctx, p)
	if err != nil {
		return err
	}
	checkpoints, err := m.lookAtCheckpoints(ctx, id)
	if err != nil {
		return err
	}
	// Contents are compared with what trees claim about them when they are sent, so
	// they go before the first row.
	for _, one := range checkpoints {
		if err := m.send(ctx, one.ids); err != nil {
			return fmt.Errorf("checkpoint %s: %w", one.rec.GetId(), err)
		}
	}
	if err := m.saves(ctx, here, there, p, saves, at); err != nil {
		return err
	}
	return m.checkpoints(ctx, checkpoints, at)
}
