package intake

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// Limits of what is gathered: enough that many turns share one sync of the disk, and
// little enough that a killed import has little to redo.
const (
	gatherBytes = 4 << 20
	gatherSaves = 256
	gatherTime  = time.Second
)

// gathered are rows whose commits wait until flush makes one commit of them, all or
// nothing. Reads of waiting rows flush first, so that a reader sees rows with the
// versions of the store. After a failed flush nothing works: what waited is lost, and
// the caller starts over from what the store has. It is not safe for concurrent use.
type gathered struct {
	below   kv.Store
	expect  map[string]uint64
	deletes map[string]bool
	sets    map[string][]byte
	refs    []blob.ID
	commits int
	failed  error

	guard kv.Expect // of every commit, unless its key is empty
	lift  string    // the commit that sets this key also deletes the row of the guard
}

func gather(below kv.Store) *gathered {
	return &gathered{below: below, expect: map[string]uint64{}, deletes: map[string]bool{}, sets: map[string][]byte{}}
}

// waits reports whether a row is changed by what waits.
func (g *gathered) waits(key string) bool {
	_, set := g.sets[key]
	return set || g.deletes[key]
}

// Commit implements kv.Store, except that the batch waits for flush.
func (g *gathered) Commit(ctx context.Context, b *kv.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	if len(b.DeleteRange) > 0 || g.contradicts(b) {
		if err := g.flush(ctx); err != nil {
			return err
		}
	}
	if g.failed != nil {
		return g.failed
	}
	if len(b.DeleteRange) > 0 {
		return g.commit(ctx, b)
	}
	for _, e := range b.Expect {
		g.expect[e.Key] = e.Version
	}
	for _, key := range b.Delete {
		delete(g.sets, key)
		g.deletes[key] = true
	}
	for _, s := range b.Set {
		g.sets[s.Key] = bytes.Clone(s.Value)
	}
	g.refs = append(g.refs, b.Refs...)
	g.commits++
	return nil
}

// contradicts reports whether a batch has an expectation of a row that cannot be
// merged with the waiting ones into one batch.
func (g *gathered) contradicts(b *kv.Batch) bool {
	for _, e := range b.Expect {
		if version, ok := g.expect[e.Key]; g.waits(e.Key) || ok && version != e.Version {
			return true
		}
	}
	return false
}

// flush commits what waits.
func (g *gathered) flush(ctx context.Context) error {
	if g.failed != nil || g.commits == 0 {
		return g.failed
	}
	b := &kv.Batch{Delete: slices.Sorted(maps.Keys(g.deletes)), Refs: g.refs}
	for _, key := range slices.Sorted(maps.Keys(g.expect)) {
		b.Expect = append(b.Expect, kv.Expect{Key: key, Version: g.expect[key]})
	}
	for _, key := range slices.Sorted(maps.Keys(g.sets)) {
		b.Set = append(b.Set, kv.Set{Key: key, Value: g.sets[key]})
	}
	clear(g.expect)
	clear(g.deletes)
	clear(g.sets)
	g.refs, g.commits = nil, 0
	g.failed = g.commit(ctx, b)
	return g.failed
}

// commit commits a batch if the guard holds.
func (g *gathered) commit(ctx context.Context, b *kv.Batch) error {
	guarded := *b
	if g.guard.Key != "" {
		guarded.Expect = append(slices.Clip(b.Expect), g.guard)
	}
	lift := slices.ContainsFunc(b.Set, func(s kv.Set) bool { return s.Key == g.lift })
	if lift {
		guarded.Delete = append(slices.Clip(b.Delete), g.guard.Key)
	}
	err := g.below.Commit(ctx, &guarded)
	if err == nil && lift {
		g.guard.Version, g.lift = 0, ""
	}
	return err
}

// Get implements kv.Store.
func (g *gathered) Get(ctx context.Context, key string) (kv.Row, error) {
	if g.waits(key) {
		if err := g.flush(ctx); err != nil {
			return kv.Row{}, err
		}
	}
	if g.failed != nil {
		return kv.Row{}, g.failed
	}
	return g.below.Get(ctx, key)
}

// Scan implements kv.Store.
func (g *gathered) Scan(ctx context.Context, r kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		if err := g.flush(ctx); err != nil {
			yield(kv.Row{}, err)
			return
		}
		for row, err := range g.below.Scan(ctx, r, opts) {
			if !yield(row, err) {
				return
			}
		}
	}
}

// ScanBeside implements kv.Store.
func (g *gathered) ScanBeside(ctx context.Context, r kv.Range, opts kv.ScanOptions, beside ...kv.Beside) ([]kv.Found, error) {
	if err := g.flush(ctx); err != nil {
		return nil, err
	}
	return g.below.ScanBeside(ctx, r, opts, beside...)
}

// Watch implements kv.Store.
func (g *gathered) Watch(ctx context.Context, r kv.Range) <-chan struct{} {
	return g.below.Watch(ctx, r)
}
