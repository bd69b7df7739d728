package blobtest

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"

	"github.com/stet-dev/stet/blob"
)

// Handle is one of several ways into one store: a process that has a directory open,
// or a node of a database.
type Handle interface {
	blob.Store
	blob.Streamer
	blob.Lister
	blob.Sweeper
	blob.Rewriter
}

// Handles returns a store that uses another handle for every call, so that Run holds
// several processes or nodes together to the contract of one store. A Put is flushed,
// because other handles need not see a blob before it is durable.
//
//	blobtest.Run(t, func(t *testing.T) blob.Store {
//		return blobtest.Handles(first(t).Blobs(), second(t).Blobs())
//	})
//
// The order of handles is the same in every run.
func Handles(all ...Handle) blob.Store {
	return &handles{all: all, order: rand.New(rand.NewPCG(1, 2))}
}

type handles struct {
	all []Handle

	mu    sync.Mutex // guards order
	order *rand.Rand
}

var (
	_ Handle        = (*handles)(nil)
	_ blob.Arrivals = (*handles)(nil)
)

func (h *handles) next() Handle {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[h.order.IntN(len(h.all))]
}

func (h *handles) Get(ctx context.Context, id blob.ID) ([]byte, error) { return h.next().Get(ctx, id) }

func (h *handles) Put(ctx context.Context, blobs ...blob.Blob) error {
	one := h.next()
	if err := one.Put(ctx, blobs...); err != nil {
		return err
	}
	return one.Flush(ctx)
}

func (h *handles) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	return h.next().Has(ctx, ids...)
}

func (h *handles) Flush(ctx context.Context) error { return h.next().Flush(ctx) }

func (h *handles) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	return h.next().Open(ctx, id)
}

func (h *handles) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	one := h.next()
	if err := one.PutFrom(ctx, id, r, size); err != nil {
		return err
	}
	return one.Flush(ctx)
}

func (h *handles) ReadMany(ctx context.Context, fn func(blob.Reader) error) error {
	return blob.ReadMany(ctx, h.next(), fn)
}

func (h *handles) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	return h.next().List(ctx, after, fn)
}

func (h *handles) Begin(ctx context.Context) (uint64, error) { return h.next().Begin(ctx) }

func (h *handles) Sweep(ctx context.Context, generation uint64, opts blob.SweepOptions) (blob.SweepResult, error) {
	return h.next().Sweep(ctx, generation, opts)
}

func (h *handles) Replace(ctx context.Context, blobs ...blob.Blob) error {
	return h.next().Replace(ctx, blobs...)
}

func (h *handles) ReplaceFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	return h.next().ReplaceFrom(ctx, id, r, size)
}

func (h *handles) Kept(ctx context.Context, id blob.ID) (blob.Blob, error) {
	return h.next().Kept(ctx, id)
}

func (h *handles) Info(ctx context.Context, id blob.ID) (blob.Info, error) {
	return h.next().Info(ctx, id)
}

func (h *handles) Arrived(ctx context.Context, mark string, limit int) ([]blob.Info, string, error) {
	arrivals, ok := h.next().(blob.Arrivals)
	if !ok {
		return nil, mark, errors.ErrUnsupported
	}
	return arrivals.Arrived(ctx, mark, limit)
}
