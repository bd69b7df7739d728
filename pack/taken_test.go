package pack_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/pack"
)

// counting counts the reads of each blob.
type counting struct {
	*memblob.Store
	mu    sync.Mutex // guards reads
	reads map[blob.ID]int
}

func (c *counting) count(id blob.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads[id]++
}

func (c *counting) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	c.count(id)
	return c.Store.Get(ctx, id)
}

func (c *counting) Kept(ctx context.Context, id blob.ID) (blob.Blob, error) {
	c.count(id)
	return c.Store.Kept(ctx, id)
}

func (c *counting) Info(ctx context.Context, id blob.ID) (blob.Info, error) {
	c.count(id)
	return c.Store.Info(ctx, id)
}

func (c *counting) Inline(ctx context.Context, id blob.ID) (blob.Blob, bool, error) {
	one, err := c.Kept(ctx, id)
	return one, err == nil, err
}

func TestArchivingReadsEachBlobOnce(t *testing.T) {
	w := newWorld(t, nil)
	ids := w.fill("c1", 6)
	blobs := &counting{Store: w.blobs, reads: make(map[blob.ID]int)}
	packs := pack.New(pack.Driver{Blobs: blobs, Rows: w.rows, Objects: w.objects, Rewriter: blobs, Inline: blobs.Inline}, nil)
	_, err := packs.Archive(w.ctx, "c1", func(ctx context.Context) (pack.Contents, error) {
		for i, id := range ids { // as the layers above do, to verify them
			if i%2 == 0 {
				if _, err := packs.Blobs().Get(ctx, id); err != nil {
					return pack.Contents{}, err
				}
				continue
			}
			r, err := blob.Open(ctx, packs.Blobs(), id)
			if err != nil {
				return pack.Contents{}, err
			}
			w.must(r.Close())
		}
		return w.gather("c1", ids)(ctx)
	})
	w.must(err)
	for _, id := range ids {
		if n := blobs.reads[id]; n != 1 {
			t.Errorf("blob %s was read %d times, want once", id.Short(), n)
		}
	}
	w.collect()
	for i, id := range ids {
		if data, err := packs.Blobs().Get(w.ctx, id); err != nil || string(data) != fmt.Sprintf("c1 save %d", i+1) {
			t.Errorf("blob %d of the pack: %q, %v", i, data, err)
		}
	}
}

// TestASaveBetweenTheRows is about a save that relies on the record, and so does not
// remove the note of a running archiving.
func TestASaveBetweenTheRows(t *testing.T) {
	w := newWorld(t, nil)
	ids := w.fill("c1", 3)
	before, err := w.gather("c1", ids)(w.ctx)
	w.must(err)
	_, err = w.packs.Archive(w.ctx, "c1", func(ctx context.Context) (pack.Contents, error) {
		w.must(w.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{
			{Key: keyspace.Head("c1"), Value: []byte(ids[0].String())},
			{Key: keyspace.Save("c1", 4), Value: []byte("save 4")},
		}}))
		after, err := w.gather("c1", ids)(ctx)
		in := pack.Contents{Blobs: ids}
		for _, row := range before.Rows { // the history was read before the head
			if row.Key != keyspace.Head("c1") {
				in.Rows = append(in.Rows, row)
			}
		}
		for _, row := range after.Rows {
			if row.Key == keyspace.Head("c1") {
				in.Rows = append(in.Rows, row)
			}
		}
		return in, err
	})
	if !errors.Is(err, pack.ErrChanged) {
		t.Fatalf("archived, error %v, want %v", err, pack.ErrChanged)
	}
	if row, err := w.packs.Rows().Get(w.ctx, keyspace.Save("c1", 4)); err != nil || string(row.Value) != "save 4" {
		t.Errorf("the save: %q, %v", row.Value, err)
	}
}
