package stream_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/stream"
)

// counted counts the reads of a store.
type counted struct {
	kv.Store
	gets, scans atomic.Int64
}

func (c *counted) Get(ctx context.Context, key string) (kv.Row, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, key)
}

func (c *counted) Scan(ctx context.Context, r kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	c.scans.Add(1)
	return c.Store.Scan(ctx, r, opts)
}

// Whatever the number of followers, an append is read once and encoded once. All of them
// get everything in order, and the end.
func TestFollowersShareReadsAndEncodings(t *testing.T) {
	const followers, appends = 50, 10
	synctest.Test(t, func(t *testing.T) {
		mem := memblob.New()
		blobs, rows := blob.Checked(mem), memkv.New(mem)
		seen := &counted{Store: rows}
		writer, s := stream.New(blobs, rows, nil), stream.New(blobs, seen, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		add := func(a stream.Append) {
			t.Helper()
			a.ContentType = "text/plain"
			if _, err := writer.Append(ctx, "s", a); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond) // many followers let the answer to an append leave first
			synctest.Wait()
		}
		if _, _, err := writer.Create(ctx, "s", stream.Config{ContentType: "text/plain"}, nil); err != nil {
			t.Fatal(err)
		}
		var encodings atomic.Int64
		var work sync.WaitGroup
		for i := range followers {
			work.Go(func() {
				f, next := s.Follow(ctx, "s", stream.Offset{}, nil), 0
				for {
					b, err := f.Next(ctx)
					if err != nil {
						t.Errorf("follower %d: %v", i, err)
						return
					}
					if len(b.Appends) > 0 {
						b.Encoded("test", func() []byte { encodings.Add(1); return nil })
					}
					for _, a := range b.Appends {
						if string(a.Data) != fmt.Sprint(next) {
							t.Errorf("follower %d got %q as append %d", i, a.Data, next)
						}
						next++
					}
					if b.Closed {
						if next != appends {
							t.Errorf("follower %d got %d appends of %d", i, next, appends)
						}
						return
					}
				}
			})
		}
		synctest.Wait()
		seen.gets.Store(0)
		seen.scans.Store(0)
		for i := range appends {
			add(stream.Append{Data: []byte(fmt.Sprint(i))})
		}
		if gets, scans := seen.gets.Load(), seen.scans.Load(); gets > appends || scans > appends {
			t.Errorf("read %d rows and %d ranges for %d appends", gets, scans, appends)
		}
		if n := encodings.Load(); n != appends {
			t.Errorf("encoded %d times for %d appends", n, appends)
		}
		if _, err := writer.Append(ctx, "s", stream.Append{Close: true}); err != nil {
			t.Fatal(err)
		}
		work.Wait()
	})
}
