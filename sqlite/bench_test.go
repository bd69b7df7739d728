package sqlite

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// putter makes one blob durable.
type putter func(blob.Blob) error

// contender is a way to store blobs durably.
type contender struct {
	name string
	open func(testing.TB) putter
}

var contenders = []contender{{"Ours", openOurs}, {"RawDriver", openRaw}, {"PlainFiles", openPlain}}

func openOurs(tb testing.TB) putter {
	db, err := Open(context.Background(), tb.TempDir(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	return func(b blob.Blob) error {
		if err := db.Blobs().Put(context.Background(), b); err != nil {
			return err
		}
		return db.Blobs().Flush(context.Background())
	}
}

// openRaw is the library with the same pragmas and one transaction per blob:
// what a user would write without us.
func openRaw(tb testing.TB) putter {
	c, err := sqlite3.Open("file:" + filepath.Join(tb.TempDir(), "raw.db"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	err = c.Exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE blobs (id BLOB PRIMARY KEY, data BLOB)`)
	if err != nil {
		tb.Fatal(err)
	}
	s, _, err := c.Prepare(`INSERT INTO blobs VALUES (?, ?)`)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	var mu sync.Mutex
	return func(b blob.Blob) error {
		mu.Lock()
		defer mu.Unlock()
		defer s.Reset()
		if err := s.BindBlob(1, b.ID[:]); err != nil {
			return err
		}
		if err := s.BindBlob(2, b.Data); err != nil {
			return err
		}
		return s.Exec()
	}
}

// openPlain writes, syncs and names a file per blob.
func openPlain(tb testing.TB) putter {
	dir := tb.TempDir()
	return func(b blob.Blob) error {
		path := filepath.Join(dir, b.ID.String())
		f, err := os.Create(path + ".tmp")
		if err != nil {
			return err
		}
		_, err = f.Write(b.Data)
		if err == nil {
			err = f.Sync()
		}
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err == nil {
			err = os.Rename(path+".tmp", path)
		}
		if err == nil {
			err = osFiles{}.SyncDir(dir)
		}
		return err
	}
}

// BenchmarkDurablePut runs the contenders in turns, so that the noise of a shared
// machine hits all of them, and reports how fast ours is beside the others.
func BenchmarkDurablePut(b *testing.B) {
	for _, size := range []int{256, 4 << 10, 64 << 10, 1 << 20} {
		for _, writers := range []int{1, 32} {
			b.Run(fmt.Sprintf("%dB/%dwriters", size, writers), func(b *testing.B) { benchPut(b, size, writers) })
		}
	}
}

func benchPut(b *testing.B, size, writers int) {
	puts := make([]putter, len(contenders))
	for i, c := range contenders {
		puts[i] = c.open(b)
	}
	took := make([]time.Duration, len(contenders))
	b.SetBytes(int64(size))
	var seed atomic.Uint64
	for b.Loop() {
		for i, put := range puts {
			start := time.Now()
			round(b, put, size, writers, &seed)
			took[i] += time.Since(start)
		}
	}
	for i, c := range contenders {
		b.ReportMetric(float64(b.N*writers*4)/took[i].Seconds(), c.name+"/s")
	}
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "x-raw")
	b.ReportMetric(took[2].Seconds()/took[0].Seconds(), "x-files")
}

// round lets every writer store four new blobs.
func round(b *testing.B, put putter, size, writers int, seed *atomic.Uint64) {
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			data := make([]byte, size)
			for range 4 {
				binary.LittleEndian.PutUint64(data, seed.Add(1))
				// The name is all that matters here; hashing would hide the difference.
				var id blob.ID
				binary.LittleEndian.PutUint64(id[:], seed.Load()*0x9e3779b97f4a7c15)
				binary.LittleEndian.PutUint64(id[8:], seed.Add(1))
				if err := put(blob.Blob{ID: id, Data: data}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 32} {
		b.Run(fmt.Sprintf("%dwriters", writers), func(b *testing.B) {
			db := openTest(b, nil)
			var n atomic.Int64
			b.SetParallelism(max(1, writers/2))
			commit := func() {
				i := n.Add(1)
				content := blob.New(fmt.Appendf(nil, "state %d", i))
				if err := db.Blobs().Put(context.Background(), content); err != nil {
					b.Error(err)
				}
				err := db.Rows().Commit(context.Background(), &kv.Batch{
					Set:  []kv.Set{{Key: fmt.Sprintf("row/%03d", i%500), Value: content.ID.Bytes()}},
					Refs: []blob.ID{content.ID},
				})
				if err != nil {
					b.Error(err)
				}
			}
			if writers == 1 {
				for b.Loop() {
					commit()
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					commit()
				}
			})
		})
	}
}

// BenchmarkGet reads blobs of a few KiB that the page cache of the library holds,
// or does not.
func BenchmarkGet(b *testing.B) {
	for _, test := range []struct {
		name  string
		blobs int
	}{{"cached", 50}, {"uncached", 20_000}} {
		b.Run(test.name, func(b *testing.B) {
			db := openTest(b, nil)
			ids := make([]blob.ID, test.blobs)
			for i := range ids {
				content := blob.New(append(fmt.Appendf(nil, "%d", i), make([]byte, 2000)...))
				ids[i] = content.ID
				if err := db.Blobs().Put(context.Background(), content); err != nil {
					b.Fatal(err)
				}
			}
			if err := db.Blobs().Flush(context.Background()); err != nil {
				b.Fatal(err)
			}
			i := 0
			for b.Loop() {
				if _, err := db.Blobs().Get(context.Background(), ids[i%len(ids)]); err != nil {
					b.Fatal(err)
				}
				i += 7919
			}
		})
	}
}
