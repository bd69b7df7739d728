package pack

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Commit implements kv.Store. If a batch touches an archived conversation, the
// conversation is brought back first, or removed with its packs if the batch removes
// it. Deleted ranges that span conversations or agents affect only the database.
func (r *rowLayer) Commit(ctx context.Context, b *kv.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	if err := checkOwn(b); err != nil {
		return err
	}
	c := &commit{s: r.s, given: b, guards: guardsOf(b), notes: make(map[string]uint64)}
	c.needless = slices.DeleteFunc(slices.Clone(c.guards), func(guard string) bool { return !c.implied(guard) })
	return c.run(ctx)
}

// guardsOf returns the guards of everything that a batch touches.
func guardsOf(b *kv.Batch) []string {
	var guards []string
	add := func(guard string) {
		if guard != "" && !slices.Contains(guards, guard) {
			guards = append(guards, guard)
		}
	}
	for _, e := range b.Expect {
		add(guardOf(e.Key))
	}
	for _, key := range b.Delete {
		add(guardOf(key))
	}
	for _, s := range b.Set {
		add(guardOf(s.Key))
	}
	for _, rng := range b.DeleteRange {
		add(guardOfRange(rng))
	}
	return guards
}

// commit is a batch in progress.
type commit struct {
	s      *Store
	given  *kv.Batch
	guards []string
	notes  map[string]uint64 // guards that are notes of a running archiving, by version: removed with the batch
	drop   *entry            // removed with the batch
	expect []kv.Expect       // of the batch, with current versions; nil means as given
	// needless are guards that the batch's own expectations imply. Expecting an
	// absent row is expensive if the database cannot lock absent rows.
	needless []string
}

// implied reports whether a batch without a guard fails whenever it would with it,
// and also makes a running archiving fail.
func (c *commit) implied(guard string) bool {
	if !keyspace.Packs().Contains(guard) {
		// Archiving removes the record and expects it unchanged. The record of an agent
		// also covers its events, and must change with them.
		key := keyspace.Unpacked(guard)
		return c.expects(key) != 0 && (!keyspace.Agents().Contains(key) || c.writes(key))
	}
	// Archiving rewrites the record of a conversation and expects the head unchanged.
	id := keyspace.Last(guard)
	version := c.expects(keyspace.Conversation(id))
	return version != 0 && c.writes(keyspace.Head(id)) && c.s.isOpen(id, version)
}

// expects returns the version that the batch expects a row to have, or 0.
func (c *commit) expects(key string) uint64 {
	for _, e := range c.given.Expect {
		if e.Key == key {
			return e.Version
		}
	}
	return 0
}

func (c *commit) writes(key string) bool {
	return slices.Contains(c.given.Delete, key) || slices.ContainsFunc(c.given.Set, func(s kv.Set) bool { return s.Key == key })
}

// learn remembers what a successful commit proves: at this version of its record a
// conversation is not archived.
func (c *commit) learn() {
	for _, guard := range c.guards {
		if keyspace.Packs().Contains(guard) && !slices.Contains(c.needless, guard) {
			id := keyspace.Last(guard)
			if version := c.expects(keyspace.Conversation(id)); version != 0 {
				c.s.setOpen(id, version)
			}
		}
	}
}

// tries limits how often a commit restarts, each time for another reason.
const tries = 32

func (c *commit) run(ctx context.Context) error {
	for range tries {
		err := c.s.rows.Commit(ctx, c.batch())
		again := false
		var missing *kv.MissingBlobsError
		switch {
		case err == nil:
			c.learn()
			if c.drop != nil {
				c.s.discard(ctx, c.drop)
			}
			return nil
		case errors.As(err, &missing):
			again, err = c.found(ctx, missing)
		case errors.Is(err, kv.ErrConflict):
			again, err = c.after(ctx, err)
		}
		if err != nil && !again {
			return err
		}
	}
	return fmt.Errorf("%w: it keeps being archived and used", kv.ErrConflict)
}

// batch returns the batch for the driver.
func (c *commit) batch() *kv.Batch {
	b := *c.given
	if c.expect != nil {
		b.Expect = c.expect
	}
	own := make([]kv.Expect, 0, len(c.guards)+len(b.Expect))
	b.Delete = slices.Clip(b.Delete)
	for _, guard := range c.guards {
		if slices.Contains(c.needless, guard) {
			continue
		}
		version := c.notes[guard]
		if c.drop != nil && guard == c.drop.key() {
			version = c.drop.version
		}
		own = append(own, kv.Expect{Key: guard, Version: version})
		if version != 0 {
			b.Delete = append(b.Delete, guard)
		}
	}
	b.Expect = append(own, b.Expect...)
	return &b
}

// found copies back blobs that only packs hold. A batch that refers to them also
// refers to everything they need, or expects a row that does.
func (c *commit) found(ctx context.Context, missing *kv.MissingBlobsError) (again bool, err error) {
	again, err = c.s.restore(ctx, missing.IDs)
	if err != nil {
		return false, errors.Join(missing, err)
	}
	return again, missing
}

// after finds the cause of a conflict.
func (c *commit) after(ctx context.Context, conflict error) (again bool, err error) {
	if c.drop != nil {
		c.drop, c.expect = nil, nil // that was the cause
	}
	c.needless = nil
	for _, guard := range c.guards {
		changed, err := c.lift(ctx, guard)
		if err != nil {
			return false, err
		}
		again = again || changed
	}
	if again {
		return true, nil
	}
	return c.translate(ctx, conflict)
}

// lift removes a guard that blocks the commit. It reports whether to try again.
func (c *commit) lift(ctx context.Context, guard string) (bool, error) {
	before := c.notes[guard]
	delete(c.notes, guard)
	if !keyspace.Packs().Contains(guard) {
		e, _, err := c.s.guarded(ctx, guard)
		if err != nil || e == nil {
			return false, err
		}
		return true, c.s.bringBack(ctx, e.id)
	}
	e, err := c.s.note(ctx, keyspace.Last(guard))
	switch {
	case err != nil:
		return false, err
	case e == nil:
		return before != 0, nil
	case e.state == archiving:
		c.notes[guard] = e.version
		return before != e.version, nil
	}
	c.s.remember(e)
	if ok, err := c.drops(ctx, e); ok || err != nil {
		c.drop = e
		return ok, err
	}
	return true, c.s.bringBack(ctx, e.id)
}

// drops reports whether the batch removes a whole conversation, so that its packs can
// be removed unread. It compares the expectations with the packs.
func (c *commit) drops(ctx context.Context, e *entry) (bool, error) {
	guard := e.key()
	if e.shadows > 0 || !slices.Contains(c.given.Delete, keyspace.Head(e.id)) ||
		slices.ContainsFunc(c.given.Set, func(s kv.Set) bool { return guardOf(s.Key) == guard }) {
		return false, nil // most batches end here, without reading packs
	}
	in, err := c.s.contents(ctx, e)
	if errors.Is(err, errGone) {
		return false, c.s.gone(ctx, e, err)
	}
	if err != nil {
		return false, err
	}
	for _, row := range in.rows {
		covered := func(r kv.Range) bool { return r.Contains(row.key) }
		if !slices.ContainsFunc(c.given.DeleteRange, covered) && !slices.Contains(c.given.Delete, row.key) {
			return false, nil
		}
	}
	expect := []kv.Expect{}
	for _, x := range c.given.Expect {
		if guardOf(x.Key) != guard {
			expect = append(expect, x)
			continue
		}
		if row, _ := in.row(x.Key); row.version != x.Version {
			return false, nil // a conflict; bringing it back shows which
		}
	}
	c.expect = expect
	return true, nil
}

// translate replaces the version of a row before archiving by its version after it was
// brought back, by any node, if nothing else happened to it.
func (c *commit) translate(ctx context.Context, conflict error) (again bool, err error) {
	var ce *kv.ConflictError
	if !errors.As(conflict, &ce) || ce.Want == 0 || ce.Got == 0 {
		return false, conflict
	}
	was, ok := c.s.sumAt(ce.Key, ce.Want)
	if !ok {
		return false, conflict
	}
	row, err := c.s.rows.Get(ctx, ce.Key)
	if err != nil || row.Version == ce.Want || sumOf(row.Value) != was {
		return false, conflict
	}
	expect := slices.Clone(c.given.Expect)
	if c.expect != nil {
		expect = c.expect
	}
	for i := range expect {
		if expect[i].Key == ce.Key && expect[i].Version == ce.Want {
			expect[i].Version = row.Version
		}
	}
	c.expect = expect
	return true, nil
}

// sumAt returns the sum of the value that a row had at a version, if a recently read
// pack has it.
func (s *Store) sumAt(key string, version uint64) (sum, bool) {
	s.mu.Lock()
	loaded, recent := s.loaded.Values(), s.recent.Values()
	s.mu.Unlock()
	for _, c := range loaded {
		if row, ok := c.row(key); ok && row.version == version {
			return row.sum, true
		}
	}
	for _, e := range recent {
		if row, ok := e.hotRow(key); ok && row.Version == version {
			return sumOf(row.Value), true
		}
	}
	return sum{}, false
}

// discard removes the objects of a pack that no row names. Sweep finds those that it
// cannot remove.
func (s *Store) discard(ctx context.Context, e *entry) {
	s.forget(e)
	_ = s.objects.RemoveObjects(context.WithoutCancel(ctx), e.objectKeys()...)
}
