package stet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/pack"
)

var (
	// ErrNoBucket says that a store has no bucket into which conversations could be
	// sealed.
	ErrNoBucket = errors.New("this store has no bucket for sealed conversations")
	// ErrNotIdle says that a conversation, or its agent, was used lately.
	ErrNotIdle = errors.New("conversation is not idle")
)

// SealOptions choose conversations; nil gives the defaults.
type SealOptions struct {
	// IdleFor is how long nothing must have been saved; 30 days by default, and a
	// negative value means no time at all.
	IdleFor time.Duration
	// Limit is the most conversations that are sealed; 0 means no limit.
	Limit int
	// All looks at all conversations anew, also at those that an earlier call
	// passed, and that were brought back and not changed since.
	All bool
	// DryRun only counts.
	DryRun bool
	// Progress, if set, is told of every conversation that was sealed or, with
	// DryRun, would be; then only the id is known.
	Progress func(pack.Info)
}

// SealResult counts what SealIdle did.
type SealResult struct {
	// Sealed is the number of conversations, and of agents without one.
	Sealed int
	// Skipped are those that are used, damaged, or too large.
	Skipped int
	// Objects, Bytes, Rows and Blobs count what was moved.
	Objects     int
	Bytes       int64
	Rows, Blobs uint64
}

func (r *SealResult) add(info pack.Info) {
	r.Sealed++
	r.Objects += info.Objects
	r.Bytes += info.Bytes
	r.Rows += info.Rows
	r.Blobs += info.Blobs
}

// Seal moves a conversation, with its checkpoints and its agent, or an agent
// without a conversation, into the bucket. It reads as before; whoever changes it
// brings it back. Its blobs leave the store with the next collection. Only rows
// that lists need stay: see package pack.
func (db *DB) Seal(ctx context.Context, id string) (pack.Info, error) {
	return db.sealIdle(ctx, id, time.Time{})
}

// sealIdle is Seal, and fails with ErrNotIdle for what was changed after a time,
// unless that is zero.
func (db *DB) sealIdle(ctx context.Context, id string, since time.Time) (pack.Info, error) {
	if db.packs == nil {
		return pack.Info{}, ErrNoBucket
	}
	if id == "" || len(id) > 256 {
		return pack.Info{}, fmt.Errorf("%w: no id has %d bytes", conversation.ErrInvalid, len(id))
	}
	return db.packs.Seal(ctx, id, func(ctx context.Context) (pack.Contents, error) {
		g := &gatherer{db: db, id: id, since: since, seen: make(map[string]bool)}
		return g.gather(ctx)
	})
}

// Unseal brings a conversation back into the store. It fails with
// pack.ErrNotSealed if it is there already.
func (db *DB) Unseal(ctx context.Context, id string) error {
	if db.packs == nil {
		return ErrNoBucket
	}
	return db.packs.Unseal(ctx, id)
}

// errEnough ends a list early.
var errEnough = errors.New("enough")

// Sealed gives the sealed conversations, in the order of their keys. A store
// without a bucket has none.
func (db *DB) Sealed(ctx context.Context) iter.Seq2[pack.Info, error] {
	return func(yield func(pack.Info, error) bool) {
		if db.packs == nil {
			return
		}
		err := db.packs.List(ctx, func(info pack.Info) error {
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

// SweepPacks removes objects of the bucket that no sealed conversation names and
// that are older than grace, a day if that is 0.
func (db *DB) SweepPacks(ctx context.Context, grace time.Duration) (pack.SweepResult, error) {
	if db.packs == nil {
		return pack.SweepResult{}, ErrNoBucket
	}
	return db.packs.Sweep(ctx, grace)
}

// UnsealAll brings everything back, for those who copy or rewrite whole stores.
func (db *DB) UnsealAll(ctx context.Context) error {
	for info, err := range db.Sealed(ctx) {
		if err != nil {
			return err
		}
		if err := db.Unseal(ctx, info.ID); err != nil && !errors.Is(err, pack.ErrNotSealed) {
			return err
		}
	}
	return nil
}

// sealMark is the row that says up to which place in the order by time
// conversations were looked at: those before it are sealed, or were brought back
// by somebody who wants them so.
var sealMark = keyspace.Setting("sealed-until")

// SealIdle seals all conversations that were not changed for some time, those
// changed longest ago first, and then agents that belong to none. It can be
// stopped at any time, and be run on several nodes at once.
func (db *DB) SealIdle(ctx context.Context, opts *SealOptions) (SealResult, error) {
	if db.packs == nil {
		return SealResult{}, ErrNoBucket
	}
	if opts == nil {
		opts = &SealOptions{}
	}
	idle := opts.IdleFor
	if idle == 0 {
		idle = 30 * 24 * time.Hour
	}
	run := &sealRun{db: db, opts: opts, until: time.Now().Add(-max(0, idle))}
	err := run.conversations(ctx)
	if err == nil {
		err = run.agents(ctx)
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err != nil {
		return run.result, fmt.Errorf("seal idle conversations: %w", err)
	}
	return run.result, nil
}

type sealRun struct {
	db     *DB
	opts   *SealOptions
	until  time.Time
	result SealResult
}

// sealPage is how many ids are read before any of them is sealed.
const sealPage = 128

// conversations goes through the order by time.
func (r *sealRun) conversations(ctx context.Context) error {
	in := keyspace.ByTimes()
	in.End = keyspace.ByTime(max(0, r.until.UnixMilli()), "")
	mark, err := r.db.live.Get(ctx, sealMark)
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
		for _, key := range keys {
			done, err := r.one(ctx, keyspace.Last(key))
			if stuck = stuck || !done; !stuck {
				passed = key + "\x00"
			}
			if err != nil {
				return errors.Join(err, r.pass(ctx, string(mark.Value), passed))
			}
		}
		if len(keys) < sealPage {
			return r.pass(ctx, string(mark.Value), passed)
		}
		in.Start = keys[sealPage-1] + "\x00"
	}
}

func (r *sealRun) keys(ctx context.Context, in kv.Range) (keys []string, err error) {
	if in.Empty() {
		return nil, nil
	}
	for row, err := range r.db.live.Scan(ctx, in, kv.ScanOptions{Limit: sealPage, KeysOnly: true}) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, row.Key)
	}
	return keys, nil
}

// pass moves the mark.
func (r *sealRun) pass(ctx context.Context, from, to string) error {
	if r.opts.DryRun || to <= from {
		return nil
	}
	return r.db.live.Commit(context.WithoutCancel(ctx), &kv.Batch{Set: []kv.Set{{Key: sealMark, Value: []byte(to)}}})
}

// one seals one conversation or agent. done means that nobody needs to come back
// to it before it changes.
func (r *sealRun) one(ctx context.Context, id string) (done bool, err error) {
	if r.opts.Limit > 0 && r.result.Sealed >= r.opts.Limit {
		return false, errEnough
	}
	info, err := pack.Info{ID: id}, error(nil)
	if r.opts.DryRun {
		if _, err = r.db.packs.Get(ctx, id); err == nil {
			return true, nil
		}
		g := &gatherer{db: r.db, id: id, since: r.until, seen: make(map[string]bool)}
		err = g.rowsOf(ctx)
		if err == nil && len(g.rows) == 0 {
			err = pack.ErrEmpty
		}
	} else {
		info, err = r.db.sealIdle(ctx, id, r.until)
	}
	switch {
	case err == nil:
		r.result.add(info)
		if r.opts.Progress != nil {
			r.opts.Progress(info)
		}
		return true, nil
	case errors.Is(err, pack.ErrSealed) || errors.Is(err, pack.ErrEmpty):
		return true, nil
	case errors.Is(err, ErrNotIdle) || errors.Is(err, pack.ErrChanged):
		r.result.Skipped++
		return false, nil
	case errors.Is(err, kv.ErrTooLarge) || isDamage(err):
		r.result.Skipped++ // one that is damaged keeps nobody else waiting
		return true, nil
	}
	return false, err
}

// agents goes through the agents that are not sealed.
func (r *sealRun) agents(ctx context.Context) error {
	agents := cloudagent.New(r.db.blobs, r.db.live, nil)
	for page := (cloudagent.Page{Limit: sealPage}); ; {
		found, err := agents.List(ctx, page)
		if err != nil {
			return err
		}
		r.result.Skipped += len(found.Damaged)
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
