package kvtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
)

// RunModel runs random histories of batches and scans against one store and a
// sorted map, which must agree after every step.
func RunModel(t *testing.T, open func(t *testing.T) kv.Store) {
	store := open(t)
	histories := 0
	for range testenv.Scale(1, 100) {
		rapid.Check(t, func(rt *rapid.T) {
			histories++
			m := &model{
				ctx: t.Context(), store: store, rows: map[string]modelRow{}, used: map[string]map[uint64]bool{},
				prefix: fmt.Sprintf("model:%d:", histories),
			}
			rt.Repeat(map[string]func(*rapid.T){
				"commit": m.commit,
				"scan":   m.scan,
				"get":    m.get,
				"":       m.compare,
			})
		})
	}
}

// model is the expected content of a store. It takes versions from the store, because
// only their equality is meaningful.
type model struct {
	ctx    context.Context // of the test, for all steps
	store  kv.Store
	prefix string
	rows   map[string]modelRow
	used   map[string]map[uint64]bool // versions that a key has had
}

type modelRow struct {
	value   string
	version uint64
}

// name draws from a few keys, so that steps collide; some are prefixes of others.
func (m *model) name(t *rapid.T) string {
	names := []string{"a", "a:", "a:b", "ab", "b", "b%", "b_", "c", "é", "\xff"}
	return m.prefix + rapid.SampledFrom(names).Draw(t, "key")
}

func (m *model) rng(t *rapid.T) kv.Range {
	r := kv.Range{Start: m.name(t), End: m.name(t)}
	switch rapid.IntRange(0, 5).Draw(t, "kind of range") {
	case 0:
		return keyspace.Prefix(m.prefix)
	case 1:
		return keyspace.Prefix(r.Start)
	}
	return r
}

func (m *model) batch(t *rapid.T) *kv.Batch {
	b := &kv.Batch{}
	for range rapid.IntRange(0, 2).Draw(t, "expectations") {
		e := kv.Expect{Key: m.name(t)}
		switch rapid.IntRange(0, 9).Draw(t, "kind of expectation") {
		case 0:
			e.Version = rapid.Uint64Range(0, 1<<40).Draw(t, "version")
		case 1: // absent
		default:
			e.Version = m.rows[e.Key].version
		}
		b.Expect = append(b.Expect, e)
	}
	if rapid.IntRange(0, 4).Draw(t, "range") == 0 {
		b.DeleteRange = append(b.DeleteRange, m.rng(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "deletes") {
		b.Delete = append(b.Delete, m.name(t))
	}
	for range rapid.IntRange(0, 4).Draw(t, "sets") {
		value := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "value")
		b.Set = append(b.Set, kv.Set{Key: m.name(t), Value: value})
	}
	return b
}

// verdict is the expected error of the batch, or nil.
func (m *model) verdict(b *kv.Batch) error {
	seen := map[string]bool{}
	for _, s := range b.Set {
		if seen[s.Key] {
			return kv.ErrInvalidBatch
		}
		seen[s.Key] = true
	}
	for _, e := range b.Expect {
		if m.rows[e.Key].version != e.Version {
			return kv.ErrConflict
		}
	}
	return nil
}

func (m *model) commit(t *rapid.T) {
	b := m.batch(t)
	want := m.verdict(b)
	if err := m.store.Commit(m.ctx, b); !errors.Is(err, want) {
		t.Fatalf("commit of %q gave %v, want %v", fmt.Sprint(b), err, want)
	}
	if want != nil {
		return
	}
	for _, r := range b.DeleteRange {
		for key := range m.rows {
			if r.Contains(key) {
				delete(m.rows, key)
			}
		}
	}
	for _, key := range b.Delete {
		delete(m.rows, key)
	}
	for _, s := range b.Set {
		m.learn(t, s)
	}
}

// learn records a row that was just set, with its version.
func (m *model) learn(t *rapid.T, s kv.Set) {
	row, err := m.store.Get(m.ctx, s.Key)
	if err != nil || string(row.Value) != string(s.Value) {
		t.Fatalf("row %q holds %q (%v) after it was set to %q", s.Key, row.Value, err, s.Value)
	}
	if row.Version == 0 || m.used[s.Key][row.Version] {
		t.Fatalf("row %q got version %d, which was used before or is 0", s.Key, row.Version)
	}
	if m.used[s.Key] == nil {
		m.used[s.Key] = map[uint64]bool{}
	}
	m.used[s.Key][row.Version] = true
	m.rows[s.Key] = modelRow{value: string(s.Value), version: row.Version}
}

func (m *model) get(t *rapid.T) {
	key := m.name(t)
	row, err := m.store.Get(m.ctx, key)
	want, ok := m.rows[key]
	switch {
	case !ok && !errors.Is(err, kv.ErrNotFound):
		t.Fatalf("get of absent %q gave %v, %v", key, row, err)
	case ok && (err != nil || string(row.Value) != want.value || row.Version != want.version):
		t.Fatalf("get of %q gave %v, %v, want %v", key, row, err, want)
	}
}

func (m *model) scan(t *rapid.T) {
	m.compareScan(t, m.rng(t), kv.ScanOptions{
		Reverse:  rapid.Bool().Draw(t, "reverse"),
		Limit:    rapid.IntRange(0, 4).Draw(t, "limit"),
		KeysOnly: rapid.Bool().Draw(t, "keys only"),
	})
}

// compare checks the whole state after every step.
func (m *model) compare(t *rapid.T) {
	m.compareScan(t, keyspace.Prefix(m.prefix), kv.ScanOptions{})
}

func (m *model) compareScan(t *rapid.T, r kv.Range, opts kv.ScanOptions) {
	var got []kv.Row
	for row, err := range m.store.Scan(m.ctx, r, opts) {
		if err != nil {
			t.Fatalf("scan of %q: %v", fmt.Sprint(r), err)
		}
		got = append(got, row)
	}
	want := m.expected(r, opts)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("scan of %q with %+v gave %v, want %v", fmt.Sprint(r), opts, got, want)
	}
}

func (m *model) expected(r kv.Range, opts kv.ScanOptions) []kv.Row {
	var want []kv.Row
	for key, row := range m.rows {
		if r.Contains(key) {
			want = append(want, kv.Row{Key: key, Value: []byte(row.value), Version: row.version})
		}
	}
	sort.Slice(want, func(i, j int) bool { return want[i].Key < want[j].Key })
	if opts.Reverse {
		slices.Reverse(want)
	}
	if opts.Limit > 0 && len(want) > opts.Limit {
		want = want[:opts.Limit]
	}
	if opts.KeysOnly {
		for i := range want {
			want[i].Value = nil
		}
	}
	return want
}
