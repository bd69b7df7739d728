package upkeep

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/abreast"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/pack"
)

var (
	// ErrNoBucket says that a store has no bucket for archived conversations.
	ErrNoBucket = fault.Named(fault.Unsupported, "no-pack-bucket", "this store has no bucket for archived conversations")
	// ErrNotIdle says that a conversation, or its agent, was used recently.
	ErrNotIdle = fault.Named(fault.Conflict, "not-idle", "conversation is not idle")
)

// ArchiveOptions select conversations; nil gives the defaults.
type ArchiveOptions struct {
	// IdleFor is the minimum time since the last save; 30 days by default, and a
	// negative value means none.
	IdleFor time.Duration
	// Limit is the maximum number of archived conversations; 0 means no limit.
	Limit int
	// All considers all conversations again, including those that were archived
	// before, brought back, and not changed since.
	All bool
	// DryRun only counts. It reads what would be moved.
	DryRun bool
	// Workers is how many conversations are archived at once; 1 by default. A fleet
	// uses more, because each waits for the database and the bucket.
	Workers int
	// Progress, if set, is called for every conversation that was archived or, with
	// DryRun, would be; then only the id is known.
	Progress func(pack.Info)
}

// ArchiveResult counts what ArchiveIdle did.
type ArchiveResult struct {
	// Archived is the number of conversations, and of agents without one.
	Archived int
	// Skipped counts those that are in use, damaged or too large: the sum of InUse,
	// Damaged and TooLarge.
	Skipped, InUse, TooLarge int
	// Damaged lists those that cannot be read.
	Damaged []conversation.Unreadable
	// Objects, Bytes, Rows and Blobs count what was moved.
	Objects     int
	Bytes       int64
	Rows, Blobs uint64
}

func (r *ArchiveResult) add(info pack.Info) {
	r.Archived++
	r.Objects += info.Objects
	r.Bytes += info.Bytes
	r.Rows += info.Rows
	r.Blobs += info.Blobs
}

// Archive moves a conversation, with its checkpoints and its agent, or an agent
// without a conversation, into the bucket. It can be read as before; a change brings
// it back. Its blobs leave the store with the next collection. Only rows that lists
// need stay: see package pack.
func (s *Service) Archive(ctx context.Context, id string) (pack.Info, error) {
	return s.archiveIdle(ctx, id, time.Time{})
}

// archiveIdle is Archive, but fails with ErrNotIdle if the conversation changed after
// a time, unless that is zero.
func (s *Service) archiveIdle(ctx context.Context, id string, since time.Time) (pack.Info, error) {
	if s.stores.Packs == nil {
		return pack.Info{}, ErrNoBucket
	}
	if id == "" || len(id) > 256 {
		return pack.Info{}, fmt.Errorf("%w: no id has %d bytes", conversation.ErrInvalid, len(id))
	}
	return s.stores.Packs.Archive(ctx, id, func(ctx context.Context) (pack.Contents, error) {
		return s.gather(ctx, id, since)
	})
}

// CheckArchive reads what Archive would move, and moves nothing. It fails with
// pack.ErrArchived or pack.ErrEmpty, or because something is damaged.
func (s *Service) CheckArchive(ctx context.Context, id string) error {
	return s.checkArchive(ctx, id, time.Time{})
}

func (s *Service) checkArchive(ctx context.Context, id string, since time.Time) error {
	if s.stores.Packs == nil {
		return ErrNoBucket
	}
	switch _, err := s.stores.Packs.Get(ctx, id); {
	case err == nil:
		return pack.ErrArchived
	case !errors.Is(err, pack.ErrNotArchived):
		return err
	}
	contents, err := s.gather(ctx, id, since)
	if err == nil && len(contents.Rows) == 0 {
		err = pack.ErrEmpty
	}
	return err
}

// Unarchive brings a conversation back into the store. It fails with
// pack.ErrNotArchived if it is not archived.
func (s *Service) Unarchive(ctx context.Context, id string) error {
	if s.stores.Packs == nil {
		return ErrNoBucket
	}
	if err := s.stores.Packs.Unarchive(ctx, id); err != nil {
		return err
	}
	if _, err := s.stores.Rows.Get(ctx, keyspace.Conversation(id)); err != nil {
		return nil // an agent without one
	}
	// A search index may have dropped it.
	return conversation.New(s.stores.Blobs, s.stores.Rows, nil).Changed(ctx, id)
}

// errEnough ends a list early.
var errEnough = errors.New("enough")

// Archived yields the archived conversations, in the order of their keys. A store
// without a bucket has none.
func (s *Service) Archived(ctx context.Context) iter.Seq2[pack.Info, error] {
	return func(yield func(pack.Info, error) bool) {
		if s.stores.Packs == nil {
			return
		}
		err := s.stores.Packs.List(ctx, func(info pack.Info) error {
			if !yield(info, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(pack.Info{}, err)
		}
	}
}

// SweepPacks removes objects of the bucket that no archived conversation names and
// that are older than grace, a day if that is 0.
func (s *Service) SweepPacks(ctx context.Context, grace time.Duration) (pack.SweepResult, error) {
	if s.stores.Packs == nil {
		return pack.SweepResult{}, ErrNoBucket
	}
	return s.stores.Packs.Sweep(ctx, grace)
}

// UnarchiveAll brings everything back, for callers that copy or rewrite whole stores.
func (s *Service) UnarchiveAll(ctx context.Context) error {
	for info, err := range s.Archived(ctx) {
		if err != nil {
			return err
		}
		if err := s.Unarchive(ctx, info.ID); err != nil && !errors.Is(err, pack.ErrNotArchived) {
			return err
		}
	}
	return nil
}

// archiveMark is the row with the place in the order by time up to which
// conversations were processed: those before it are archived, or were brought back on
// purpose.
var archiveMark = keyspace.Setting("sealed-until")

// ArchiveIdle archives all conversations that were not changed for some time, least
// recently changed first, and then agents without a conversation. It can be stopped
// at any time, and be run on several nodes at once.
func (s *Service) ArchiveIdle(ctx context.Context, opts *ArchiveOptions) (ArchiveResult, error) {
	if s.stores.Packs == nil {
		return ArchiveResult{}, ErrNoBucket
	}
	if opts == nil {
		opts = &ArchiveOptions{}
	}
	idle := opts.IdleFor
	if idle == 0 {
		idle = 30 * 24 * time.Hour
	}
	now := time.Now()
	run := &archiveRun{Service: s, opts: opts, until: now.Add(-idle), now: now, seen: make(map[string]bool)}
	if idle < 0 {
		run.until = now.Truncate(time.Millisecond).Add(time.Millisecond) // includes changes in this millisecond
	}
	err := run.conversations(ctx)
	if err == nil {
		err = run.agents(ctx)
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err != nil {
		return run.result, fmt.Errorf("archive idle conversations: %w", err)
	}
	return run.result, nil
}

type archiveRun struct {
	*Service
	opts   *ArchiveOptions
	until  time.Time
	now    time.Time
	seen   map[string]bool // an agent may have the id of its conversation
	result ArchiveResult
	// outcomes are what was tried ahead, with several workers.
	outcomes map[string]outcome
}

// outcome is how the archiving of one conversation ended.
type outcome struct {
	info pack.Info
	err  error
}

// try archives one conversation or agent.
func (r *archiveRun) try(ctx context.Context, id string) (o outcome) {
	o.info.ID = id
	if r.opts.DryRun {
		o.err = r.checkArchive(ctx, id, r.until)
	} else {
		o.info, o.err = r.archiveIdle(ctx, id, r.until)
	}
	return o
}

// ahead archives the next conversations concurrently, unless their outcomes are
// known. They are counted in order.
func (r *archiveRun) ahead(ctx context.Context, keys []string) {
	if _, known := r.outcomes[keyspace.Last(keys[0])]; known || r.opts.Workers <= 1 {
		return
	}
	n := min(len(keys), 4*r.opts.Workers)
	if r.opts.Limit > 0 {
		n = min(n, r.opts.Limit-r.result.Archived)
	}
	ids := make([]string, 0, max(n, 0))
	for i := range n {
		if id := keyspace.Last(keys[i]); !r.seen[id] {
			ids = append(ids, id)
		}
	}
	found, _ := abreast.All(ids, r.opts.Workers, func(id string) (outcome, error) { return r.try(ctx, id), nil })
	r.outcomes = make(map[string]outcome, len(ids))
	for i, id := range ids {
		r.outcomes[id] = found[i]
	}
}

// archivePage is how many ids are read before any of them is archived.
const archivePage = 128

// conversations goes through the order by time.
func (r *archiveRun) conversations(ctx context.Context) error {
	in := keyspace.ByTimes()
	in.End = keyspace.ByTime(max(0, r.until.UnixMilli()), "")
	mark, err := r.stores.Live.Get(ctx, archiveMark)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	if start := string(mark.Value); err == nil && !r.opts.All && start > in.Start {
		in.Start = start
	}
	passed := in.Start // everything before it is done
	for stuck := false; ; {
		keys, err := r.keys(ctx, in)
		if err != nil {
			return err
		}
		for i, key := range keys {
			r.ahead(ctx, keys[i:])
			done, err := r.one(ctx, keyspace.Last(key))
			if stuck = stuck || !done; !stuck {
				passed = key + "\x00"
			}
			if err != nil {
				return errors.Join(err, r.pass(ctx, string(mark.Value), passed))
			}
		}
		if len(keys) < archivePage {
			return r.pass(ctx, string(mark.Value), passed)
		}
		in.Start = keys[archivePage-1] + "\x00"
	}
}

func (r *archiveRun) keys(ctx context.Context, in kv.Range) (keys []string, err error) {
	if in.Empty() {
		return nil, nil
	}
	for row, err := range r.stores.Live.Scan(ctx, in, kv.ScanOptions{Limit: archivePage, KeysOnly: true}) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, row.Key)
	}
	return keys, nil
}

// pass moves the mark, but never beyond the present millisecond, in which others may still be
// changed.
func (r *archiveRun) pass(ctx context.Context, from, to string) error {
	to = min(to, keyspace.ByTime(max(0, r.now.UnixMilli()), ""))
	if r.opts.DryRun || to <= from {
		return nil
	}
	return r.stores.Live.Commit(context.WithoutCancel(ctx), &kv.Batch{Set: []kv.Set{{Key: archiveMark, Value: []byte(to)}}})
}

// one archives one conversation or agent. done means that nothing is left to do
// before it changes.
func (r *archiveRun) one(ctx context.Context, id string) (done bool, err error) {
	if r.opts.Limit > 0 && r.result.Archived >= r.opts.Limit {
		return false, errEnough
	}
	if r.seen[id] {
		return true, nil
	}
	r.seen[id] = true
	o, known := r.outcomes[id]
	if !known {
		o = r.try(ctx, id)
	}
	delete(r.outcomes, id)
	info, err := o.info, o.err
	switch {
	case err == nil:
		r.result.add(info)
		if r.opts.Progress != nil {
			r.opts.Progress(info)
		}
		return true, nil
	case errors.Is(err, pack.ErrArchived) || errors.Is(err, pack.ErrEmpty):
		return true, nil
	case errors.Is(err, ErrNotIdle) || errors.Is(err, pack.ErrChanged):
		r.result.Skipped++
		r.result.InUse++
		return false, nil
	case isDamage(err): // it does not hold up the others
		r.result.Skipped++
		r.result.Damaged = append(r.result.Damaged, conversation.Unreadable{ID: id, Err: err})
		return true, nil
	case errors.Is(err, kv.ErrTooLarge):
		r.result.Skipped++
		r.result.TooLarge++
		return true, nil
	}
	return false, err
}

// agents goes through the agents that are not archived.
func (r *archiveRun) agents(ctx context.Context) error {
	agents := cloudagent.New(r.stores.Blobs, r.stores.Live, nil)
	for page := (cloudagent.Page{Limit: archivePage}); ; {
		found, err := agents.List(ctx, page)
		if err != nil {
			return err
		}
		r.result.Skipped += len(found.Damaged)
		for _, bad := range found.Damaged {
			r.result.Damaged = append(r.result.Damaged, conversation.Unreadable(bad))
		}
		for _, a := range found.Agents {
			if !a.Updated.Before(r.until) {
				continue
			}
			if _, err := r.one(ctx, a.ID); err != nil {
				return err
			}
		}
		if found.Next == "" {
			return nil
		}
		page.After = found.Next
	}
}
