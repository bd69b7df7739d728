package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
)

// ledger is what a run with injected errors may find when it opens the store
// again.
type ledger struct {
	allowed map[string]map[string]bool // key → values; "" is absent
	flushed map[blob.ID]bool
	errs    []error // of steps
}

func newLedger() *ledger {
	return &ledger{allowed: make(map[string]map[string]bool), flushed: make(map[blob.ID]bool)}
}

// commit notes the outcome of a batch that sets one row and deletes others.
func (l *ledger) commit(key, value string, deleted []string, err error) {
	note := func(key, value string) {
		if err == nil || l.allowed[key] == nil {
			before := l.allowed[key]
			l.allowed[key] = map[string]bool{}
			if err != nil && before == nil {
				l.allowed[key][""] = true
			}
		}
		l.allowed[key][value] = true
	}
	note(key, value)
	for _, key := range deleted {
		note(key, "")
	}
}

// check compares an opened store with the ledger.
func (l *ledger) check(db *DB) error {
	f := &found{rows: make(map[string]string), blobs: make(map[blob.ID]blob.ID)}
	if err := f.read(db); err != nil {
		return err
	}
	for key, allowed := range l.allowed {
		if !allowed[f.rows[key]] {
			return fmt.Errorf("row %s is %.20q, allowed are %d values", key, f.rows[key], len(allowed))
		}
	}
	for id := range l.flushed {
		if _, ok := f.blobs[id]; !ok {
			return fmt.Errorf("flushed blob %s is missing", id.Short())
		}
	}
	return f.checkReferences()
}

const faultSteps = 12

// faultyRun goes through every kind of call on a store whose disk may fail, twice,
// with a restart between.
func (l *ledger) faultyRun(ctx context.Context, rec *recorder, seed uint64) {
	rng := rand.New(rand.NewPCG(3, seed))
	for range 2 {
		db, err := Open(ctx, rec.root, rec.options())
		if err != nil {
			l.errs = append(l.errs, err)
			return
		}
		moveLogOften(db, math.MaxInt) // never beside the steps: each run must do the same
		for i := range faultSteps {
			if err := l.step(ctx, db, i, rng); err != nil {
				l.errs = append(l.errs, err)
			}
			moveLogNow(db, 12)
		}
		if err := db.Close(); err != nil {
			l.errs = append(l.errs, err)
		}
	}
}

// moveLogNow moves a log of so many pages.
func moveLogNow(db *DB, pages int) {
	w := db.writer
	w.turn.Lock()
	defer w.turn.Unlock()
	if w.logPages >= pages {
		w.logPages = math.MaxInt
		w.moveLog()
	}
}

func (l *ledger) step(ctx context.Context, db *DB, i int, rng *rand.Rand) error {
	one := randomBlob(rng, i%3 == 1)
	if i == 8 {
		return l.sweep(ctx, db)
	}
	if err := db.Blobs().Put(ctx, one); err != nil {
		return err
	}
	if i%4 == 3 {
		err := db.Blobs().Flush(ctx)
		if err == nil {
			l.flushed[one.ID] = true
		}
		return err
	}
	key := fmt.Sprintf("row/%02d", i)
	batch := &kv.Batch{Set: []kv.Set{{Key: key, Value: []byte(one.ID.String())}}, Refs: []blob.ID{one.ID}}
	var deleted []string
	if i == 6 {
		batch.DeleteRange = []kv.Range{{Start: "row/00", End: "row/02"}}
		deleted = []string{"row/00", "row/01"}
	}
	err := db.Rows().Commit(ctx, batch)
	l.commit(key, one.ID.String(), deleted, err)
	return err
}

func (l *ledger) sweep(ctx context.Context, db *DB) error {
	gen, err := db.Blobs().Begin(ctx)
	if err != nil {
		return err
	}
	needed := make(map[blob.ID]bool)
	for _, values := range l.allowed {
		for value := range values {
			for _, id := range idsIn(value) {
				needed[id] = true
			}
		}
	}
	_, err = db.Blobs().Sweep(ctx, gen, blob.SweepOptions{Live: func(id blob.ID) bool { return needed[id] || l.flushed[id] }})
	return err
}

// faultPlan makes the operation number at fail, and with sticky all later ones.
type faultPlan struct {
	at     int
	sticky bool
	err    error
	seed   uint64 // of the contents that the steps store
}

func (p faultPlan) String() string {
	return fmt.Sprintf("%v at operation %d, sticky %v", p.err, p.at, p.sticky)
}

// inject sets the plan up and returns what it hit first.
func (p faultPlan) inject(rec *recorder) (hit *change) {
	n := 0
	hit = &change{op: opMark}
	rec.setFault(func(c change) error {
		n++
		if n-1 < p.at || n-1 > p.at && !p.sticky {
			return nil
		}
		if hit.op == opMark {
			*hit = c
		}
		switch {
		case p.err == errShort && c.op != opWrite:
			return syscall.ENOSPC
		case p.err == syscall.ENOSPC && (c.op == opUnlink || c.op == opTruncate):
			return nil // making room needs none
		}
		return p.err
	})
	return hit
}

// typed reports whether callers can tell from err what went wrong.
func (p faultPlan) typed(err error) bool {
	if errors.Is(err, blob.ErrReadOnly) || errors.Is(err, kv.ErrBusy) {
		return true
	}
	switch p.err {
	case syscall.ENOSPC:
		return errors.Is(err, blob.ErrFull)
	case errShort:
		return errors.Is(err, blob.ErrFull) || errors.Is(err, io.ErrShortWrite)
	}
	return errors.Is(err, p.err)
}

func TestInputOutputErrors(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	clean := newRecorder(t, memoryDir(t))
	operations := 0
	var kinds []string
	clean.setFault(func(c change) error { operations++; kinds = append(kinds, c.op.String()); return nil })
	l := newLedger()
	if l.faultyRun(ctx, clean, 0); len(l.errs) > 0 {
		t.Fatal(errors.Join(l.errs...))
	}
	var plans []faultPlan
	for _, err := range []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS, errShort} {
		for _, sticky := range []bool{false, true} {
			for i := range operations * testenv.Scale(1, 4) {
				plans = append(plans, faultPlan{at: i % operations, sticky: sticky, err: err, seed: uint64(i / operations)})
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
	plans = plans[:min(len(plans), testenv.Scale(600, 10_000))]
	if testenv.SlowFiles() { // each kind of operation and each error, but not each with each
		plans = nil
		for i, p := range testenv.Points(kinds, 1, 4) {
			at := p.Number - 1
			if p.Kind != "" {
				at = slices.Index(kinds, p.Kind)
			}
			plans = append(plans, faultPlan{at: at, sticky: i/4%2 == 1, err: []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS, errShort}[i%4]})
		}
	}
	for _, plan := range plans {
		runPlan(ctx, t, plan)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d faults of %d operations", len(plans), operations)
}

// runPlan runs the steps under a plan, then without faults: the store must hold
// what it acknowledged, both on its disk and on one that lost power.
func runPlan(ctx context.Context, t *testing.T, plan faultPlan) {
	t.Helper()
	rec := newRecorder(t, memoryDir(t))
	hit := plan.inject(rec)
	l := newLedger()
	l.faultyRun(ctx, rec, plan.seed)
	if hit.op == opMark && plan.seed == 0 {
		t.Errorf("%v: never reached", plan)
	}
	for _, err := range l.errs {
		if !plan.typed(err) {
			t.Errorf("%v (%s %s): untyped error %v", plan, hit.op, hit.path, err)
		}
	}
	rec.setFault(nil)
	for _, dir := range []string{crashNow(t, rec), rec.root} {
		db, err := Open(ctx, dir, &Options{ObjectSize: crashObjectSize, Readers: 1})
		if err != nil {
			t.Errorf("%v (%s %s): open afterwards: %v", plan, hit.op, hit.path, err)
			return
		}
		if err := l.check(db); err != nil {
			t.Errorf("%v (%s %s), found in %s: %v", plan, hit.op, hit.path, dir, err)
		}
		if err := db.Rows().Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: "after", Value: []byte("works")}}}); err != nil {
			t.Errorf("%v: write afterwards: %v", plan, err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("%v: close afterwards: %v", plan, err)
		}
	}
}

// TestFailedSync shows that nothing is written after a failed fsync until the
// store is opened again, whatever the reason and the file.
func TestFailedSync(t *testing.T) {
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS} {
		for _, where := range []string{"-wal", "objects/tmp/", "objects/"} {
			t.Run(fmt.Sprint(cause, " ", where), func(t *testing.T) {
				rec := newRecorder(t, memoryDir(t))
				db, err := Open(t.Context(), rec.root, rec.options())
				if err != nil {
					t.Fatal(err)
				}
				failed := false
				rec.setFault(func(c change) error {
					isSync := c.op == opSync || c.op == opSyncDir
					if failed || !isSync || !strings.Contains(c.path+"/", where) && !strings.HasSuffix(c.path, where) {
						return nil
					}
					failed = true
					return cause
				})
				one := randomBlob(rand.New(rand.NewPCG(1, 1)), true)
				err = db.Blobs().Put(t.Context(), one)
				if err == nil {
					err = db.Rows().Commit(t.Context(), &kv.Batch{Refs: []blob.ID{one.ID}})
				}
				if !errors.Is(err, cause) {
					t.Errorf("the failing call returned %v", err)
				}
				err = db.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "k", Value: []byte("v")}}})
				if !errors.Is(err, blob.ErrReadOnly) {
					t.Errorf("commit after the failed sync = %v, want ErrReadOnly", err)
				}
				if err := db.Blobs().Put(t.Context(), blob.New([]byte("x"))); !errors.Is(err, blob.ErrReadOnly) {
					t.Errorf("put after the failed sync = %v, want ErrReadOnly", err)
				}
				if err := db.Close(); !errors.Is(err, blob.ErrReadOnly) {
					t.Errorf("close after the failed sync = %v, want ErrReadOnly", err)
				}
				again, err := Open(t.Context(), rec.root, rec.options())
				if err != nil {
					t.Fatal(err)
				}
				defer again.Close()
				if err := again.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "k", Value: []byte("v")}}}); err != nil {
					t.Errorf("commit after opening again: %v", err)
				}
			})
		}
	}
}

// TestPutOnFullDisk fills the memory for pending blobs while nothing can be
// written: a Put that finds no room must report it instead of waiting without end.
func TestPutOnFullDisk(t *testing.T) {
	rec := newRecorder(t, memoryDir(t))
	opts := rec.options()
	opts.MaxPending = 4 << 10
	db, err := Open(t.Context(), rec.root, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	full := func(c change) error {
		if c.op == opWrite {
			return syscall.ENOSPC
		}
		return nil
	}
	rec.setFault(full)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rng := rand.New(rand.NewPCG(5, 5))
	for range 100 {
		if err = db.Blobs().Put(ctx, randomBlob(rng, false)); err != nil {
			break
		}
	}
	if !errors.Is(err, blob.ErrFull) {
		t.Errorf("Put on a full disk = %v, want ErrFull", err)
	}
	rec.setFault(nil)
	if err := db.Blobs().Put(ctx, randomBlob(rng, false)); err != nil {
		t.Errorf("Put after room was made: %v", err)
	}
	if err := db.Blobs().Flush(ctx); err != nil {
		t.Errorf("Flush after room was made: %v", err)
	}
}
