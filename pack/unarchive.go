package pack

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Unarchive brings a conversation back into the database and removes its packs. It fails
// with ErrNotArchived if there are none. It may be stopped and called again at any
// time.
func (s *Store) Unarchive(ctx context.Context, id string) error {
	e, err := s.entry(ctx, id)
	if err != nil {
		return err
	}
	if e == nil {
		return fmt.Errorf("%s: %w", id, ErrNotArchived)
	}
	return s.bringBack(ctx, id)
}

// bringBack is Unarchive, but does nothing for a conversation that is not archived. Within
// a process, it runs once at a time for each conversation.
func (s *Store) bringBack(ctx context.Context, id string) error {
	done, err := s.alone(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	for range looks {
		e, err := s.entry(ctx, id)
		if err != nil || e == nil {
			return err
		}
		err = s.unarchive(ctx, e)
		switch {
		case errors.Is(err, errGone):
			err = s.gone(ctx, e, err)
		case err == nil:
			s.discard(ctx, e)
			return nil
		}
		if err != nil && !errors.Is(err, kv.ErrConflict) {
			return fmt.Errorf("bring %s back: %w", id, err)
		}
	}
	return fmt.Errorf("bring %s back: %w", id, kv.ErrConflict)
}

// alone waits until no other goroutine of this process works on a conversation.
func (s *Store) alone(ctx context.Context, id string) (done func(), err error) {
	for {
		s.mu.Lock()
		other, taken := s.busy[id]
		if !taken {
			mine := make(chan struct{})
			s.busy[id] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.busy, id)
				s.mu.Unlock()
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// unarchive puts the blobs, then commits the rows. A running collector keeps blobs that
// were put after it began, and the commit refers to all of them.
func (s *Store) unarchive(ctx context.Context, e *entry) error {
	c, err := s.contents(ctx, e)
	if err != nil {
		return err
	}
	if err := s.putBack(ctx, e, c, c.order); err != nil {
		return err
	}
	b, err := s.unarchiving(ctx, e, c)
	if err != nil {
		return err
	}
	for range looks {
		err = s.rows.Commit(ctx, b)
		var missing *kv.MissingBlobsError
		if !errors.As(err, &missing) {
			return err
		}
		// A collector removed some between Put and Commit.
		if err := s.putBack(ctx, e, c, c.order); err != nil {
			return err
		}
	}
	return err
}

// unarchiving returns the batch that brings rows back.
func (s *Store) unarchiving(ctx context.Context, e *entry, c *contents) (*kv.Batch, error) {
	b := &kv.Batch{
		Expect: []kv.Expect{{Key: e.key(), Version: e.version}},
		Delete: []string{e.key()},
		Refs:   c.order,
	}
	for _, at := range c.rows {
		row, err := s.readRow(ctx, e, at)
		if err != nil {
			return nil, err
		}
		b.Expect = append(b.Expect, kv.Expect{Key: row.Key})
		b.Set = append(b.Set, kv.Set{Key: row.Key, Value: row.Value})
		if isShadow(row.Key) {
			b.Delete = append(b.Delete, keyspace.Packed(row.Key))
		}
	}
	return b, nil
}

// How much is put at once, and the size from which a blob is streamed.
const (
	putBytes   = 4 << 20
	streamFrom = 16 << 20
)

// putBack puts blobs of a pack, bases first.
func (s *Store) putBack(ctx context.Context, e *entry, c *contents, names []blob.ID) error {
	p := &putter{s: s, e: e, c: c, done: make(map[blob.ID]bool)}
	for _, name := range names {
		if err := p.add(ctx, name); err != nil {
			return fmt.Errorf("put blobs of %s back: %w", e.id, err)
		}
	}
	return p.flush(ctx)
}

type putter struct {
	s     *Store
	e     *entry
	c     *contents
	done  map[blob.ID]bool
	batch []blob.Blob
	bytes int64
}

func (p *putter) add(ctx context.Context, name blob.ID) error {
	var chain []placedBlob
	for !name.IsZero() && !p.done[name] {
		at, ok := p.c.blobs[name]
		if !ok {
			return damaged("blob %s needs %s, which is not in the pack", chain[len(chain)-1].name, name)
		}
		p.done[name] = true // also ends a cycle, which the driver then refuses
		chain = append(chain, at)
		name = at.base
	}
	for _, at := range slices.Backward(chain) {
		if err := p.one(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

func (p *putter) one(ctx context.Context, at placedBlob) error {
	o := p.e.objects[at.object]
	if at.length >= streamFrom && at.base.IsZero() {
		r, err := p.s.openRecord(ctx, o, at.extent)
		if err != nil {
			return err
		}
		v := &verifier{r: r, want: at.sum, object: o.key}
		return errors.Join(blob.PutFrom(ctx, p.s.blobs, at.name, v, at.length), r.Close())
	}
	data, err := p.s.read(ctx, o, at.extent)
	if err != nil {
		return err
	}
	p.batch = append(p.batch, blob.Blob{ID: at.name, Data: data, Base: at.base})
	if p.bytes += at.length; p.bytes >= putBytes {
		return p.flush(ctx)
	}
	return nil
}

func (p *putter) flush(ctx context.Context) error {
	if len(p.batch) == 0 {
		return nil
	}
	err := p.s.blobs.Put(ctx, p.batch...)
	p.batch, p.bytes = nil, 0
	return err
}
