package conversation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// SaveOptions describe a save; nil gives the defaults.
type SaveOptions struct {
	// MessageID, if set, lets the state be found by that message.
	MessageID string
	Author    string
	// Kind is KindSave by default.
	Kind Kind
	// Turn, if not nil, is kept with the save.
	Turn *TurnDetails
	// Lenient accepts a state with missing or malformed parts, as importers must.
	// Without it such a state is rejected.
	Lenient bool
	// Extend, if set, may add rows to the commit of the save. It can be called more
	// than once.
	Extend func(s Save, b *kv.Batch) error
}

// Save makes the draft the current state: one durable commit adds its blobs, the
// pointers, the entry of the history and the place in the list, or nothing. A save
// that changes nothing returns the current entry. After an error the draft is
// unchanged and can be saved again.
func (c *Conversation) Save(ctx context.Context, opts *SaveOptions) (Save, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if opts == nil {
		opts = &SaveOptions{}
	}
	if opts.MessageID != "" {
		if err := checkID("message", opts.MessageID); err != nil {
			return Save{}, err
		}
	}
	if err := c.ready(ctx); err != nil {
		return Save{}, fmt.Errorf("save conversation %s: %w", c.id, err)
	}
	s, err := c.saveLocked(ctx, opts)
	if err != nil {
		return Save{}, fmt.Errorf("save conversation %s: %w", c.id, err)
	}
	return s, nil
}

// ready checks that the handle may write and resolves an earlier uncertain commit.
func (c *Conversation) ready(ctx context.Context) error {
	if !c.writable {
		return ErrReadOnly
	}
	if c.stale {
		return ErrStale
	}
	if err := c.clearDoubt(ctx); err != nil {
		return err
	}
	return c.ensure(ctx)
}

func (c *Conversation) saveLocked(ctx context.Context, opts *SaveOptions) (Save, error) {
	a, err := c.prepare(ctx, opts)
	if err != nil {
		return Save{}, err
	}
	if a == nil {
		return c.head, nil
	}
	if err := c.commit(ctx, a); err != nil {
		return Save{}, err
	}
	c.adopt(a)
	return a.save, nil
}

// attempt is a save in progress.
type attempt struct {
	save   Save
	root   blob.Blob // without content if the root is already stored
	needs  needs
	expect []kv.Expect // besides those that every save has
	extend func(Save, *kv.Batch) error
	// lenient is as in SaveOptions.
	lenient bool
}

// prepare plans a save. It returns nil if there is nothing to save.
func (c *Conversation) prepare(ctx context.Context, opts *SaveOptions) (*attempt, error) {
	c.sealTurn()
	if c.exact.IsZero() && c.draft.wasteful() {
		if err := c.layOut(ctx); err != nil {
			return nil, err
		}
	}
	a := &attempt{root: blob.Blob{ID: c.exact}, extend: opts.Extend, lenient: opts.Lenient}
	if c.exact.IsZero() {
		a.root = c.draft.blob()
		if err := c.readable(ctx, a.root); err != nil {
			return nil, err
		}
	}
	var err error
	if a.save, err = c.next(a.root.ID, opts); err != nil {
		return nil, err
	}
	if c.head.Seq > 0 && a.root.ID == c.head.Root && opts.Extend == nil && opts.Turn == nil && a.save.Kind == KindSave &&
		(opts.MessageID == "" || opts.MessageID == c.head.MessageID) {
		return nil, nil
	}
	a.needs, err = c.closure(ctx, opts.Lenient)
	return a, err
}

// readable rejects a root beyond the limits of readers: it would be lost once saved.
func (c *Conversation) readable(ctx context.Context, root blob.Blob) error {
	if !c.draft.large() {
		return nil
	}
	whole, err := blob.Whole(ctx, c.store.blobs, root)
	if err != nil {
		return c.store.lost(c.id, "pointer", err)
	}
	return checkRoot(whole.Data)
}

func (c *Conversation) next(root blob.ID, opts *SaveOptions) (Save, error) {
	seq, err := nextSeq(c.head.Seq)
	if err != nil {
		return Save{}, err
	}
	s := Save{
		Seq: seq, Parent: c.head.Seq, Root: root, MessageID: opts.MessageID,
		Time: c.store.now(), Author: opts.Author, Turns: c.draft.turns(),
		Kind: opts.Kind, Branch: c.head.Branch, Turn: opts.Turn,
	}
	if s.Kind == 0 {
		s.Kind = KindSave
	}
	return s, nil
}

// layOut rewrites the draft's root without obsolete records.
func (c *Conversation) layOut(ctx context.Context) error {
	whole, err := blob.Whole(ctx, c.store.blobs, c.draft.blob())
	if err != nil {
		return c.store.lost(c.id, "pointer", err)
	}
	records, err := splitRoot(whole.Data)
	if err != nil {
		return err
	}
	if records, err = c.draft.live(records); err != nil {
		return err
	}
	d, err := layDraft(c.head.Root, records)
	if err != nil {
		return err
	}
	d.appended = c.draft.changed()
	c.draft = d
	return nil
}

// commit stores the blobs and the rows of a save.
func (c *Conversation) commit(ctx context.Context, a *attempt) error {
	put := a.needs.staged
	if len(a.root.Data) > 0 || a.root.Keep > 0 || a.root.ID == blob.Sum(nil) {
		put = append(put[:len(put):len(put)], a.root)
	}
	if err := c.store.blobs.Put(ctx, put...); err != nil {
		return err
	}
	again := false
	for range attempts {
		batch, err := c.batch(a)
		if err != nil {
			return err
		}
		if err := c.store.file(ctx, c.record, c.listed, a.save.Time.UnixMilli(), batch); err != nil {
			return err
		}
		err = c.store.rows.Commit(ctx, batch)
		var missing *kv.MissingBlobsError
		switch {
		case err == nil:
			return nil
		case c.store.outdated(err):
		case errors.As(err, &missing) && !again:
			// A collector ran between Put and Commit. Blobs put now belong to its
			// generation and stay.
			again = true
			if err := c.putAgain(ctx, a, missing); err != nil {
				return err
			}
		case errors.Is(err, kv.ErrConflict):
			if err := c.afterConflict(ctx, a, err); err != nil {
				return err
			}
		case errors.As(err, &missing) || errors.Is(err, kv.ErrInvalidKey) || errors.Is(err, kv.ErrInvalidBatch) || errors.Is(err, kv.ErrTooLarge):
			return err
		default:
			c.doubt = a
			return err
		}
	}
	return kv.ErrConflict
}

func (c *Conversation) batch(a *attempt) (*kv.Batch, error) {
	row, err := a.save.row()
	if err != nil {
		return nil, err
	}
	hex := []byte(a.save.Root.String())
	b := &kv.Batch{
		Expect: []kv.Expect{
			{Key: keyspace.Conversation(c.id), Version: c.version},
			{Key: keyspace.Save(c.id, a.save.Seq)},
		},
		Delete: []string{keyspace.ByTime(c.listed, c.id)},
		Set: []kv.Set{
			{Key: keyspace.Head(c.id), Value: hex},
			{Key: keyspace.Save(c.id, a.save.Seq), Value: row},
			{Key: keyspace.ByTime(a.save.Time.UnixMilli(), c.id)},
			changed(c.id),
		},
		Refs: a.needs.refs(a.root.ID),
	}
	b.Expect = append(append(b.Expect, a.expect...), a.needs.expect...)
	if a.save.MessageID != "" {
		b.Set = append(b.Set, kv.Set{Key: keyspace.MessageHead(c.id, a.save.MessageID), Value: hex})
	}
	if a.extend != nil {
		if err := a.extend(a.save, b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// putAgain stores the blobs that a commit missed, as whole blobs, because the blobs
// they extend may be gone too.
func (c *Conversation) putAgain(ctx context.Context, a *attempt, missing *kv.MissingBlobsError) error {
	var put []blob.Blob
	for _, id := range missing.IDs {
		b, ok := c.staged[id], true
		if b.ID.IsZero() {
			b, ok = a.root, id == a.root.ID && c.exact.IsZero()
		}
		if !ok {
			return missing
		}
		whole, err := blob.Whole(ctx, c.store.blobs, b)
		if err != nil {
			return err
		}
		put = append(put, whole)
	}
	return c.store.blobs.Put(ctx, put...)
}

// afterConflict returns nil if the commit may be retried: a collection began, a part
// of the history was removed, or the record changed, for example its title, but not
// its writer.
func (c *Conversation) afterConflict(ctx context.Context, a *attempt, conflict error) error {
	before := c.version
	if err := c.refresh(ctx); err != nil {
		return err
	}
	var ce *kv.ConflictError
	if errors.As(conflict, &ce) && ce.Key == keyspace.Save(c.id, c.head.Seq+1) {
		c.stale = true
		return fmt.Errorf("%w: save %d already exists", ErrStale, c.head.Seq+1)
	}
	if ce != nil && slices.ContainsFunc(a.needs.expect, func(e kv.Expect) bool { return e.Key == ce.Key }) {
		var err error
		a.needs, err = c.closure(ctx, a.lenient)
		return err
	}
	if c.version == before {
		return conflict // an expectation that Extend added
	}
	return nil
}

// adopt makes a committed save the handle's current one.
func (c *Conversation) adopt(a *attempt) {
	if c.exact.IsZero() {
		c.draft.stored(a.root)
	} else {
		c.draft, c.turn, c.exact = nil, nil, blob.ID{} // continue from the stored bytes
	}
	c.staged = make(map[blob.ID]blob.Blob)
	if c.turn != nil && !c.turn.blob.ID.IsZero() {
		c.turn.builder.Commit(c.turn.blob)
	}
	c.setHead(a.save)
	for _, id := range a.needs.firm {
		c.known.Add(id, graph.Bytes)
	}
	c.doubt = nil
}

// clearDoubt determines the outcome of a commit whose error leaves it open.
func (c *Conversation) clearDoubt(ctx context.Context) error {
	a := c.doubt
	if a == nil {
		return nil
	}
	row, err := c.store.rows.Get(ctx, keyspace.Save(c.id, a.save.Seq))
	if errors.Is(err, kv.ErrNotFound) {
		c.doubt = nil
		return nil
	}
	if err != nil {
		return err
	}
	want, err := a.save.row()
	if err != nil {
		return err
	}
	if !bytes.Equal(row.Value, want) {
		c.stale = true
		return ErrStale
	}
	c.adoptLate(a)
	return nil
}

// adoptLate takes over a save that turned out to be committed. The draft may have changed
// meanwhile, so everything staged stays; the builder continues from the blob that it
// referred to before, which is also stored.
func (c *Conversation) adoptLate(a *attempt) {
	c.setHead(a.save)
	c.doubt = nil
}
