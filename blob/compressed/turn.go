package compressed

import (
	"context"
	"sync"

	"github.com/stet-dev/stet/blob"
)

// A blob at a position that is a multiple of 4 repeats what the blobs between it and its
// base hold, which keeps the chain short. Once it is stored, those blobs can lean on it
// as prefixes and need only their own ends. Compact turns them around. In a list that
// grows by one entry at a time, each entry is then stored about once, and not 3/4·log4(n)
// times.
//
// No chain gets long. A blob is turned only if its position p lies between the position
// of the later blob and the target of that. So the later position is a multiple of a
// higher power of 4, and the base of the later blob, which comes next in the chain, has
// the digits of p with some of the lowest ones set to 0. A chain of 2^20 blobs has at most
// 30 steps down, as without turns, and one step up for each of the 10 powers.

// turn is work for Compact: blobs that may lean on a later one.
type turn struct {
	onto blob.ID
	over []blob.ID // those between it and its base
}

const (
	// maxTurns limits how many turns wait. Blobs of dropped turns stay larger than
	// needed.
	maxTurns = 1 << 12
	// turnedAtOnce is how many blobs one call of Compact turns: reading them takes long.
	// Turned blobs arrive again, so another call follows.
	turnedAtOnce = 64
	// leastTurned is the number of bytes that a turn must save.
	leastTurned = 128
)

// turns holds the turns that wait for Compact. They are lost when the process ends.
type turns struct {
	mu      sync.Mutex
	waiting []turn // guarded by mu
}

func (t *turns) add(more []turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, more[:min(len(more), maxTurns-len(t.waiting))]...)
}

// next removes the oldest.
func (t *turns) next() (turn, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return turn{}, false
	}
	first := t.waiting[0]
	t.waiting = t.waiting[1:]
	return first, true
}

// passedOver remembers the blobs between a new one and its base.
func (p *planner) passedOver(id blob.ID, over []blob.ID) {
	if len(over) > 0 && p.opts.Later != nil {
		p.turns = append(p.turns, turn{id, over})
	}
}

// turnSome turns waiting blobs around, up to a limit.
func (b *compacting) turnSome(ctx context.Context) error {
	for len(b.records) < turnedAtOnce {
		t, ok := b.Store.turns.next()
		if !ok {
			break
		}
		if err := b.turn(ctx, t); err != nil && !staysAsItIs(err) {
			b.Store.turns.add([]turn{t}) // for the next call
			return err
		}
	}
	return b.flush(ctx)
}

func (b *compacting) turn(ctx context.Context, t turn) error {
	onto, err := b.fetch(ctx, t.onto)
	if err != nil || !onto.isDelta() {
		return err
	}
	content, err := b.sound(ctx, t.onto, onto)
	if err != nil {
		return err
	}
	for _, id := range t.over {
		if err := b.lean(ctx, id, t.onto, onto, content); err != nil && !staysAsItIs(err) {
			return err
		}
	}
	return nil
}

// sound returns content that was verified against its id: blobs that lean on damaged bytes
// would be lost when those bytes are repaired.
func (b *compacting) sound(ctx context.Context, id blob.ID, r *record) ([]byte, error) {
	steps := maxSteps
	content, err := b.resolve(ctx, id, r, &steps)
	if err == nil && blob.Sum(content) != id {
		err = blob.Corrupt(id, "its content has another id")
	}
	return content, err
}

// lean makes a blob a prefix of a later one plus an end of its own, if that is smaller.
func (b *compacting) lean(ctx context.Context, id, onto blob.ID, later *record, base []byte) error {
	was, err := b.fetch(ctx, id)
	if err != nil {
		return err
	}
	between := target(later.position) < was.position && was.position < later.position
	if !was.isDelta() || !between || later.local && !was.local || len(was.payload) < leastTurned {
		return nil
	}
	content, err := b.recalled(ctx, id, was)
	if err != nil {
		return err
	}
	prefix := commonPrefix(base, content)
	end := content[prefix:]
	now := &record{
		kind: kindDelta, local: was.local, base: onto, position: was.position,
		prefix: int64(prefix), literal: int64(len(end)), size: int64(len(content)), payload: end,
	}
	gain := len(was.payload) - len(now.payload)
	if prefix == 0 || gain < leastTurned {
		return nil
	}
	one := blob.Blob{ID: id, Data: now.encode(), Base: onto, LocalOnly: now.local, Given: true}
	b.records, b.bytes = append(b.records, one), b.bytes+len(one.Data)
	b.gain += int64(gain)
	if b.bytes >= compactBytes {
		return b.flush(ctx)
	}
	return nil
}

// recalled is sound for a blob that may be in memory. Its stored bytes are replaced, so
// they need not be sound.
func (b *compacting) recalled(ctx context.Context, id blob.ID, r *record) ([]byte, error) {
	if b.opts.Recall != nil {
		if content := b.opts.Recall(id); content != nil {
			return content, nil
		}
	}
	return b.sound(ctx, id, r)
}
