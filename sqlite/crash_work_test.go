package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

const (
	crashWriters    = 3
	crashObjectSize = 2 << 10 // small, so that images with objects are cheap
	counterKey      = "counter"
)

// history is what a workload did and when: at which position of the record each
// batch was handed over and at which it was acknowledged.
type history struct {
	mu      sync.Mutex
	writers [crashWriters]story
	flushed []stay
}

// story is the history of one writer. Its rows after n batches are states[n].
type story struct {
	states  []map[string]string
	counts  []int // of increments of the shared counter in the first n batches
	started []int // when batch n+1 was handed over
	acked   []int
}

// stay is a blob that must be there between two positions of the record.
type stay struct {
	id          blob.ID
	from, until int
}

// work runs the workload of one seed against a store on rec: concurrent batches
// with references, compare-and-swap, range deletes, large objects, deltas, lone
// puts, replacements, sweeps, shrinking, checkpoints, and a restart.
func work(t testing.TB, rec *recorder, seed uint64, rounds, batches int) *history {
	t.Helper()
	h := &history{}
	for w := range h.writers {
		h.writers[w] = story{states: []map[string]string{{}}, counts: []int{0}}
	}
	for round := range rounds {
		db, err := Open(context.Background(), rec.root, rec.options())
		if err != nil {
			t.Fatal(err)
		}
		moveLogOften(db, 24)
		var wg sync.WaitGroup
		for w := range crashWriters {
			rng := rand.New(rand.NewPCG(seed, uint64(round*100+w)))
			wg.Go(func() {
				for range batches {
					if err := h.step(db, rec, w, rng); err != nil {
						t.Errorf("writer %d: %v", w, err)
						return
					}
				}
			})
		}
		wg.Wait()
		if err := h.replace(db, rand.New(rand.NewPCG(seed, uint64(round)))); err != nil {
			t.Fatal(err)
		}
		if err := h.sweep(db, rec); err != nil {
			t.Fatal(err)
		}
		if err := db.Shrink(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// moveLogOften lets the log start again every few transactions.
func moveLogOften(db *DB, pages int) {
	db.writer.turn.Lock()
	defer db.writer.turn.Unlock()
	db.writer.logLimit = pages
}

// step does one thing for writer w.
func (h *history) step(db *DB, rec *recorder, w int, rng *rand.Rand) error {
	ctx := context.Background()
	if rng.IntN(6) == 0 {
		return h.lonePut(db, rec, rng)
	}
	s := &h.writers[w]
	rows := maps.Clone(s.states[len(s.states)-1])
	b, err := h.batch(db, w, len(s.states), rows, rng)
	if err != nil {
		return err
	}
	counts := s.counts[len(s.counts)-1]
	counting := rng.IntN(3) == 0
	h.begin(s, rec)
	for {
		full := *b
		if counting {
			if err := addIncrement(ctx, db, &full); err != nil {
				return err
			}
		}
		err := db.Rows().Commit(ctx, &full)
		if counting && errors.Is(err, kv.ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		break
	}
	if counting {
		counts++
	}
	h.end(s, rec, rows, counts)
	return nil
}

func (h *history) begin(s *story, rec *recorder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.started = append(s.started, rec.mark())
}

func (h *history) end(s *story, rec *recorder, rows map[string]string, counts int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.acked = append(s.acked, rec.mark())
	s.states = append(s.states, rows)
	s.counts = append(s.counts, counts)
}

// batch builds batch number n of writer w and applies it to rows.
func (h *history) batch(db *DB, w, n int, rows map[string]string, rng *rand.Rand) (*kv.Batch, error) {
	b := &kv.Batch{}
	prefix := fmt.Sprintf("w%d/", w)
	if rng.IntN(5) == 0 { // forget the older half of the log
		cut := fmt.Sprintf("%slog/%05d", prefix, n/2)
		b.DeleteRange = append(b.DeleteRange, kv.Range{Start: prefix + "log/", End: cut})
		maps.DeleteFunc(rows, func(key, _ string) bool { return strings.HasPrefix(key, prefix+"log/") && key < cut })
	}
	var base blob.ID
	var ids []string
	for i := range 1 + rng.IntN(2) {
		one := randomBlob(rng, rng.IntN(7) == 0)
		if i > 0 && len(one.Data) < crashObjectSize {
			one.Base = base // stored bytes that lean on another blob
		}
		if err := db.Blobs().Put(context.Background(), one); err != nil {
			return nil, err
		}
		base = one.ID
		ids = append(ids, one.ID.String())
		b.Refs = append(b.Refs, one.ID)
	}
	set := func(key, value string) {
		rows[key] = value
		b.Set = append(b.Set, kv.Set{Key: key, Value: []byte(value)})
	}
	set(fmt.Sprintf("%slog/%05d", prefix, n), strings.Join(ids, " "))
	set(prefix+"head", strconv.Itoa(n))
	return b, nil
}

func randomBlob(rng *rand.Rand, large bool) blob.Blob {
	size := 8 + rng.IntN(300)
	if large {
		size = crashObjectSize + rng.IntN(3000)
	}
	data := make([]byte, size, size+8)
	for i := 0; i+8 <= size; i += 8 {
		binary.LittleEndian.PutUint64(data[i:], rng.Uint64())
	}
	return blob.New(data)
}

// addIncrement adds a compare-and-swap of the counter that all writers share.
func addIncrement(ctx context.Context, db *DB, b *kv.Batch) error {
	row, err := db.Rows().Get(ctx, counterKey)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	n, _ := strconv.Atoi(string(row.Value))
	b.Expect = append(slices.Clone(b.Expect), kv.Expect{Key: counterKey, Version: row.Version})
	b.Set = append(slices.Clone(b.Set), kv.Set{Key: counterKey, Value: strconv.AppendInt(nil, int64(n)+1, 10)})
	return nil
}

// lonePut makes a blob durable that no row refers to.
func (h *history) lonePut(db *DB, rec *recorder, rng *rand.Rand) error {
	one := randomBlob(rng, rng.IntN(7) == 0)
	if err := db.Blobs().Put(context.Background(), one); err != nil {
		return err
	}
	if err := db.Blobs().Flush(context.Background()); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.flushed = append(h.flushed, stay{id: one.ID, from: rec.mark(), until: -1})
	return nil
}

// replace writes blobs that are there once more, as a layer does that compresses
// late; here with the same content, so that any image can be held to the names.
// Some get a base, another one or none; not each base exists, or it is not one of those
// that lean on it.
func (h *history) replace(db *DB, rng *rand.Rand) error {
	var blobs []blob.Blob
	var others []blob.ID
	mark := ""
	for {
		infos, next, err := db.Blobs().Arrived(context.Background(), mark, 16)
		if err != nil || next == mark {
			return errors.Join(err, db.Blobs().Replace(context.Background(), blobs...))
		}
		for _, info := range infos {
			others = append(others, info.ID)
			if rng.IntN(20) > 0 && info.Stored < crashObjectSize {
				continue
			}
			data, err := db.Blobs().Get(context.Background(), info.ID)
			if err != nil {
				return err
			}
			one := blob.Blob{ID: info.ID, Data: data, Base: info.Base}
			switch rng.IntN(4) {
			case 0:
				one.Base = blob.ID{}
			case 1, 2:
				one.Base = others[rng.IntN(len(others))]
			case 3:
				if rng.IntN(4) == 0 {
					one.Base = randomBlob(rng, false).ID
				}
			}
			blobs = append(blobs, one)
		}
		mark = next
	}
}

// sweep removes what no row refers to, except half of the lone blobs.
func (h *history) sweep(db *DB, rec *recorder) error {
	ctx := context.Background()
	live := make(map[blob.ID]bool)
	for w := range h.writers {
		states := h.writers[w].states
		for _, value := range states[len(states)-1] {
			for _, id := range idsIn(value) {
				live[id] = true
			}
		}
	}
	position := rec.mark()
	for i := range h.flushed {
		if i%2 == 0 {
			live[h.flushed[i].id] = true
		} else if h.flushed[i].until < 0 {
			h.flushed[i].until = position
		}
	}
	gen, err := db.Blobs().Begin(ctx)
	if err != nil {
		return err
	}
	_, err = db.Blobs().Sweep(ctx, gen, blob.SweepOptions{Live: func(id blob.ID) bool { return live[id] }})
	return err
}

func idsIn(value string) []blob.ID {
	var ids []blob.ID
	for word := range strings.FieldsSeq(value) {
		if id, err := blob.ParseID(word); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// found is what a store holds after a crash.
type found struct {
	rows  map[string]string
	blobs map[blob.ID]blob.ID // → base
	batch [crashWriters]int   // the number of batches that are visible
	err   error               // what is wrong whatever was acknowledged
}

// look reads everything and checks what must hold at any time: contents fit their
// names, nothing refers to what is missing, batches are there whole or not at all.
func (h *history) look(db *DB) *found {
	f := &found{rows: make(map[string]string), blobs: make(map[blob.ID]blob.ID)}
	f.err = f.read(db)
	if f.err == nil {
		f.err = f.checkReferences()
	}
	if f.err == nil {
		f.err = h.matchBatches(f)
	}
	return f
}

func (f *found) read(db *DB) error {
	ctx := context.Background()
	for row, err := range db.Rows().Scan(ctx, kv.Range{}, kv.ScanOptions{}) {
		if err != nil {
			return err
		}
		f.rows[row.Key] = string(row.Value)
	}
	err := db.Blobs().List(ctx, blob.ID{}, func(info blob.Info) error {
		f.blobs[info.ID] = info.Base
		return nil
	})
	if err != nil {
		return err
	}
	for id := range f.blobs {
		data, err := db.Blobs().Get(ctx, id)
		if err != nil {
			return err
		}
		if blob.Sum(data) != id {
			return blob.Corrupt(id, "content changed")
		}
	}
	return nil
}

func (f *found) checkReferences() error {
	for key, value := range f.rows {
		for _, id := range idsIn(value) {
			if _, ok := f.blobs[id]; !ok {
				return fmt.Errorf("row %s refers to missing blob %s", key, id.Short())
			}
		}
	}
	for id, base := range f.blobs {
		if _, ok := f.blobs[base]; !ok && !base.IsZero() {
			return fmt.Errorf("blob %s leans on missing blob %s", id.Short(), base.Short())
		}
	}
	return nil
}

// matchBatches finds out how many batches of each writer are visible.
func (h *history) matchBatches(f *found) error {
	sum, total := 0, 0
	for w := range h.writers {
		s, prefix := &h.writers[w], fmt.Sprintf("w%d/", w)
		rows := maps.Clone(f.rows)
		maps.DeleteFunc(rows, func(key, _ string) bool { return !strings.HasPrefix(key, prefix) })
		total += len(rows)
		n, _ := strconv.Atoi(rows[prefix+"head"])
		if n >= len(s.states) || !maps.Equal(rows, s.states[n]) {
			return fmt.Errorf("rows of writer %d are those of no moment (head %d)", w, n)
		}
		f.batch[w] = n
		sum += s.counts[n]
	}
	count, there := f.rows[counterKey]
	if there {
		total++
	}
	if n, _ := strconv.Atoi(count); n != sum {
		return fmt.Errorf("counter is %d, the visible batches added %d", n, sum)
	}
	if total != len(f.rows) {
		return fmt.Errorf("%d rows, of which the writers know %d", len(f.rows), total)
	}
	return nil
}

// check compares what was found after a crash at a position with what had been
// acknowledged by then.
func (h *history) check(f *found, position int) error {
	if f.err != nil {
		return f.err
	}
	for w := range h.writers {
		s := &h.writers[w]
		acked, _ := slices.BinarySearch(s.acked, position)
		started, _ := slices.BinarySearch(s.started, position)
		if n := f.batch[w]; n < acked || n > started {
			return fmt.Errorf("writer %d: %d batches are visible, %d acknowledged, %d started", w, n, acked, started)
		}
	}
	for _, one := range h.flushed {
		if one.from >= position || one.until >= 0 && one.until < position {
			continue
		}
		if _, ok := f.blobs[one.id]; !ok {
			return fmt.Errorf("flushed blob %s is missing", one.id.Short())
		}
	}
	return nil
}
