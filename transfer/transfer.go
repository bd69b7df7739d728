package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
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
)

// Moved tells about one conversation.
type Moved struct {
	ID     string
	Title  string
	Status Status
	// Saves and Checkpoints count what was added.
	Saves, Checkpoints int
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
// other. After an error the report tells what had been moved; doing it again goes
// on from there.
func Run(ctx context.Context, from, to Side, ids []string, opts *Options) (*Report, error) {
	m := &mover{from: from, to: to, report: &Report{}, listed: make(map[blob.ID]struct{}), sent: make(map[blob.ID]struct{})}
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
	for _, id := range ids {
		err := m.conversation(ctx, id)
		if all && errors.Is(err, ErrNotFound) {
			continue // deleted since it was listed
		}
		if err != nil {
			return m.report, fmt.Errorf("move conversation %s: %w", id, err)
		}
	}
	return m.report, nil
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

// conversation moves one conversation: saves in their order, then checkpoints.
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
	if err := m.saves(ctx, here, there, p, at); err != nil {
		return err
	}
	return m.checkpoints(ctx, id, at)
}
