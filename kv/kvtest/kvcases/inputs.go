package kvcases

import (
	"bytes"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

var inputs = []named{
	{"keys that no store takes", invalidKeys},
	{"the longest key works", func(x *scratch) {
		name := strings.Repeat("k", kv.MaxKey-len(x.prefix))
		x.put(name, "1")
		x.wantScan(x.all(), kv.ScanOptions{}, name)
	}},
	{"the largest value works and a larger one does not", func(x *scratch) {
		largest := bytes.Repeat([]byte("0123456789abcdef"), kv.MaxValue/16)
		x.put("a", string(largest))
		x.want("a", string(largest))
		x.unchanged(kv.ErrTooLarge, "set of a larger value", func() error {
			return x.store.Commit(x.ctx, &kv.Batch{Set: []kv.Set{{Key: x.key("a"), Value: append(largest, 0)}}})
		})
	}},
	{"a key set twice is refused", func(x *scratch) {
		x.unchanged(kv.ErrInvalidBatch, "commit", func() error {
			return x.store.Commit(x.ctx, &kv.Batch{Set: []kv.Set{x.set("a", "1"), x.set("b", "1"), x.set("a", "1")}})
		})
	}},
	{"keys are bytes, not text or patterns", func(x *scratch) {
		names := []string{" ", "%", "%25", "'", "*", "?", "A", "[a]", "\\", "_", "a", "a ", "e\u0301", "\x7f", "\xc3", "\u00e9", "\u65e5", "\xff", "\xff\xff"}
		for _, n := range names {
			x.put(n, "value of "+n)
		}
		for _, n := range names {
			x.want(n, "value of "+n)
		}
		x.wantScan(x.all(), kv.ScanOptions{}, names...)
		for _, n := range names {
			x.remove(n)
			x.wantAbsent(n)
		}
	}},
	{"ids that differ by a colon stay apart", colons},
}

func invalidKeys(x *scratch) {
	x.put("a", "1")
	for _, bad := range []struct{ name, key string }{
		{"empty", ""},
		{"a NUL", "\x00"},
		{"a NUL inside", x.key("a\x00b")},
		{"one byte too long", strings.Repeat("k", kv.MaxKey+1)},
		{"1 MiB", strings.Repeat("k", 1<<20)},
	} {
		for change, b := range map[string]*kv.Batch{
			"set":    {Set: []kv.Set{x.set("a", "2"), {Key: bad.key, Value: []byte("v")}}},
			"delete": {Set: []kv.Set{x.set("a", "2")}, Delete: []string{bad.key}},
			"expect": {Set: []kv.Set{x.set("a", "2")}, Expect: []kv.Expect{{Key: bad.key}}},
		} {
			x.unchanged(kv.ErrInvalidKey, change+" of a key that is "+bad.name, func() error { return x.store.Commit(x.ctx, b) })
		}
		if _, err := x.store.Get(x.ctx, bad.key); err == nil {
			x.failf("get of a key that is %s gave a row", bad.name)
		}
	}
}

// colons uses the keys of messages, which join two identifiers.
func colons(x *scratch) {
	c := x.prefix + "c"
	first, second := keyspace.MessageHead(c+":b", "m"), keyspace.MessageHead(c, "b:m")
	defer x.store.Commit(x.ctx, &kv.Batch{Delete: []string{first, second}})
	// Realistic values: a store may refuse others.
	one, two := blob.Sum([]byte("1")).String(), blob.Sum([]byte("2")).String()
	x.must(x.store.Commit(x.ctx, &kv.Batch{Set: []kv.Set{{Key: first, Value: []byte(one)}, {Key: second, Value: []byte(two)}}}), "set both")
	for key, want := range map[string]string{first: one, second: two} {
		row, err := x.store.Get(x.ctx, key)
		x.must(err, "get "+key)
		if string(row.Value) != want {
			x.failf("row %q holds %q, want %q", key, row.Value, want)
		}
	}
	x.must(x.store.Commit(x.ctx, &kv.Batch{DeleteRange: []kv.Range{keyspace.MessageHeads(c)}}), "clear one conversation")
	if _, err := x.store.Get(x.ctx, first); err != nil {
		x.failf("clearing conversation %q took a row of %q: %w", c, c+":b", err)
	}
	_, err := x.store.Get(x.ctx, second)
	x.mustFail(err, kv.ErrNotFound, "get of the cleared row")
}
