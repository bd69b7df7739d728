package kvtest_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/kvtest"
	"github.com/stet-dev/stet/kv/kvtest/kvcases"
	"github.com/stet-dev/stet/kv/memkv"
)

func Example() {
	rows := memkv.New(nil)
	for _, c := range kvtest.Cases() {
		if err := c.Func(context.Background(), rows); err != nil {
			fmt.Println(c.Name, err)
		}
	}
	for row := range rows.Scan(context.Background(), kv.Range{}, kv.ScanOptions{}) {
		fmt.Println("left behind:", row.Key)
	}
	fmt.Println("done")
	// Output: done
}

// broken breaks one promise of a sound store.
type broken struct {
	kv.Store
	get    func(kv.Row) kv.Row
	scan   func(*kv.Range, *kv.ScanOptions)
	commit func(*kv.Batch)
	drop   error // swallowed errors
}

func (s *broken) Get(ctx context.Context, key string) (kv.Row, error) {
	row, err := s.Store.Get(ctx, key)
	if err == nil && s.get != nil {
		row = s.get(row)
	}
	return row, err
}

func (s *broken) Scan(ctx context.Context, r kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	if s.scan != nil {
		s.scan(&r, &opts)
	}
	return s.Store.Scan(ctx, r, opts)
}

func (s *broken) Commit(ctx context.Context, b *kv.Batch) error {
	changed := *b
	if s.commit != nil {
		s.commit(&changed)
	}
	err := s.Store.Commit(ctx, &changed)
	if s.drop != nil && err != nil {
		return s.drop
	}
	return err
}

// TestBrokenStoresAreCaught holds the suite to its word: for each promise there
// is a store that breaks it and a case that says so.
func TestBrokenStoresAreCaught(t *testing.T) {
	for name, s := range map[string]*broken{
		"versions are reused":          {get: func(r kv.Row) kv.Row { r.Version = uint64(len(r.Value)) + 1; return r }},
		"version zero":                 {get: func(r kv.Row) kv.Row { r.Version = 0; return r }},
		"values are shared":            {get: sharing()},
		"values are cut":               {get: func(r kv.Row) kv.Row { r.Value = r.Value[:min(len(r.Value), 1<<20)]; return r }},
		"reverse is ignored":           {scan: func(_ *kv.Range, o *kv.ScanOptions) { o.Reverse = false }},
		"limit is ignored":             {scan: func(_ *kv.Range, o *kv.ScanOptions) { o.Limit = 0 }},
		"keys only is ignored":         {scan: func(_ *kv.Range, o *kv.ScanOptions) { o.KeysOnly = false }},
		"scans stop at 1,000":          {scan: func(_ *kv.Range, o *kv.ScanOptions) { o.Limit = max(o.Limit, 1000) }},
		"the end is inclusive":         {scan: func(r *kv.Range, _ *kv.ScanOptions) { r.End += "\x00" }},
		"expectations are ignored":     {commit: func(b *kv.Batch) { b.Expect = nil }},
		"only one expectation counts":  {commit: func(b *kv.Batch) { b.Expect = b.Expect[:min(len(b.Expect), 1)] }},
		"deletes are ignored":          {commit: func(b *kv.Batch) { b.Delete = nil }},
		"deleted ranges are ignored":   {commit: func(b *kv.Batch) { b.DeleteRange = nil }},
		"batches end at 4,096 changes": {commit: func(b *kv.Batch) { b.Set = b.Set[:min(len(b.Set), 4096)] }},
		"errors have no type":          {drop: fmt.Errorf("it failed")},
	} {
		t.Run(name, func(t *testing.T) {
			s.Store = memkv.New(nil)
			for _, c := range kvtest.Cases() {
				if c.Func(t.Context(), s) != nil {
					return
				}
			}
			t.Error("every case passed")
		})
	}
}

// sharing gives the same slice to everyone who reads a version of a row.
func sharing() func(kv.Row) kv.Row {
	var given sync.Map
	return func(r kv.Row) kv.Row {
		first, _ := given.LoadOrStore(fmt.Sprint(r.Key, r.Version), r.Value)
		r.Value = first.([]byte)
		return r
	}
}

type blind struct{ *memblob.Store }

func (blind) Refer(...blob.ID) []blob.ID { return nil }

type forgetful struct{ *memblob.Store }

// Refer looks without marking, as a store does that checks before it commits.
func (f forgetful) Refer(ids ...blob.ID) (missing []blob.ID) {
	held, _ := f.Has(context.Background(), ids...)
	for i, ok := range held {
		if !ok {
			missing = append(missing, ids[i])
		}
	}
	return missing
}

func TestBrokenReferencesAreCaught(t *testing.T) {
	blobs := memblob.New()
	for name, refs := range map[string]memkv.Refs{"unchecked": blind{blobs}, "unmarked": forgetful{blobs}} {
		caught := false
		for _, c := range kvcases.Refs() {
			caught = c.Func(t.Context(), memkv.New(refs), blobs) != nil || caught
		}
		if !caught {
			t.Errorf("references that are %s pass every case", name)
		}
	}
}

// TestStaleReadsAreNotLinearizable shows that the checker sees one read of an
// old value.
func TestStaleReadsAreNotLinearizable(t *testing.T) {
	history, err := kvtest.Fight(t.Context(), memkv.New(nil), "stale:", 40)
	if err != nil {
		t.Fatal(err)
	}
	if !porcupine.CheckOperations(kvtest.RegisterModel, history) {
		t.Fatal("a sound history is refused")
	}
	if !porcupine.CheckOperations(kvtest.RegisterModel, kvtest.Stale(history, false)) {
		t.Fatal("a sound read at the end is refused")
	}
	if porcupine.CheckOperations(kvtest.RegisterModel, kvtest.Stale(history, true)) {
		t.Error("a read of a value that was never current passes")
	}
}
