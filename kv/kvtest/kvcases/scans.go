package kvcases

import (
	"crypto/rand"
	"fmt"

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
