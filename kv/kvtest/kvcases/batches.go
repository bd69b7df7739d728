package kvcases

import (
	"errors"
	"fmt"

	"github.com/stet-dev/stet/kv"
)

var batches = []named{
	{"an expectation of absence", func(x *scratch) {
		create := &kv.Batch{Expect: []kv.Expect{x.expect("a", 0)}, Set: []kv.Set{x.set("a", "1")}}
		x.must(x.store.Commit(x.ctx, create), "create")
		x.unchanged(kv.ErrConflict, "create again", func() error { return x.store.Commit(x.ctx, create) })
		x.remove("a")
		x.must(x.store.Commit(x.ctx, create), "create after delete")
	}},
	{"an expectation of a version", func(x *scratch) {
		old := x.put("a", "1")
		update := &kv.Batch{Expect: []kv.Expect{x.expect("a", old.Version)}, Set: []kv.Set{x.set("a", "2")}}
		x.must(x.store.Commit(x.ctx, update), "update")
		x.want("a", "2")
		x.unchanged(kv.ErrConflict, "update of a stale version", func() error { return x.store.Commit(x.ctx, update) })
		x.remove("a")
		x.unchanged(kv.ErrConflict, "update of a deleted row", func() error { return x.store.Commit(x.ctx, update) })
		x.put("a", "1")
		x.unchanged(kv.ErrConflict, "update of a row created again", func() error { return x.store.Commit(x.ctx, update) })
	}},
	{"a conflict names its row", conflictNamesRow},
	{"expectations alone may be committed", func(x *scratch) {
		a := x.put("a", "1")
		x.must(x.store.Commit(x.ctx, &kv.Batch{Expect: []kv.Expect{x.expect("a", a.Version), x.expect("b", 0)}}), "check")
		if got := x.get("a").Version; got != a.Version {
			x.failf("a check changed the version from %d to %d", a.Version, got)
		}
	}},
	{"expectations are checked before the change", func(x *scratch) {
		a := x.put("a", "1")
		x.must(x.store.Commit(x.ctx, &kv.Batch{
			Expect:      []kv.Expect{x.expect("a", a.Version), x.expect("b", 0)},
			DeleteRange: []kv.Range{x.all()},
			Set:         []kv.Set{x.set("b", "1")},
		}), "replace what was expected")
		x.wantScan(x.all(), kv.ScanOptions{}, "b")
	}},
	{"contradicting expectations conflict", func(x *scratch) {
		a := x.put("a", "1")
		x.unchanged(kv.ErrConflict, "commit", func() error {
			return x.store.Commit(x.ctx, &kv.Batch{Expect: []kv.Expect{x.expect("a", a.Version), x.expect("a", 0)}, Set: []kv.Set{x.set("a", "2")}})
		})
	}},
	{"deletes come before sets", func(x *scratch) {
		x.put("a", "1")
		x.put("p:1", "old")
		x.put("p:2", "old")
		x.must(x.store.Commit(x.ctx, &kv.Batch{
			Set:         []kv.Set{x.set("a", "2"), x.set("p:2", "new"), x.set("p:3", "new")},
			Delete:      []string{x.key("a")},
			DeleteRange: []kv.Range{{Start: x.key("p:"), End: x.key("p;")}},
		}), "replace")
		x.wantScan(x.all(), kv.ScanOptions{}, "a", "p:2", "p:3")
		x.want("a", "2")
		x.want("p:2", "new")
	}},
	{"deleted ranges take their start and leave their end", func(x *scratch) {
		for _, n := range []string{"a", "b", "b:1", "c", "d"} {
			x.put(n, n)
		}
		del := func(start, end string) {
			x.must(x.store.Commit(x.ctx, &kv.Batch{DeleteRange: []kv.Range{{Start: x.key(start), End: x.key(end)}}}), "delete range")
		}
		del("b", "c")
		x.wantScan(x.all(), kv.ScanOptions{}, "a", "c", "d")
		del("c", "c")
		del("d", "a")
		x.wantScan(x.all(), kv.ScanOptions{}, "a", "c", "d")
	}},
	{"a failed batch changes nothing", allOrNothing},
	{"a batch of 5,000 sets", bigBatch},
}

func conflictNamesRow(x *scratch) {
	a := x.put("a", "1")
	x.put("b", "1")
	err := x.store.Commit(x.ctx, &kv.Batch{Expect: []kv.Expect{x.expect("a", a.Version), x.expect("b", 0)}})
	var conflict *kv.ConflictError
	if !errors.As(err, &conflict) || conflict.Key != x.key("b") {
		x.failf("commit gave %v, want a ConflictError for b", err)
	}
	if want := x.get("b").Version; conflict.Want != 0 || conflict.Got != want {
		x.failf("conflict says want %d, got %d; the row is at %d", conflict.Want, conflict.Got, want)
	}
}

func allOrNothing(x *scratch) {
	for i := range 5 {
		x.put(fmt.Sprint("old", i), "old")
	}
	fresh := func() *kv.Batch {
		return &kv.Batch{
			Set:         []kv.Set{x.set("new1", "new"), x.set("old0", "new")},
			Delete:      []string{x.key("old1")},
			DeleteRange: []kv.Range{{Start: x.key("old2"), End: x.key("old4")}},
		}
	}
	for _, c := range []struct {
		doing string
		want  error
		spoil func(*kv.Batch)
	}{
		{"a failed expectation", kv.ErrConflict, func(b *kv.Batch) { b.Expect = []kv.Expect{x.expect("old4", 0)} }},
		{"an empty key", kv.ErrInvalidKey, func(b *kv.Batch) { b.Set = append(b.Set, kv.Set{}) }},
		{"an empty key to delete", kv.ErrInvalidKey, func(b *kv.Batch) { b.Delete = append(b.Delete, "") }},
		{"a value that is too large", kv.ErrTooLarge, func(b *kv.Batch) {
			b.Set = append(b.Set, kv.Set{Key: x.key("big"), Value: make([]byte, kv.MaxValue+1)})
		}},
		{"a row set twice", kv.ErrInvalidBatch, func(b *kv.Batch) { b.Set = append(b.Set, x.set("new1", "newer")) }},
	} {
		b := fresh()
		c.spoil(b)
		x.unchanged(c.want, "commit with "+c.doing, func() error { return x.store.Commit(x.ctx, b) })
	}
	x.must(x.store.Commit(x.ctx, fresh()), "commit of the sound batch")
	x.wantScan(x.all(), kv.ScanOptions{}, "new1", "old0", "old4")
}

func bigBatch(x *scratch) {
	const n = 5000
	b := &kv.Batch{}
	for i := range n {
		name := fmt.Sprintf("%05d", i)
		b.Set = append(b.Set, x.set(name, "value of "+name))
		b.Expect = append(b.Expect, x.expect(name, 0))
	}
	x.must(x.store.Commit(x.ctx, b), "commit")
	rows := x.scan(x.all(), kv.ScanOptions{})
	if len(rows) != n {
		x.failf("scan gave %d rows, want %d", len(rows), n)
	}
	for i, row := range rows {
		name := fmt.Sprintf("%05d", i)
		if row.Key != x.key(name) || string(row.Value) != "value of "+name {
			x.failf("row %d is %q with %q", i, row.Key, row.Value)
		}
	}
	x.unchanged(kv.ErrConflict, "the same batch again", func() error { return x.store.Commit(x.ctx, b) })
}
