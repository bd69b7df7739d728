package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/kvtest"
)

// twoNodes opens one database twice, as two processes do.
func twoNodes(t *testing.T, opts *Options) (a, b *DB) {
	dsn := newDatabase(t, 15)
	return openNode(t, dsn, opts), openNode(t, dsn, opts)
}

func TestNodesTogether(t *testing.T) {
	a, b := twoNodes(t, nil)
	open := func(t *testing.T) kv.Store {
		tenant := newTenant(t, a)
		return kvtest.Handles(tenant.Rows(), tenantOf(t, b, tenant.Name()).Rows())
	}
	kvtest.Run(t, open)
	t.Run("linearizable", func(t *testing.T) { kvtest.RunLinearizable(t, open) })
}

// TestBlobsOfNodes holds two nodes together to the contract of blobs, with contents in
// rows and in a bucket.
func TestBlobsOfNodes(t *testing.T) {
	for name, opts := range map[string]*Options{
		"in the database": nil,
		"in a bucket":     {Objects: memblob.NewObjects(), LargeBytes: 16},
	} {
		t.Run(name, func(t *testing.T) {
			if opts != nil {
				testenv.OnlyFull(t)
			}
			a, b := twoNodes(t, opts)
			open := func(t *testing.T) (kv.Store, blob.Store) {
				one := newTenant(t, a)
				other := tenantOf(t, b, one.Name())
				return kvtest.Handles(one.Rows(), other.Rows()), blobtest.Handles(one.Blobs(), other.Blobs())
			}
			blobtest.RunWith(t, func(t *testing.T) blob.Store {
				_, blobs := open(t)
				return blobs
			}, &blobtest.Options{MaxBytes: 1<<20 + 1})
			kvtest.RunRefs(t, open)
		})
	}
}

// TestConditionsOfAbsence has two nodes commit batches that each rely on the
// other's row being absent: at most one may go through. Rows that are not there
// cannot be locked, which is what makes this hard.
func TestConditionsOfAbsence(t *testing.T) {
	a, b := twoNodes(t, nil)
	tenant := newTenant(t, a)
	nodes := []kv.Store{tenant.Rows(), tenantOf(t, b, tenant.Name()).Rows()}
	for name, batch := range map[string]func(mine, other string) *kv.Batch{
		"expected": func(mine, other string) *kv.Batch {
			return &kv.Batch{Expect: []kv.Expect{{Key: other}}, Set: []kv.Set{{Key: mine}}}
		},
		"deleted": func(mine, other string) *kv.Batch {
			return &kv.Batch{Delete: []string{other}, Set: []kv.Set{{Key: mine}}}
		},
		"range": func(mine, other string) *kv.Batch {
			return &kv.Batch{DeleteRange: []kv.Range{{Start: other, End: other + "\x00"}}, Set: []kv.Set{{Key: mine}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for round := range testenv.Scale(15, 300) {
				x, y := fmt.Sprintf("%s-%d-x", name, round), fmt.Sprintf("%s-%d-y", name, round)
				var wg sync.WaitGroup
				for i, node := range nodes {
					mine, other := x, y
					if i == 1 {
						mine, other = y, x
					}
					wg.Go(func() {
						if err := node.Commit(t.Context(), batch(mine, other)); err != nil && !errors.Is(err, kv.ErrConflict) {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				_, errX := nodes[0].Get(t.Context(), x)
				_, errY := nodes[0].Get(t.Context(), y)
				if (errX == nil) == (errY == nil) {
					t.Fatalf("round %d: %v and %v, want one of the two rows", round, errX, errY)
				}
			}
		})
	}
}

// TestCollectorOnAnotherNode collects on one node while the other commits rows
// that refer to new blobs, to old ones, and to some that are being removed.
func TestCollectorOnAnotherNode(t *testing.T) {
	for name, opts := range map[string]*Options{
		"in the database": nil,
		"in a bucket":     {Objects: memblob.NewObjects(), LargeBytes: 16},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := twoNodes(t, opts)
			tenant := newTenant(t, a)
			collect(t, tenant, tenantOf(t, b, tenant.Name()))
		})
	}
}

func collect(t *testing.T, writer, collector *Tenant) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			defer stop()
			for n := range testenv.Scale(60, 5000) {
				if err := referSometimes(t.Context(), writer, worker, n); err != nil {
					t.Errorf("worker %d: %v", worker, err)
					return
				}
			}
		})
	}
	rounds := 0
	for ctx.Err() == nil {
		if err := collectOnce(t.Context(), collector); err != nil {
			t.Errorf("collect: %v", err)
			break
		}
		rounds++
	}
	wg.Wait()
	dangling := 0
	for row, err := range collector.Rows().Scan(t.Context(), kv.Range{}, kv.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		id, _ := blob.ParseID(string(row.Value))
		if data, err := collector.Blobs().Get(t.Context(), id); err != nil || blob.Sum(data) != id {
			dangling++
		}
	}
	if dangling > 0 || rounds == 0 {
		t.Errorf("%d dangling references after %d collections", dangling, rounds)
	}
}

// referSometimes sets or deletes a row that refers to one of few blobs, putting
// it only every other time.
func referSometimes(ctx context.Context, tenant *Tenant, worker, n int) error {
	b := blob.New(fmt.Appendf(nil, "content number %d of some that come again", rand.IntN(20)))
	key := fmt.Sprintf("row-%d-%d", worker, n%5)
	if n%3 == 0 {
		return tenant.Rows().Commit(ctx, &kv.Batch{Delete: []string{key}})
	}
	batch := &kv.Batch{Set: []kv.Set{{Key: key, Value: []byte(b.ID.String())}}, Refs: []blob.ID{b.ID}}
	for {
		if n%2 == 0 {
			if err := tenant.Blobs().Put(ctx, b); err != nil {
				return err
			}
		}
		err := tenant.Rows().Commit(ctx, batch)
		if !errors.Is(err, blob.ErrNotFound) {
			return err
		}
		if n%2 == 1 {
			return nil // the collector was faster, and said so
		}
		// Without grace, one that began after the Put may be faster once more.
	}
}

func collectOnce(ctx context.Context, tenant *Tenant) error {
	generation, err := tenant.Blobs().Begin(ctx)
	if err != nil {
		return err
	}
	live := make(map[string]bool)
	for row, err := range tenant.Rows().Scan(ctx, kv.Range{}, kv.ScanOptions{}) {
		if err != nil {
			return err
		}
		live[string(row.Value)] = true
	}
	_, err = tenant.Blobs().Sweep(ctx, generation, blob.SweepOptions{Live: func(id blob.ID) bool { return live[id.String()] }})
	return err
}

// sweptElsewhere returns a node that knows a blob which another node has removed, and a blob
// that leans on it.
func sweptElsewhere(t *testing.T) (writer *Tenant, base, leaning blob.Blob) {
	t.Helper()
	a, b := twoNodes(t, nil)
	writer = newTenant(t, a)
	base, leaning = blob.New([]byte("base")), blob.New([]byte("leaning"))
	leaning.Base = base.ID
	mustPut(t, writer.Blobs(), base)
	if err := collectOnce(t.Context(), tenantOf(t, b, writer.Name())); err != nil {
		t.Fatal(err)
	}
	return writer, base, leaning
}

// TestBaseSweptElsewhere has a node use a base that another one has removed. It must
// get an error before it relies on what cannot be read, and must not get the same error
// each time.
func TestBaseSweptElsewhere(t *testing.T) {
	writer, base, leaning := sweptElsewhere(t)
	if err := writer.Blobs().Put(t.Context(), leaning); err == nil {
		err = writer.Rows().Commit(t.Context(), &kv.Batch{Refs: []blob.ID{leaning.ID}})
		if !errors.Is(err, blob.ErrNotFound) {
			t.Fatalf("commit of a blob without its base: got %v, want ErrNotFound", err)
		}
	}
	if err := writer.Blobs().Put(t.Context(), leaning); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("put once more: got %v, want ErrNotFound", err)
	}
	if err := writer.Blobs().Flush(t.Context()); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("flush: got %v, want the loss to be told", err)
	}
	mustPut(t, writer.Blobs(), base, leaning)
}

// TestLossIsToldWhoeverWrites has the writer find out by itself, in the background, that the
// base of a blob is gone. Whoever flushes next is told, not the writer's own request.
func TestLossIsToldWhoeverWrites(t *testing.T) {
	writer, _, leaning := sweptElsewhere(t)
	if err := writer.Blobs().Put(t.Context(), leaning); err != nil {
		t.Fatal(err)
	}
	for writer.waiting() {
		writer.flushSoon()
		time.Sleep(time.Millisecond)
	}
	if err := writer.Blobs().Flush(t.Context()); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("flush: got %v, want the loss to be told", err)
	}
	if err := writer.Blobs().Flush(t.Context()); err != nil {
		t.Errorf("flush again: %v", err)
	}
}

// TestRestoredWithoutTenant goes on where the tenant's own rows are gone.
func TestRestoredWithoutTenant(t *testing.T) {
	dsn := newDatabase(t, 15)
	tenant := newTenant(t, openNode(t, dsn, nil))
	mustPut(t, tenant.Blobs(), blob.New([]byte("before")))
	execute(t, dsn, `TRUNCATE stet.tenants, stet.generations, stet.blobs, stet.rows, stet.commits`)
	mustPut(t, tenant.Blobs(), blob.New([]byte("after")))
	mustCommit(t, tenant.Rows(), &kv.Batch{DeleteRange: []kv.Range{{}}})
}
