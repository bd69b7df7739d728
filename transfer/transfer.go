package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/conversation/wirelimit"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrNotFound says that the source has no such conversation.
	ErrNotFound = fault.Named(fault.NotFound, "source-not-found", "conversation not found")
	// ErrChanged says that another writer changed the conversation in the meantime.
	// Trying again helps.
	ErrChanged = fault.Named(fault.Stale, "changed-while-moved", "the conversation changed meanwhile")
	// ErrPlain says that contents of an encrypted store would be written to one that
	// is not.
	ErrPlain = fault.New(fault.Conflict, "the source is encrypted and the target is not")
	// ErrNotAll says that Everything was set although some conversations were named.
	ErrNotAll = fault.New(fault.Invalid, "a copy of everything cannot name conversations")
	// ErrIncomplete says that the source lacks a blob that it needs.
	ErrIncomplete = fault.Named(fault.Damaged, "source-incomplete", "the source is damaged")
)

// Side is one of the two stores.
type Side struct {
	Blobs blob.Store
	Rows  kv.Store
	// Encrypted means that the store seals its data.
	Encrypted bool
	// Stored, if both sides have it and seal alike, moves blobs in stored form:
	// sealed ones are not opened and sealed again, and differences stay differences.
	Stored Stored
}

// Options configure a transfer; nil gives the defaults.
type Options struct {
	// Force moves the head of a diverged conversation. The target's saves stay in its
	// history as a branch.
	Force bool
	// DryRun determines what would be moved and moves nothing.
	DryRun bool
	// Everything also moves what belongs to no conversation: checkpoints without one, agents with
	// their logs, threads, documents, streams, pins, the log of operations. It requires that all
	// conversations are moved.
	Everything bool
	// AllowPlain allows copying an encrypted store into an unencrypted one.
	AllowPlain bool
	// Progress, if set, is called from time to time with what was moved so far.
	Progress func(Report)
}

// Status is the result for a conversation.
type Status string

// The statuses.
const (
	// Created means that the target did not have it.
	Created Status = "created"
	// Updated means that the target was behind.
	Updated Status = "updated"
	// Current means that both have the same head.
	Current Status = "current"
	// Ahead means that the target has everything and more, so nothing had to be done.
	Ahead Status = "ahead"
	// Diverged means that both sides were continued, and nothing was done.
	Diverged Status = "diverged"
	// Forced means that both sides were continued, and the source's head was taken.
	Forced Status = "forced"
	// Failed means that one side cannot read the conversation, or that the target
	// could not read it afterwards; Moved.Err says why. The others were moved.
	Failed Status = "failed"
)

// Moved is the result of one conversation.
type Moved struct {
	ID    string
	Title string
	// TitleThere is the title that the target has and keeps, if it is another one: a title
	// has no history that says which is newer.
	TitleThere string
	Status     Status
	// Saves and Checkpoints count what was added, Rows other rows: message heads, JSON
	// checkpoints, tool calls of runs.
	Saves, Checkpoints, Rows int
	// Err is the cause of a failure.
	Err error
}

// Report is the result of a transfer.
type Report struct {
	Conversations []Moved
	// Blobs and Bytes count sent blobs; Present counts blobs that the target had.
	Blobs, Present int
	Bytes          int64
	// Checkpoints, Agents, Pins and Operations count what belongs to no conversation;
	// see Options.Everything.
	Checkpoints, Agents, Pins, Operations int
	// Left names what differs at the target and was left alone.
	Left []string
	// Missing counts blobs that the source lacks although rows other than saves and
	// checkpoints name them. The rows were moved.
	Missing int
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

// Run copies conversations, all of them if none is named, from one store to the
// other. It examines a conversation as a whole before it writes any of it: data that
// readers would reject is not written. A failed conversation does not affect the
// others; the error is then a *FailedError. After any other error the report counts
// what was moved; a repeated Run continues from there.
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
	if m.opts.Everything && !all {
		return m.report, ErrNotAll
	}
	if all {
		var err error
		if ids, err = service(from).IDs(ctx, "", 0); err != nil {
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
	if m.opts.Everything {
		m.forget()
		if err := m.everything(ctx); err != nil {
			return m.report, err
		}
		failed.Errs = append(failed.Errs, m.damaged...)
	}
	if len(failed.Errs) > 0 {
		return m.report, failed
	}
	return m.report, nil
}

// FailedError means that some conversations or checkpoints were not moved; the others were.
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

// ofOne reports whether an error concerns a conversation rather than a store.
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

// failed records the failure of a conversation.
func (m *mover) failed(id string, err error) {
	list := m.report.Conversations
	if n := len(list); n == 0 || list[n-1].ID != id {
		m.report.Conversations = append(list, Moved{ID: id})
	}
	at := &m.report.Conversations[len(m.report.Conversations)-1]
	at.Status, at.Err = Failed, err
}

// service returns the conversations of a side.
func service(s Side) *conversation.Store { return conversation.New(s.Blobs, s.Rows, nil) }

// conversation moves one conversation: it examines all of it, then adds saves in
// order, then checkpoints.
func (m *mover) conversation(ctx context.Context, id string) error {
	m.root, m.before = blob.ID{}, blob.ID{}
	here, err := service(m.from).Records(ctx, id)
	if err != nil {
		return err
	}
	if here.Conversation == nil {
		return ErrNotFound
	}
	there, err := service(m.to).Records(ctx, id)
	if err != nil {
		return err
	}
	moved := Moved{ID: id, Title: here.Conversation.GetTitle()}
	if there.Conversation != nil && there.Conversation.GetTitle() != moved.Title {
		moved.TitleThere = there.Conversation.GetTitle()
	}
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
	// Contents are compared with the claims of trees when they are sent, so they go
	// before the first row.
	for _, one := range checkpoints {
		if err := m.send(ctx, one.ids); err != nil {
			return fmt.Errorf("checkpoint %s: %w", one.rec.GetId(), err)
		}
	}
	if err := m.saves(ctx, here, there, p, saves, at); err != nil {
		return err
	}
	if err := m.checkpoints(ctx, checkpoints, at); err != nil {
		return err
	}
	return m.attached(ctx, id, at)
}
