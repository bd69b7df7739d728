package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/sealed"
)

// rotten is a store whose files get damaged, and what it held before.
type rotten struct {
	dir     string
	db      []byte
	objects map[string][]byte
	rows    map[string]string
	blobs   map[blob.ID][]byte
}

// newRotten fills a store with sealed rows and blobs of many sizes.
func newRotten(t *testing.T) *rotten {
	t.Helper()
	r := &rotten{dir: memoryDir(t), objects: make(map[string][]byte), rows: make(map[string]string), blobs: make(map[blob.ID][]byte)}
	db, err := Open(t.Context(), r.dir, &Options{ObjectSize: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(21, 22))
	rows := sealed.New(db.Rows(), nil)
	for i := range 30 {
		data := bytes.Repeat(fmt.Appendf(nil, "blob %d ", i), 1+rng.IntN(700))
		if i >= 28 {
			data = append(data, make([]byte, 8<<10)...)
		}
		one := blob.New(data)
		r.blobs[one.ID] = data
		if err := db.Blobs().Put(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		key, value := fmt.Sprintf("row:%03d", i), fmt.Sprintf("value %d %s", i, one.ID)
		r.rows[key] = value
		if err := rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: key, Value: []byte(value)}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for path, content := range snapshot(t, r.dir) {
		switch name := filepath.Base(path); {
		case name == databaseName:
			r.db = []byte(content)
		case len(name) > 40:
			r.objects[path] = []byte(content)
		}
	}
	return r
}

// outcome of reading a damaged store.
type outcome struct {
	refused bool // Open said no
	errors  int  // reads that failed
	absent  int  // reads that found nothing
	found   bool // Check, or reading all that there is, finds something wrong
}

// read opens the store and reads everything through the layers that verify.
func (r *rotten) read(ctx context.Context) (outcome, error) {
	var o outcome
	db, err := Open(ctx, r.dir, &Options{ObjectSize: 8 << 10, Readers: 1})
	if err != nil {
		return outcome{refused: true}, nil
	}
	defer db.Close()
	rows, blobs := sealed.New(db.Rows(), nil), blob.Checked(db.Blobs())
	for key, want := range r.rows {
		row, err := rows.Get(ctx, key)
		o.count(err, kv.ErrNotFound)
		if err == nil && string(row.Value) != want {
			return o, fmt.Errorf("row %s has changed unnoticed to %q", key, row.Value)
		}
	}
	for id, want := range r.blobs {
		data, err := blobs.Get(ctx, id)
		o.count(err, blob.ErrNotFound)
		if err == nil && !bytes.Equal(data, want) {
			return o, fmt.Errorf("blob %s has changed unnoticed", id.Short())
		}
	}
	if o.absent > 0 {
		o.found = somethingWrong(ctx, db, rows, blobs)
	}
	return o, nil
}

func (o *outcome) count(err, absent error) {
	switch {
	case errors.Is(err, absent):
		o.absent++
	case err != nil:
		o.errors++
	}
}

// somethingWrong does what a check of the whole store does.
func somethingWrong(ctx context.Context, db *DB, rows kv.Store, blobs blob.Store) bool {
	report, err := db.Check(ctx, CheckOptions{})
	if err != nil || len(report.Damage) > 0 {
		return true
	}
	for _, err := range rows.Scan(ctx, kv.Range{}, kv.ScanOptions{}) {
		if err != nil {
			return true
		}
	}
	err = db.Blobs().List(ctx, blob.ID{}, func(info blob.Info) error {
		_, err := blobs.Get(ctx, info.ID)
		return err
	})
	return err != nil
}

// try damages the database, reads it, and reports whether that was noticed.
func (r *rotten) try(t *testing.T, what string, damaged []byte) outcome {
	t.Helper()
	path := filepath.Join(r.dir, databaseName)
	for _, leftover := range []string{"-wal", "-shm"} {
		if err := ignoreMissing(os.Remove(path + leftover)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := r.read(t.Context())
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if o.absent > 0 && !o.found {
		t.Errorf("%s: %d things are missing and nothing says so", what, o.absent)
	}
	return o
}

func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	flips, zeroed, cut := testenv.Scale(2_000, 100_000), testenv.Scale(500, 5_000), testenv.Scale(500, 5_000)
	var wg sync.WaitGroup
	var mu sync.Mutex // guards noticed
	noticed := make(map[string]int)
	for worker := range 2 {
		r := newRotten(t)
		rng := rand.New(rand.NewPCG(31, uint64(worker)))
		run := func(kind string, n int, damage func([]byte) ([]byte, string)) {
			for range n / 2 {
				damaged, what := damage(bytes.Clone(r.db))
				o := r.try(t, kind+" "+what, damaged)
				if o.refused || o.errors > 0 || o.found {
					mu.Lock()
					noticed[kind]++
					mu.Unlock()
				}
				if t.Failed() {
					return
				}
			}
		}
		wg.Go(func() {
			run("flipped bit", flips, func(db []byte) ([]byte, string) {
				bit := rng.IntN(8 * len(db))
				db[bit/8] ^= 1 << (bit % 8)
				return db, fmt.Sprintf("at %d.%d", bit/8, bit%8)
			})
			run("zeroed page", zeroed, func(db []byte) ([]byte, string) {
				page := rng.IntN(len(db) / 4096)
				clear(db[page*4096:][:4096])
				return db, fmt.Sprint(page)
			})
			run("truncation", cut, func(db []byte) ([]byte, string) {
				size := rng.IntN(len(db))
				return db[:size], fmt.Sprint("to ", size)
			})
		})
	}
	wg.Wait()
	if noticed["truncation"] != cut/2*2 && !t.Failed() {
		t.Errorf("%d of %d truncations were noticed", noticed["truncation"], cut/2*2)
	}
	t.Logf("%d flips, %d zeroed pages, %d truncations; noticed: %v", flips, zeroed, cut, noticed)
}

func TestDamagedObjects(t *testing.T) {
	r := newRotten(t)
	rng := rand.New(rand.NewPCG(41, 42))
	for path, content := range r.objects {
		for i := range testenv.Scale(20, 2_000) {
			damaged := bytes.Clone(content)
			switch i % 3 {
			case 0:
				damaged[rng.IntN(len(damaged))] ^= 1 << rng.IntN(8)
			case 1:
				damaged = damaged[:rng.IntN(len(damaged))]
			case 2:
				damaged = append(damaged, 'x')
			}
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			o, err := r.read(t.Context())
			if longer := i%3 == 2; err != nil || o.errors != 1 && !longer {
				t.Errorf("damage %d of an object: %d errors, %v", i, o.errors, err)
			}
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
