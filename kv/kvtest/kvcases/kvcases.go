// Package kvcases is the contract of kv.Store as a table of checks that need no test
// runner, so a program can run them against a live database.
//
// Every check uses its own keys under a random prefix and removes them at the end;
// other rows are not touched. Blobs of the reference checks stay as garbage for the
// next collection.
//
//	for _, c := range kvcases.All() {
//		if err := c.Func(ctx, store); err != nil {
//			fmt.Println(c.Name, err)
//		}
//	}
//
// Tests use package kvtest, which adds random histories and linearizability.
package kvcases

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Case is one check: a sentence of the contract and its test.
type Case struct {
	Name string
	Func func(context.Context, kv.Store) error
}

// RefCase is a check of rows together with the blobs that they refer to.
type RefCase struct {
	Name string
	Func func(context.Context, kv.Store, blob.Store) error
}

// All returns the checks that every store passes.
func All() []Case {
	var cases []Case
	for _, group := range [][]named{basics, batches, inputs, scans, concurrency, hints} {
		for _, n := range group {
			cases = append(cases, Case{Name: n.name, Func: func(ctx context.Context, s kv.Store) error {
				return run(ctx, s, nil, n.check)
			}})
		}
	}
	return cases
}

// Refs returns the checks for a store with access to its blobs.
func Refs() []RefCase {
	cases := make([]RefCase, 0, len(references))
	for _, n := range references {
		cases = append(cases, RefCase{Name: n.name, Func: func(ctx context.Context, s kv.Store, b blob.Store) error {
			return run(ctx, s, b, n.check)
		}})
	}
	return cases
}

type named struct {
	name  string
	check func(*scratch)
}

// failure carries the first broken promise out of a check, like FailNow in tests; it
// never crosses a goroutine.
type failure struct{ err error }

func run(ctx context.Context, s kv.Store, blobs blob.Store, check func(*scratch)) (err error) {
	x := &scratch{ctx: ctx, store: s, blobs: blobs, prefix: "stet:kvtest:" + rand.Text() + ":"}
	defer func() {
		switch v := recover().(type) {
		case nil:
		case failure:
			err = v.err
		default:
			panic(v)
		}
		// The caller's context may have ended the check.
		clean := &kv.Batch{DeleteRange: []kv.Range{keyspace.Prefix(x.prefix)}}
		err = errors.Join(err, s.Commit(context.WithoutCancel(ctx), clean))
	}()
	check(x)
	return nil
}

// scratch is the part of a store that belongs to one check.
type scratch struct {
	ctx    context.Context // of the check's call, for all its helpers
	store  kv.Store
	blobs  blob.Store
	prefix string
}

func (x *scratch) failf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

func (x *scratch) must(err error, doing string) {
	if err != nil {
		x.failf("%s: %w", doing, err)
	}
}

func (x *scratch) mustFail(err, want error, doing string) {
	if !errors.Is(err, want) {
		x.failf("%s gave %v, want an error that wraps %q", doing, err, want)
	}
}

func (x *scratch) key(name string) string { return x.prefix + name }

func (x *scratch) all() kv.Range { return keyspace.Prefix(x.prefix) }

// put sets one row, regardless of its old value, and returns what is stored.
func (x *scratch) put(name, value string) kv.Row {
	x.must(x.store.Commit(x.ctx, &kv.Batch{Set: []kv.Set{x.set(name, value)}}), "set "+name)
	return x.get(name)
}

func (x *scratch) set(name, value string) kv.Set {
	return kv.Set{Key: x.key(name), Value: []byte(value)}
}

func (x *scratch) expect(name string, version uint64) kv.Expect {
	return kv.Expect{Key: x.key(name), Version: version}
}

func (x *scratch) remove(name string) {
	x.must(x.store.Commit(x.ctx, &kv.Batch{Delete: []string{x.key(name)}}), "delete "+name)
}

func (x *scratch) get(name string) kv.Row {
	row, err := x.store.Get(x.ctx, x.key(name))
	x.must(err, "get "+name)
	if row.Key != x.key(name) || row.Version == 0 {
		x.failf("get %s gave key %q at version %d", name, row.Key, row.Version)
	}
	return row
}

func (x *scratch) want(name, value string) {
	if got := string(x.get(name).Value); got != value {
		x.failf("row %s holds %.40q, want %.40q", name, got, value)
	}
}

func (x *scratch) wantAbsent(name string) {
	_, err := x.store.Get(x.ctx, x.key(name))
	x.mustFail(err, kv.ErrNotFound, "get of absent "+name)
}

// scan collects a scan and fails on any error.
func (x *scratch) scan(r kv.Range, opts kv.ScanOptions) []kv.Row {
	var rows []kv.Row
	for row, err := range x.store.Scan(x.ctx, r, opts) {
		x.must(err, "scan")
		rows = append(rows, row)
	}
	return rows
}

// wantScan fails unless a scan gives exactly these names in this order.
func (x *scratch) wantScan(r kv.Range, opts kv.ScanOptions, names ...string) {
	rows := x.scan(r, opts)
	got := make([]string, len(rows))
	for i, row := range rows {
		got[i] = row.Key
	}
	want := make([]string, len(names))
	for i, n := range names {
		want[i] = x.key(n)
	}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		x.failf("scan of %+v with %+v gave %.400q, want %.400q", r, opts, got, want)
	}
}

// unchanged runs fn, which must fail with want, and then compares all rows of the
// check with their earlier state.
func (x *scratch) unchanged(want error, doing string, fn func() error) {
	before := x.fingerprint()
	x.mustFail(fn(), want, doing)
	if after := x.fingerprint(); after != before {
		x.failf("%s failed and yet changed rows: %.400s, were %.400s", doing, after, before)
	}
}

// fingerprint returns all rows of the check with versions and values.
func (x *scratch) fingerprint() string {
	var b strings.Builder
	for _, row := range x.scan(x.all(), kv.ScanOptions{}) {
		fmt.Fprintf(&b, "%q@%d=%s ", row.Key, row.Version, blob.Sum(row.Value).Short())
	}
	return b.String()
}
