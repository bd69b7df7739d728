package upkeep_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/thread"
	"github.com/stet-dev/stet/upkeep"
)

// What frames and writes refer to is kept until they are removed. A damaged frame is
// found, and what it may refer to is kept.
func TestThreadsKeepTheirValues(t *testing.T) {
	ctx := t.Context()
	back := memBackend()
	db := openOver(t, back, nil)
	value := func(b byte) thread.Value { return thread.Value{Type: "json", Data: bytes.Repeat([]byte{b}, 600)} }
	first := thread.Key{Thread: "t", ID: "1"}
	must(t, db.Threads().Put(ctx, thread.NewFrame{Key: first, Body: value('a'), Versions: map[string]string{"x": "1"}, Values: map[string]thread.Value{"x": value('b')}}))
	must(t, db.Threads().Put(ctx, thread.NewFrame{Key: thread.Key{Thread: "t", ID: "2"}, Parent: "1", Body: value('c'), Versions: map[string]string{"x": "1"}}))
	must(t, db.Threads().PutWrites(ctx, first, "task", "", []thread.Write{{Channel: "x", Value: value('d')}}))

	collect := func() int64 {
		t.Helper()
		return got(db.Collect(ctx, &upkeep.CollectOptions{Grace: -1})).Removed
	}
	if n := collect(); n != 0 {
		t.Fatalf("%d blobs were removed", n)
	}
	if f := got(db.Threads().Get(ctx, first)); len(f.Channels["x"].Data) != 600 || len(f.Writes[0].Data) != 600 {
		t.Errorf("the frame after a collection: %v", f)
	}
	if report := got(db.Check(ctx, nil)); !report.OK() {
		t.Errorf("damage: %v", report.Damage)
	}
	// The second frame has the value of the first.
	got(db.Threads().Prune(ctx, "t"))
	if n := collect(); n != 2 {
		t.Errorf("%d blobs were removed, want the body and the write of the first frame", n)
	}
	if f := got(db.Threads().Get(ctx, thread.Key{Thread: "t"})); len(f.Channels["x"].Data) != 600 {
		t.Errorf("the frame that is left: %v", f)
	}

	key := keyspace.Frame("t", "", "2")
	must(t, back.Rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: key, Value: []byte("\xff")}}}))
	if report := got(db.Check(ctx, nil)); report.OK() {
		t.Error("the check does not find a damaged frame")
	}
	if n := collect(); n != 0 {
		t.Errorf("%d blobs of a damaged frame were removed", n)
	}
	if _, err := db.Threads().Get(ctx, thread.Key{Thread: "t"}); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a damaged frame: %v", err)
	}
	must(t, db.Threads().Delete(ctx, "t"))
	if n := collect(); n != 2 {
		t.Errorf("%d blobs were removed with the thread", n)
	}
}
