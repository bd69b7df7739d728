package stet

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/thread"
)

// Each benchmark measures us and a baseline in turns, in one run, and reports
// the ratio; `make bench` prints them beside their targets.

// content makes blobs of a size that compress like text, each different.
func content(size int) func() blob.Blob {
	words := bytes.Fields([]byte("func return if err nil error string byte range for the of and to in is that it was store blob commit write read file turn step state"))
	var n uint64
	var mu sync.Mutex
	return func() blob.Blob {
		mu.Lock()
		n++
		seed := n
		mu.Unlock()
		random := rand.New(rand.NewPCG(seed, 7))
		data := binary.BigEndian.AppendUint64(make([]byte, 0, size+16), random.Uint64())
		for len(data) < size {
			data = append(append(data, words[random.IntN(len(words))]...), ' ')
		}
		return blob.New(data[:size])
	}
}

// race does the same work in two ways, in turns, so that noise meets both, and
// reports baseline/ours: above 1 we are faster. Blobs are made outside the clock.
func race(b *testing.B, each int, next func() blob.Blob, ours, baseline func([]blob.Blob)) {
	var took [2]time.Duration
	for b.Loop() {
		for i, run := range []func([]blob.Blob){ours, baseline} {
			group := make([]blob.Blob, each)
			for k := range group {
				group[k] = next()
			}
			start := time.Now()
			run(group)
			took[i] += time.Since(start)
		}
	}
	n := float64(b.N * each)
	b.ReportMetric(n/took[0].Seconds(), "ours/s")
	b.ReportMetric(n/took[1].Seconds(), "base/s")
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "ratio")
}

func openBench(b *testing.B, unlock *keyring.Unlock) *DB {
	b.Helper()
	dir := b.TempDir()
	opts := &Options{Unlock: unlock}
	if unlock != nil {
		db, err := Open(b.Context(), dir, nil)
		if err == nil {
			err = db.Close()
		}
		if err == nil {
			_, err = keyring.Create(filepath.Join(dir, KeyringName), *unlock)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	db, err := Open(b.Context(), dir, opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

// perWriter is how many blobs each concurrent writer makes durable, one after
// the other.
const perWriter = 8

// putAll makes blobs durable by some writers at once.
func putAll(b *testing.B, db *DB, writers int) func([]blob.Blob) {
	each := func(mine []blob.Blob) {
		for _, one := range mine {
			mustPut(b, db, one)
		}
	}
	if writers == 1 { // nor does the baseline pay for another goroutine
		return each
	}
	return func(blobs []blob.Blob) {
		var wg sync.WaitGroup
		for mine := range slices.Chunk(blobs, len(blobs)/writers) {
			wg.Go(func() { each(mine) })
		}
		wg.Wait()
	}
}

func mustPut(b *testing.B, db *DB, one blob.Blob) {
	if err := db.Blobs().Put(context.Background(), one); err != nil {
		b.Error(err)
	}
	if err := db.Blobs().Flush(context.Background()); err != nil {
		b.Error(err)
	}
}

// rawDriver stores blobs in the SQL library with the same pragmas, group of them
// in one transaction, as a program without us would.
func rawDriver(b *testing.B) func(blobs []blob.Blob) {
	c, err := sqlite3.Open("file:" + filepath.Join(b.TempDir(), "raw.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	if err := c.Exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
		CREATE TABLE blobs (n INTEGER PRIMARY KEY, id BLOB UNIQUE, data BLOB)`); err != nil {
		b.Fatal(err)
	}
	s, _, err := c.Prepare(`INSERT INTO blobs (id, data) VALUES (?, ?)`)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	must := func(err error) {
		if err != nil {
			b.Error(err)
		}
	}
	return func(blobs []blob.Blob) {
		must(c.Exec(`BEGIN IMMEDIATE`))
		for _, one := range blobs {
			must(s.BindBlob(1, one.ID[:]))
			must(s.BindBlob(2, one.Data))
			must(s.Exec())
		}
		must(c.Exec(`COMMIT`))
	}
}

// groupCommit lets writers share the raw driver's transactions, as a program
// without us would: one goroutine takes all that waits into the next one.
func groupCommit(raw func([]blob.Blob), writers int) func([]blob.Blob) {
	type waiting struct {
		one  blob.Blob
		done chan struct{}
	}
	return func(blobs []blob.Blob) {
		queue := make(chan waiting, writers)
		var wg sync.WaitGroup
		for mine := range slices.Chunk(blobs, len(blobs)/writers) {
			wg.Go(func() {
				for _, one := range mine {
					w := waiting{one, make(chan struct{})}
					queue <- w
					<-w.done
				}
			})
		}
		go func() { wg.Wait(); close(queue) }()
		for first := range queue {
			group := []waiting{first}
			for len(queue) > 0 {
				group = append(group, <-queue)
			}
			all := make([]blob.Blob, len(group))
			for i, w := range group {
				all[i] = w.one
			}
			raw(all)
			for _, w := range group {
				close(w.done)
			}
		}
	}
}

// plainFile makes a blob durable as a file: temporary, sync, rename, sync.
func plainFile(b *testing.B, dir string, one blob.Blob) {
	must := func(err error) {
		if err != nil {
			b.Error(err)
		}
	}
	path := filepath.Join(dir, one.ID.String())
	f, err := os.Create(path + ".tmp")
	must(err)
	_, err = f.Write(one.Data)
	must(err)
	must(f.Sync())
	must(f.Close())
	must(os.Rename(path+".tmp", path))
	d, err := os.Open(dir)
	must(err)
	must(d.Sync())
	must(d.Close())
}

func BenchmarkDurablePut(b *testing.B) {
	for _, size := range []int{256, 4 << 10, 64 << 10} {
		for _, writers := range []int{1, 32} {
			b.Run(fmt.Sprintf("raw-driver/%dB/%d", size, writers), func(b *testing.B) {
				db, raw, next := openBench(b, nil), rawDriver(b), content(size)
				baseline := func(blobs []blob.Blob) {
					for i := range blobs {
						raw(blobs[i : i+1])
					}
				}
				if writers > 1 {
					baseline = groupCommit(raw, writers)
				}
				race(b, writers*perWriter, next, putAll(b, db, writers), baseline)
			})
		}
	}
	b.Run("plain-files/1MiB/1", func(b *testing.B) {
		db, dir, next := openBench(b, nil), b.TempDir(), content(1<<20)
		race(b, perWriter, next, putAll(b, db, 1), func(blobs []blob.Blob) {
			for _, one := range blobs {
				plainFile(b, dir, one)
			}
		})
	})
}

func BenchmarkCachedGet(b *testing.B) {
	db, next := openBench(b, nil), content(4<<10)
	one := next()
	mustPut(b, db, one)
	cold := blob.Checked(coldStack(db))
	get := func(s blob.Store) func([]blob.Blob) {
		return func(blobs []blob.Blob) {
			for range blobs {
				if _, err := s.Get(context.Background(), one.ID); err != nil {
					b.Error(err)
				}
			}
		}
	}
	race(b, 100, func() blob.Blob { return one }, get(db.Blobs()), get(cold))
}

func BenchmarkReput(b *testing.B) {
	db, next := openBench(b, nil), content(4<<10)
	one := next()
	mustPut(b, db, one)
	race(b, 1, next, func([]blob.Blob) { mustPut(b, db, one) }, putAll(b, db, 1))
}

func BenchmarkEncrypted(b *testing.B) {
	unlock := keyring.Raw(bytes.Repeat([]byte{1}, 32))
	sealed, plain, next := openBench(b, &unlock), openBench(b, nil), content(64<<10)
	race(b, 1, next, putAll(b, sealed, 1), putAll(b, plain, 1))
}

func BenchmarkGrowingList(b *testing.B) {
	db := openBench(b, nil)
	builder := blob.NewBuilder()
	grow := func(entries int) int64 {
		for range entries {
			var id blob.ID
			for i := 0; i < len(id); i += 8 {
				binary.LittleEndian.PutUint64(id[i:], rand.Uint64())
			}
			builder.Append(append([]byte{0x42, 0x20}, id[:]...))
		}
		before := storedBytes(b, db)
		made := builder.Blob(nil)
		mustPut(b, db, made)
		builder.Commit(made)
		mustCompact(b, db)
		return storedBytes(b, db) - before
	}
	grow(10_000)
	var bytes int64
	for b.Loop() {
		bytes += grow(1)
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "B/entry")
}

func mustCompact(b *testing.B, db *DB) {
	if err := db.Compact(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
}

func storedBytes(b *testing.B, db *DB) int64 {
	var total int64
	if err := db.List(b.Context(), blob.ID{}, func(i blob.Info) error {
		total += i.Stored
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	return total
}

// zstdSize is what the content takes when each piece is compressed by itself.
func zstdSize(b *testing.B, pieces [][]byte) int64 {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		b.Fatal(err)
	}
	defer enc.Close()
	var total int64
	for _, p := range pieces {
		total += int64(len(enc.EncodeAll(p, nil)))
	}
	return total
}

// BenchmarkThousandTurns saves after every turn of about 10 KB of text and
// compares what is stored with what the text alone takes.
func BenchmarkThousandTurns(b *testing.B) {
	for b.Loop() {
		db := openBench(b, nil)
		var pieces [][]byte
		text := content(5 << 10)
		c, err := db.Conversations().Create(b.Context(), conversation.Info{})
		if err != nil {
			b.Fatal(err)
		}
		for i := range 1000 {
			question, answer := printable(text()), printable(text())
			pieces = append(pieces, []byte(question), []byte(answer))
			turn, err := conversation.NewTurn(
				&agentv1.UserMessage{Text: question, MessageId: fmt.Sprint(i)},
				&agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{
					AssistantMessage: &agentv1.AssistantMessage{Text: answer},
				}})
			if err != nil {
				b.Fatal(err)
			}
			if err := c.AppendTurn(b.Context(), turn); err != nil {
				b.Fatal(err)
			}
			if _, err := c.Save(b.Context(), nil); err != nil {
				b.Fatal(err)
			}
		}
		mustCompact(b, db)
		b.ReportMetric(float64(storedBytes(b, db))/float64(zstdSize(b, pieces)), "stored/content")
	}
}

// rowBytes is what all rows take, with their keys.
func rowBytes(b *testing.B, db *DB) int64 {
	var total int64
	for row, err := range kv.Each(b.Context(), db.rows, kv.Range{}, false) {
		if err != nil {
			b.Fatal(err)
		}
		total += int64(len(row.Key) + len(row.Value))
	}
	return total
}

// BenchmarkThousandFrames stores a frame for each of 1,000 rounds of a graph whose list of
// messages grows by about 2 KB, and compares what is stored, rows included, with what the
// messages alone take. blobs is the part of the blobs. copies is what it would be with
// the whole list in each frame.
func BenchmarkThousandFrames(b *testing.B) {
	for b.Loop() {
		db := openBench(b, nil)
		threads := db.Threads()
		text := content(2 << 10)
		var pieces [][]byte
		var copies int64
		list, parent := []byte("["), ""
		for i := range 1000 {
			message, err := json.Marshal(map[string]string{"role": "user", "content": printable(text())})
			if err != nil {
				b.Fatal(err)
			}
			pieces = append(pieces, message)
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, message...)
			value := append(slices.Clone(list), ']')
			copies += int64(len(value))
			id := fmt.Sprintf("%04d", i)
			err = threads.Put(b.Context(), thread.NewFrame{
				Key: thread.Key{Thread: "t", ID: id}, Parent: parent,
				Metadata: fmt.Appendf(nil, `{"source":"loop","step":%d,"parents":{}}`, i),
				Body:     thread.Value{Type: "json", Data: fmt.Appendf(nil, `{"v":4,"id":%q,"ts":"2026-01-01T00:00:00.000Z","channel_versions":{"messages":%d},"versions_seen":{}}`, id, i)},
				Versions: map[string]string{"messages": fmt.Sprint(i)},
				Values:   map[string]thread.Value{"messages": {Type: "json", Data: value}},
			})
			if err != nil {
				b.Fatal(err)
			}
			parent = id
		}
		mustCompact(b, db)
		unique := float64(zstdSize(b, pieces))
		blobs := storedBytes(b, db)
		b.ReportMetric(float64(blobs+rowBytes(b, db))/unique, "stored/content")
		b.ReportMetric(float64(blobs)/unique, "blobs/content")
		b.ReportMetric(float64(copies)/unique, "copies/content")
	}
}

func printable(b blob.Blob) string { return fmt.Sprintf("%x", b.Data[:8]) + string(b.Data[8:]) }

// coldStack is the stack below the cache.
func coldStack(db *DB) blob.Store { return compressed.New(db.engine.Blobs(), nil) }
