package graph

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/stet-dev/stet/blob"
)

// Root is a blob from which a walk begins.
type Root struct {
	Kind Kind
	ID   blob.ID
}

// Node is a blob visited by a walk.
type Node struct {
	// Ref is the blob and the field by which it was found.
	Ref
	// From is the blob that has the field; zero for a root.
	From blob.ID
	// Data is the content, or nil for a leaf that was not read. It is valid only
	// during the call.
	Data []byte
	// Err wraps blob.ErrNotFound, blob.ErrCorrupt or ErrMalformed if the content is
	// missing or cannot be read completely, or ErrTooDeep (see Options).
	Err error
}

// Options configure a walk; nil gives the defaults.
type Options struct {
	// Workers is the number of blobs that are read at once, 8 by default.
	Workers int
	// ReadLeaves also reads blobs without references.
	ReadLeaves bool
	// Skip, if set, is called before a reference is followed; true skips it.
	Skip func(from blob.ID, r Ref) bool
	// Seen, if set, holds the blobs visited before, and the walk adds to it.
	Seen Marks
	// Nesting, if set, sets ErrTooDeep for a state with too deeply nested subagents.
	// The walk still follows them: Seen guarantees that it ends, and a collector must
	// find everything.
	Nesting *Nesting
}

// Marks records which blobs a walk reached and the kind that each was read as. *Set
// implements it. It must be safe for concurrent use.
type Marks interface {
	// Add adds a blob read as kind and reports whether that is new.
	Add(id blob.ID, kind Kind) bool
}

// Roots makes a sequence of the given roots, for Walk.
func Roots(roots ...Root) iter.Seq2[Root, error] {
	return func(yield func(Root, error) bool) {
		for _, r := range roots {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Walk visits every blob reachable from the roots, once for every kind it is referred
// to as. visit is never called concurrently. A missing, damaged or malformed blob is
// visited with its error; other errors of the store, and errors of roots and visit,
// end the walk.
func Walk(ctx context.Context, blobs blob.Store, roots iter.Seq2[Root, error], opts *Options, visit func(Node) error) error {
	w := &walk{blobs: blobs, visit: visit}
	if opts != nil {
		w.opts = *opts
	}
	if w.opts.Workers <= 0 {
		w.opts.Workers = 8
	}
	if w.opts.Seen == nil {
		w.opts.Seen = new(Set)
	}
	w.change.L = &w.mu
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.cancel = cancel

	var workers sync.WaitGroup
	for range w.opts.Workers {
		workers.Go(func() { w.work(ctx) })
	}
	for r, err := range roots {
		if err != nil {
			w.fail(err)
		}
		if !w.addRoot(r) {
			break
		}
	}
	w.mu.Lock()
	w.fed = true
	w.change.Broadcast()
	w.mu.Unlock()
	workers.Wait()
	return w.err
}

// maxWaitingRoots limits how many roots are queued on the stack.
const maxWaitingRoots = 1024

type item struct {
	ref  Ref
	from blob.ID
}

type walk struct {
	blobs  blob.Store
	opts   Options
	visit  func(Node) error
	cancel context.CancelFunc

	visiting sync.Mutex // held during visit

	mu     sync.Mutex // guards what follows
	change sync.Cond
	stack  []item // depth first keeps it short
	busy   int    // workers that may still add to it
	fed    bool   // all roots are queued
	err    error
}

// addRoot reports whether the walk goes on.
func (w *walk) addRoot(r Root) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && len(w.stack) >= maxWaitingRoots {
		w.change.Wait()
	}
	if w.err != nil {
		return false
	}
	if w.opts.Seen.Add(r.ID, r.Kind) {
		w.stack = append(w.stack, item{ref: Ref{Kind: r.Kind, ID: r.ID}})
		w.change.Broadcast()
	}
	return true
}

func (w *walk) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.cancel()
	w.change.Broadcast()
}

// take returns the next item, or false when the walk is over.
func (w *walk) take() (item, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.stack) == 0 && w.err == nil && !(w.fed && w.busy == 0) {
		w.change.Wait()
	}
	if w.err != nil || len(w.stack) == 0 {
		return item{}, false
	}
	it := w.stack[len(w.stack)-1]
	w.stack = w.stack[:len(w.stack)-1]
	w.busy++
	w.change.Broadcast()
	return it, true
}

func (w *walk) done(found []item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stack = append(w.stack, found...)
	w.busy--
	w.change.Broadcast()
}

func (w *walk) work(ctx context.Context) {
	// The states of one history share a long beginning. Remembering the last one
	// avoids looking up ten thousand turns for each of ten thousand saves.
	var last []byte
	for {
		it, ok := w.take()
		if !ok {
			return
		}
		data, err := w.step(ctx, it, last)
		if err != nil {
			w.fail(err)
			w.done(nil)
			return
		}
		if it.ref.Kind == State && len(data) > 0 {
			last = data
		}
	}
}

// step reads one blob, visits it and pushes its references on the stack.
func (w *walk) step(ctx context.Context, it item, last []byte) ([]byte, error) {
	node := Node{Ref: it.ref, From: it.from}
	if !it.ref.Kind.Leaf() || w.opts.ReadLeaves {
		node.Data, node.Err = w.blobs.Get(ctx, it.ref.ID)
		if err := node.Err; err != nil && !errors.Is(err, blob.ErrNotFound) && !errors.Is(err, blob.ErrCorrupt) {
			return nil, err
		}
	}
	skip := 0
	if it.ref.Kind == State {
		skip = commonPrefix(last, node.Data)
	}
	var found []item
	var nested []Ref
	err := each(it.ref.Kind, node.Data, skip, func(r Ref) {
		if r.Nested > 0 {
			nested = append(nested, r)
		}
		if w.opts.Skip != nil && w.opts.Skip(it.ref.ID, r) {
			return
		}
		if w.opts.Seen.Add(r.ID, r.Kind) {
			found = append(found, item{ref: r, from: it.ref.ID})
		}
	})
	if err == nil && w.opts.Nesting != nil {
		if err = w.opts.Nesting.refs(ctx, w.blobs.Get, nested); err != nil && !errors.Is(err, ErrTooDeep) {
			return nil, err
		}
	}
	if node.Err == nil {
		node.Err = err
	}
	w.visiting.Lock()
	err = w.visit(node)
	w.visiting.Unlock()
	if err != nil {
		return nil, err
	}
	w.done(found)
	return node.Data, nil
}

// commonPrefix returns the length of the longest common beginning of a and b, a
// block at a time.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	const block = 256
	i := 0
	for i+block <= n && string(a[i:i+block]) == string(b[i:i+block]) {
		i += block
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
