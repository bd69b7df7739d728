package purge_test

import (
	"bytes"
	"context"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/blob/memblob"
)

// bucket is a remote in memory that removes copies, and may be away for that.
type bucket struct {
	blob.Store
	mu   sync.Mutex // guards gone
	gone map[blob.ID]bool
	away error
}

func newBucket() *bucket { return &bucket{Store: memblob.New(), gone: make(map[blob.ID]bool)} }

func (b *bucket) remove(_ context.Context, names []blob.ID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away != nil {
		return b.away
	}
	for _, name := range names {
		b.gone[name] = true
	}
	return nil
}

// Has implements blob.Store.
func (b *bucket) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away != nil {
		return nil, b.away
	}
	has, err := b.Store.Has(ctx, ids...)
	for i := range has {
		has[i] = has[i] && !b.gone[ids[i]]
	}
	return has, err
}

// drop removes everything, as a purge at the other side might.
func (b *bucket) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.Store.(*memblob.Store).List(context.Background(), blob.ID{}, func(i blob.Info) error {
		b.gone[i.ID] = true
		return nil
	})
}

// holding counts the contents that hold some bytes.
func (b *bucket) holding(text string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	plain := compressed.New(b.Store, nil)
	_ = b.Store.(*memblob.Store).List(context.Background(), blob.ID{}, func(i blob.Info) error {
		data, err := plain.Get(context.Background(), i.ID)
		if err == nil && !b.gone[i.ID] && bytes.Contains(data, []byte(text)) {
			n++
		}
		return nil
	})
	return n
}
