package kvtest

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync"

	"github.com/stet-dev/stet/kv"
)

// Handles returns a store that uses another one of the given stores for every call.
// They are handles of one store: processes that have a directory open, or nodes of a
// database. Run then holds them together to the contract of one store.
//
//	kvtest.Run(t, func(t *testing.T) kv.Store {
//		return kvtest.Handles(first(t).Rows(), second(t).Rows())
//	})
//
// The order of handles is the same in every run.
func Handles(all ...kv.Store) kv.Store {
	return &handles{all: all, order: rand.New(rand.NewPCG(1, 2))}
}

type handles struct {
	all []kv.Store

	mu    sync.Mutex // guards order
	order *rand.Rand
}

func (h *handles) next() kv.Store {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[h.order.IntN(len(h.all))]
}

func (h *handles) Get(ctx context.Context, key string) (kv.Row, error) { return h.next().Get(ctx, key) }

func (h *handles) Scan(ctx context.Context, r kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	return h.next().Scan(ctx, r, opts)
}

func (h *handles) ScanBeside(ctx context.Context, r kv.Range, opts kv.ScanOptions, beside ...kv.Beside) ([]kv.Found, error) {
	return h.next().ScanBeside(ctx, r, opts, beside...)
}

func (h *handles) Commit(ctx context.Context, b *kv.Batch) error { return h.next().Commit(ctx, b) }

func (h *handles) Watch(ctx context.Context, r kv.Range) <-chan struct{} {
	return h.next().Watch(ctx, r)
}
