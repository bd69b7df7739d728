package upkeep_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/upkeep"
)

func storedSize(t testing.TB, db *stet.DB) (n int64) {
	t.Helper()
	if err := db.List(t.Context(), blob.ID{}, func(i blob.Info) error { n += i.Stored; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// wantStored reads as a stream, which passes the cache by.
func wantStored(t testing.TB, db *stet.DB, blobs ...blob.Blob) {
	t.Helper()
	for _, b := range blobs {
		r, err := blob.Open(t.Context(), db.Blobs(), b.ID)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, b.Data) {
			t.Errorf("blob of %d bytes reads as %d bytes, %v", len(b.Data), len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestCompactCompressesWhatWasStoredAsItCame(t *testing.T) {
	for name, key := range map[string][]byte{"plain": nil, "encrypted": key} {
		t.Run(name, func(t *testing.T) {
			db := openTest(t, key)
			var blobs []blob.Blob
			var total int64
			for i, size := range []int{0, 1, 511, 600, 5 << 10, 100 << 10, 300 << 10, 3 << 20} {
				data := bytes.Repeat(fmt.Appendf(nil, "line %d of a text that repeats itself\n", i), 1+size/30)[:size]
				b := blob.New(data)
				b.LocalOnly = i%2 == 0
				blobs, total = append(blobs, b), total+int64(size)
			}
			if err := db.Blobs().Put(t.Context(), blobs...); err != nil {
				t.Fatal(err)
			}
			streamed := blob.New(bytes.Repeat([]byte("a stream of the same\n"), 100_000))
			total += int64(len(streamed.Data))
			err := blob.PutFrom(t.Context(), db.Blobs(), streamed.ID, bytes.NewReader(streamed.Data), int64(len(streamed.Data)))
			if err != nil {
				t.Fatal(err)
			}
			blobs = append(blobs, streamed)
			if err := db.Blobs().Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantStored(t, db, blobs...)
			if err := db.Compact(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if got := storedSize(t, db); got > total/20 {
				t.Errorf("compacted, %d bytes of repetitions take %d", total, got)
			}
			wantStored(t, db, blobs...)
			if left := db.Uncompacted(); left != 0 {
				t.Errorf("%d bytes are left", left)
			}
			if report, err := db.Check(t.Context(), &upkeep.CheckOptions{ReadData: true}); err != nil || len(report.Damage) > 0 {
				t.Errorf("check: %v, %v", report.Damage, err)
			}
		})
	}
}

// TestBacklog counts what waits, also for a process that stored nothing itself.
func TestBacklog(t *testing.T) {
	dir := t.TempDir()
	open := func() *stet.DB {
		db, err := stet.Open(t.Context(), dir, &stet.Options{CompactManually: true})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	waits := func(db *stet.DB, enough int64) int64 {
		n, err := db.Backlog(t.Context(), enough)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const blobs, size = 1000, 2000
	first := open()
	for i := range blobs {
		if err := first.Blobs().Put(t.Context(), blob.New(bytes.Repeat(fmt.Appendf(nil, "%09d\n", i), size/10))); err != nil {
			t.Fatal(err)
		}
	}
	if got := first.Uncompacted(); got != blobs*size {
		t.Errorf("%d bytes of this process wait, want %d", got, blobs*size)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	db := open()
	defer db.Close()
	if own, all := db.Uncompacted(), waits(db, math.MaxInt64); own != 0 || all < blobs*size {
		t.Errorf("in another process %d bytes of its own wait and %d of all, want none and at least %d", own, all, blobs*size)
	}
	if got := waits(db, 1); got < 1 || got > blobs*size/2 {
		t.Errorf("counted %d bytes where one was enough", got)
	}
	if err := db.Compact(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := waits(db, math.MaxInt64); got != 0 {
		t.Errorf("%d bytes wait after all are compacted", got)
	}
}

// TestCompactGoesOnWhereAnotherProcessEnded closes a store before it is quiet.
func TestCompactGoesOnWhereAnotherProcessEnded(t *testing.T) {
	dir := t.TempDir()
	var looked int
	for round := range 3 {
		db, err := stet.Open(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		one := blob.New(bytes.Repeat(fmt.Appendf(nil, "round %d\n", round), 1000))
		if err := db.Blobs().Put(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		if err := db.Blobs().Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if round > 0 {
			looked = 0
			if err := db.Compact(t.Context(), func(done int) { looked = done }); err != nil {
				t.Fatal(err)
			}
			if want := 2 * (3 - round); looked != want { // two blobs, then one, and what became of them
				t.Errorf("round %d looked at %d blobs, want %d", round, looked, want)
			}
			if got := storedSize(t, db); got > 1000 {
				t.Errorf("round %d: %d bytes stored", round, got)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAStoreCompactsByItself waits until it has.
func TestAStoreCompactsByItself(t *testing.T) {
	db := openTest(t, nil)
	one := blob.New(bytes.Repeat([]byte("by itself\n"), 1000))
	if err := db.Blobs().Put(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := db.Blobs().Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for storedSize(t, db) > 1000 {
		select {
		case <-t.Context().Done():
			t.Fatal("it did not")
		case <-time.After(10 * time.Millisecond):
		}
	}
	wantStored(t, db, one)
}

// TestCompactBesideWritersReadersAndCollector has everybody at the same blobs.
func TestCompactBesideWritersReadersAndCollector(t *testing.T) {
	dir := t.TempDir()
	unlock := keyring.Raw(key)
	if _, err := keyring.Create(filepath.Join(prepared(t, dir), stet.KeyringName), unlock); err != nil {
		t.Fatal(err)
	}
	var dbs [2]*stet.DB // as two processes have it
	for i := range dbs {
		db, err := stet.Open(t.Context(), dir, &stet.Options{Unlock: &unlock, CacheBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		dbs[i] = db
	}
	must := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	ctx := context.Background()
	var wg sync.WaitGroup
	for w, db := range dbs {
		wg.Go(func() {
			c, err := db.Conversations().Create(ctx, conversation.Info{})
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 40 {
				text := string(bytes.Repeat(fmt.Appendf(nil, "writer %d says %d; ", w, i), 100+i*10))
				turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: text, MessageId: fmt.Sprint(w, i)})
				must(err)
				must(c.AppendTurn(ctx, turn))
				_, err = c.Save(ctx, nil)
				must(err)
				garbage := blob.New([]byte(text + "nobody refers to this"))
				must(db.Blobs().Put(ctx, garbage))
			}
		})
		wg.Go(func() {
			for range 20 {
				must(db.Compact(ctx, nil))
			}
		})
	}
	wg.Go(func() {
		for range 10 {
			_, err := dbs[0].Collect(ctx, &upkeep.CollectOptions{Grace: -1})
			must(err)
		}
	})
	wg.Wait()
	report, err := dbs[1].Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
	if err != nil || len(report.Damage) > 0 {
		t.Errorf("check: %v, %v", report.Damage, err)
	}
}

// fullDisk has no room for replacements.
type fullDisk struct {
	*sqlite.Blobs
	full bool
}

func (d *fullDisk) Replace(ctx context.Context, blobs ...blob.Blob) error {
	if d.full {
		return blob.ErrFull
	}
	return d.Blobs.Replace(ctx, blobs...)
}

// TestCompactOnAFullDiskLosesNothing and goes on once there is room: the mark has
// not moved past what was not exchanged.
func TestCompactOnAFullDiskLosesNothing(t *testing.T) {
	engine, err := sqlite.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	disk := &fullDisk{Blobs: engine.Blobs(), full: true}
	db, err := stet.New(t.Context(), stet.Backend{Blobs: disk, Rows: engine.Rows(), Inventory: disk, Rewriter: disk, Arrivals: disk, Close: engine.Close}, nil, &stet.Options{CompactManually: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	one := blob.New(bytes.Repeat([]byte("no room\n"), 1000))
	if err := db.Blobs().Put(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := db.Blobs().Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Compact(t.Context(), nil); !errors.Is(err, blob.ErrFull) {
		t.Errorf("Compact = %v, want ErrFull", err)
	}
	wantStored(t, db, one)
	disk.full = false
	if err := db.Compact(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := storedSize(t, db); got > 1000 {
		t.Errorf("%d bytes stored", got)
	}
	wantStored(t, db, one)
}

func TestCompactCompressesDeltas(t *testing.T) {
	for name, key := range map[string][]byte{"plain": nil, "encrypted": key} {
		t.Run(name, func(t *testing.T) {
			db, next := openTest(t, key), content(40<<10)
			first, other := next(), next()
			edited := bytes.Clone(first.Data)
			for _, at := range []int{10, 20 << 10, 39 << 10} { // nothing to share at either end
				copy(edited[at:], "something else, which was not there")
			}
			appended := blob.New(append(bytes.Clone(first.Data), other.Data[:4<<10]...))
			second := blob.New(edited)
			second.Like, other.Like, appended.Like = first.ID, first.ID, first.ID
			blobs := []blob.Blob{first, second, other, appended}
			for _, b := range blobs {
				if err := db.Blobs().Put(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Blobs().Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantStored(t, db, blobs...)
			if err := db.Compact(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			wantStored(t, db, blobs...)
			infos := map[blob.ID]blob.Info{}
			if err := db.List(t.Context(), blob.ID{}, func(i blob.Info) error { infos[i.ID] = i; return nil }); err != nil {
				t.Fatal(err)
			}
			if i := infos[second.ID]; i.Base.IsZero() || i.Stored > 2<<10 {
				t.Errorf("three edits in 40 KiB take %d bytes on base %s", i.Stored, i.Base)
			}
			if i := infos[appended.ID]; i.Base.IsZero() || i.Stored > 3<<10 {
				t.Errorf("4 KiB appended to 40 KiB take %d bytes on base %s", i.Stored, i.Base)
			}
			if i := infos[other.ID]; !i.Base.IsZero() || i.Stored > 20<<10 {
				t.Errorf("a content with a wrong hint takes %d bytes on base %s", i.Stored, i.Base)
			}
		})
	}
}

// TestCompactComparesWhatWasPutOff saves many edits with processes that have just
// begun: most are stored whole and become differences when they are compacted.
func TestCompactComparesWhatWasPutOff(t *testing.T) {
	for name, key := range map[string][]byte{"plain": nil, "encrypted": key} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			opts := optionsFor(t, dir, key)
			opts.CompactManually = true
			next := content(4 << 10)
			var all, last []blob.Blob
			var whole int64
			for round := range 4 {
				db, err := stet.Open(t.Context(), dir, opts)
				if err != nil {
					t.Fatal(err)
				}
				for i := range 100 {
					one := next()
					if round > 0 {
						edited := bytes.Clone(last[i].Data)
						copy(edited[round*1000:], "what was edited in this round")
						one = blob.New(edited)
						one.Like = last[i].ID
					}
					all = append(all, one)
				}
				last = all[len(all)-100:]
				if err := db.Blobs().Put(t.Context(), last...); err != nil {
					t.Fatal(err)
				}
				if err := db.Blobs().Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				wantStored(t, db, all...)
				if round == 0 {
					whole = storedSize(t, db)
				} else if got := storedSize(t, db); got < whole*int64(round+1)/2 {
					t.Errorf("round %d: %d bytes, as if everything had been compared", round, got)
				}
				if round == 3 {
					if err := db.Compact(t.Context(), nil); err != nil {
						t.Fatal(err)
					}
					if got := storedSize(t, db); got > whole*3/2 {
						t.Errorf("compacted, three edits of each take %d bytes, the first versions %d", got-whole, whole)
					}
					wantStored(t, db, all...)
					if report, err := db.Check(t.Context(), &upkeep.CheckOptions{ReadData: true}); err != nil || len(report.Damage) > 0 {
						t.Errorf("check: %v, %v", report.Damage, err)
					}
				}
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
