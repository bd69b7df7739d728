package kvcases

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/kv"
)

var basics = []named{
	{"an absent row is ErrNotFound", func(x *scratch) { x.wantAbsent("none") }},
	{"a row that was set can be read", func(x *scratch) {
		x.put("a", "1")
		x.want("a", "1")
		x.put("empty", "")
		x.want("empty", "")
		x.put("bytes", "\x00\xff\xfe\n'\"")
		x.want("bytes", "\x00\xff\xfe\n'\"")
	}},
	{"every write changes the version", func(x *scratch) {
		first, second, same := x.put("a", "1"), x.put("a", "2"), x.put("a", "2")
		if first.Version == second.Version || second.Version == same.Version {
			x.failf("three writes gave versions %d, %d, %d", first.Version, second.Version, same.Version)
		}
		if again := x.get("a"); again.Version != same.Version {
			x.failf("reading changed the version from %d to %d", same.Version, again.Version)
		}
	}},
	{"a version is never used twice, also after delete", neverReused},
	{"writing one row leaves the versions of others", func(x *scratch) {
		a := x.put("a", "1")
		x.put("b", "1")
		x.remove("b")
		if got := x.get("a").Version; got != a.Version {
			x.failf("version of a went from %d to %d", a.Version, got)
		}
	}},
	{"a deleted row is gone", func(x *scratch) {
		x.put("a", "1")
		x.remove("a")
		x.wantAbsent("a")
		x.remove("a") // deleting a missing row is not an error
	}},
	{"an empty batch changes nothing", func(x *scratch) {
		a := x.put("a", "1")
		x.must(x.store.Commit(x.ctx, &kv.Batch{}), "commit of an empty batch")
		if got := x.get("a"); got.Version != a.Version {
			x.failf("an empty batch changed the version of a row")
		}
	}},
	{"callers and store share no memory", aliasing},
	{"a context that is done stops every method", cancelled},
}

func neverReused(x *scratch) {
	seen := map[uint64]int{}
	for i := range 60 {
		v := x.put("a", fmt.Sprint(i%2)).Version
		if j, ok := seen[v]; ok {
			x.failf("write %d got version %d, which write %d had", i, v, j)
		}
		seen[v] = i
		switch i % 3 {
		case 0:
			x.remove("a")
		case 1:
			x.must(x.store.Commit(x.ctx, &kv.Batch{DeleteRange: []kv.Range{x.all()}}), "delete range")
		}
	}
}

func aliasing(x *scratch) {
	value := []byte("before")
	x.must(x.store.Commit(x.ctx, &kv.Batch{Set: []kv.Set{{Key: x.key("a"), Value: value}}}), "set")
	copy(value, "!!!!!!")
	x.want("a", "before")
	copy(x.get("a").Value, "!!!!!!")
	x.want("a", "before")
	for _, row := range x.scan(x.all(), kv.ScanOptions{}) {
		copy(row.Value, "!!!!!!")
	}
	x.want("a", "before")
}

func cancelled(x *scratch) {
	x.put("a", "1")
	done, cancel := context.WithCancel(x.ctx)
	cancel()
	_, err := x.store.Get(done, x.key("a"))
	x.mustFail(err, context.Canceled, "get with a cancelled context")
	var last error
	for _, err := range x.store.Scan(done, x.all(), kv.ScanOptions{}) {
		if last != nil {
			x.failf("scan went on after %v", last)
		}
		last = err
	}
	x.mustFail(last, context.Canceled, "scan with a cancelled context")
	x.unchanged(context.Canceled, "commit with a cancelled context", func() error {
		return x.store.Commit(done, &kv.Batch{Set: []kv.Set{x.set("a", "2")}, Delete: []string{x.key("b")}})
	})
}
