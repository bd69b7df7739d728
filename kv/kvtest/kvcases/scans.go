package kvcases

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

var scans = []named{
	{"a scan gives a range in order", func(x *scratch) {
		x.fill("a", "b", "b:1", "c", "d")
		rng := func(start, end string) kv.Range { return kv.Range{Start: x.key(start), End: x.key(end)} }
		x.wantScan(x.all(), kv.ScanOptions{}, "a", "b", "b:1", "c", "d")
		x.wantScan(rng("b", "d"), kv.ScanOptions{}, "b", "b:1", "c")
		x.wantScan(rng("b", "d"), kv.ScanOptions{Reverse: true}, "c", "b:1", "b")
		x.wantScan(rng("b", "d"), kv.ScanOptions{Limit: 2}, "b", "b:1")
		x.wantScan(rng("b", "d"), kv.ScanOptions{Limit: 2, Reverse: true}, "c", "b:1")
		x.wantScan(rng("b", "d"), kv.ScanOptions{Limit: 100}, "b", "b:1", "c")
		x.wantScan(rng("aa", "az"), kv.ScanOptions{})
		x.wantScan(rng("b", "b"), kv.ScanOptions{})
		x.wantScan(rng("d", "a"), kv.ScanOptions{})
		x.wantScan(rng("d", "a"), kv.ScanOptions{Reverse: true})
	}},
	{"a scan gives values and versions", func(x *scratch) {
		x.fill("a", "b")
		for i, row := range x.scan(x.all(), kv.ScanOptions{}) {
			want := x.get([]string{"a", "b"}[i])
			if string(row.Value) != string(want.Value) || row.Version != want.Version {
				x.failf("scan gave %q at %d, get gave %q at %d", row.Value, row.Version, want.Value, want.Version)
			}
		}
	}},
	{"a scan of keys leaves values out", func(x *scratch) {
		x.fill("a", "b")
		for _, row := range x.scan(x.all(), kv.ScanOptions{KeysOnly: true}) {
			if row.Value != nil || row.Version == 0 {
				x.failf("row %q has value %q, version %d", row.Key, row.Value, row.Version)
			}
		}
		x.wantScan(x.all(), kv.ScanOptions{KeysOnly: true, Reverse: true, Limit: 1}, "b")
	}},
	{"a scan may end early and run again", func(x *scratch) {
		x.fill("a", "b", "c")
		seq := x.store.Scan(x.ctx, x.all(), kv.ScanOptions{})
		for range 50 { // a leaked cursor or lock shows up soon
			for row, err := range seq {
				x.must(err, "scan")
				if row.Key != x.key("a") {
					x.failf("scan starts at %q", row.Key)
				}
				break
			}
		}
		x.put("d", "1")
	}},
	{"a long scan may run again from its start", func(x *scratch) {
		const n = 600 // more than drivers read at a time
		b := &kv.Batch{}
		for i := range n {
			b.Set = append(b.Set, kv.Set{Key: x.key(fmt.Sprintf("%03d", i)), Value: []byte("v")})
		}
		x.must(x.store.Commit(x.ctx, b), "set many rows")
		for _, opts := range []kv.ScanOptions{{}, {Reverse: true}, {Limit: n - 1}} {
			seq := x.store.Scan(x.ctx, x.all(), opts)
			for range 2 {
				got := 0
				for _, err := range seq {
					x.must(err, "scan")
					got++
				}
				if got != n && got != opts.Limit {
					x.failf("scan of %d rows with %+v gave %d", n, opts, got)
				}
			}
		}
	}},
	{"a range without end goes to the last key", openEnd},
	{"a scan brings the rows that belong to each key", scanBeside},
	{"rows may change while they are scanned", func(x *scratch) {
		for i := range 300 {
			x.put(fmt.Sprintf("%03d", i), "old")
		}
		n := 0
		for row, err := range x.store.Scan(x.ctx, x.all(), kv.ScanOptions{}) {
			x.must(err, "scan")
			if v := string(row.Value); v != "old" {
				x.failf("row %q holds %q", row.Key, v)
			}
			x.must(x.store.Commit(x.ctx, &kv.Batch{Delete: []string{row.Key}}), "delete the row under the scan")
			n++
		}
		if n != 300 {
			x.failf("scan gave %d of 300 rows", n)
		}
		x.wantScan(x.all(), kv.ScanOptions{})
	}},
}

func (x *scratch) fill(names ...string) {
	for _, n := range names {
		x.put(n, "value of "+n)
	}
}

// openEnd uses keys above all real ones, and scans before it deletes.
func openEnd(x *scratch) {
	x.prefix = "\xff\xff" + rand.Text() + ":"
	tail := kv.Range{Start: x.prefix}
	x.wantScan(tail, kv.ScanOptions{})
	x.fill("a", "b", "c")
	x.wantScan(tail, kv.ScanOptions{}, "a", "b", "c")
	x.wantScan(tail, kv.ScanOptions{Reverse: true, Limit: 2}, "c", "b")
	x.wantScan(kv.Range{Start: x.key("b")}, kv.ScanOptions{}, "b", "c")
	x.must(x.store.Commit(x.ctx, &kv.Batch{DeleteRange: []kv.Range{{Start: x.key("b")}}}), "delete to the end")
	x.wantScan(tail, kv.ScanOptions{}, "a")
	for row, err := range x.store.Scan(x.ctx, kv.Range{}, kv.ScanOptions{Reverse: true, Limit: 1, KeysOnly: true}) {
		x.must(err, "scan of everything")
		if row.Key != x.key("a") {
			x.failf("the last of all keys is %q, want %q", row.Key, x.key("a"))
		}
	}
}

// scanBeside has an index by number, records, and histories of which the last row counts.
func scanBeside(x *scratch) {
	x.fill("index:03:a", "index:01:é b", "index:02:c", "index:04:gone", "index:05:",
		"record:a", "record:a:not", "record:c", "record:é b", "record:", "record",
		"past:a:1", "past:a:2", "past:a2:9", "past:é b:7", "past:a")
	index := keyspace.Prefix(x.key("index:"))
	skip := len(x.key("index:00:"))
	record := kv.Beside{Skip: skip, Prefix: x.key("record:"), To: "\x00"}
	past := kv.Beside{Skip: skip, Prefix: x.key("past:"), From: ":", To: ";"}
	type found struct{ key, record, past string }
	all := []found{
		{"index:01:é b", "record:é b", "past:é b:7"}, {"index:02:c", "record:c", ""}, {"index:03:a", "record:a", "past:a:2"},
		{"index:04:gone", "", ""}, {"index:05:", "record:", ""},
	}
	want := func(opts kv.ScanOptions, r kv.Range, want ...found) {
		got, err := x.store.ScanBeside(x.ctx, r, opts, record, past)
		x.must(err, "scan with what belongs to each key")
		if len(got) != len(want) {
			x.failf("%+v of %q gave %d keys, want %d", opts, r, len(got), len(want))
		}
		for i, f := range got {
			if f.Key != x.key(want[i].key) || len(f.Rows) != 2 || len(f.Errs) != 2 {
				x.failf("%+v gave %+v at %d, want %q with two rows", opts, f, i, want[i].key)
			}
			for n, name := range []string{want[i].record, want[i].past} {
				row := kv.Row{}
				if name != "" {
					row = x.get(name)
				}
				if f.Errs[n] != nil || f.Rows[n].Key != row.Key || f.Rows[n].Version != row.Version || string(f.Rows[n].Value) != string(row.Value) {
					x.failf("%q has %+v (%v), want %+v", f.Key, f.Rows[n], f.Errs[n], row)
				}
			}
		}
	}
	want(kv.ScanOptions{}, index, all...)
	want(kv.ScanOptions{KeysOnly: true}, kv.Range{Start: x.key("index:03"), End: index.End}, all[2:]...)
	want(kv.ScanOptions{Reverse: true, Limit: 2}, kv.Range{Start: index.Start, End: x.key("index:04")}, all[2], all[1])
	want(kv.ScanOptions{Limit: 3}, index, all[:3]...)
	want(kv.ScanOptions{}, kv.Range{Start: index.End, End: index.Start})
	want(kv.ScanOptions{}, kv.Range{Start: x.key("none"), End: x.key("none;")})
	if rest, err := x.store.ScanBeside(x.ctx, kv.Range{Start: x.key("index:05")}, kv.ScanOptions{Limit: 1}); err != nil || len(rest) != 1 || rest[0].Key != x.key("index:05:") {
		x.failf("a range without end gave %+v, %v", rest, err)
	}
	done, cancel := context.WithCancel(x.ctx)
	cancel()
	if _, err := x.store.ScanBeside(done, index, kv.ScanOptions{}, record); !errors.Is(err, context.Canceled) {
		x.failf("with a context that is done it gave %v", err)
	}
}
