package upkeep_test

import (
	"bytes"
	"testing"

	"github.com/stet-dev/stet/document"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
)

// Contents of documents are kept until they are replaced or removed. A damaged document is
// found, and what it may refer to is kept.
func TestDocumentsKeepTheirContents(t *testing.T) {
	ctx := t.Context()
	back := memBackend()
	db := openOver(t, back, nil)
	set := func(name string, b byte) {
		t.Helper()
		change := document.Change{Name: name, Set: &document.New{Data: bytes.Repeat([]byte{b}, 600)}}
		got(db.Documents().Commit(ctx, "c", document.Batch{Changes: []document.Change{change}}))
	}
	collect := func() int64 {
		t.Helper()
		return got(db.Collect(ctx, &upkeep.CollectOptions{Grace: -1})).Removed
	}
	set("a", 'a')
	set("b", 'b')
	if n := collect(); n != 0 {
		t.Fatalf("%d blobs were removed", n)
	}
	if report := got(db.Check(ctx, nil)); !report.OK() {
		t.Errorf("damage: %v", report.Damage)
	}
	set("a", 'c')
	if n := collect(); n != 1 {
		t.Errorf("%d blobs were removed, want the replaced content", n)
	}
	if docs := got(db.Documents().Get(ctx, "c", "a", "b")); len(docs) != 2 || len(docs[0].Data) != 600 || len(docs[1].Data) != 600 {
		t.Errorf("after a collection: %v", docs)
	}
	must(t, back.Rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: keyspace.Document("c", "b"), Value: []byte("\xff")}}}))
	if report := got(db.Check(ctx, nil)); report.OK() {
		t.Error("the check does not find a damaged document")
	}
	if n := collect(); n != 0 {
		t.Errorf("%d blobs of a damaged document were removed", n)
	}
	got(db.Documents().Commit(ctx, "c", document.Batch{DeletePrefixes: []string{""}}))
	if n := collect(); n != 2 {
		t.Errorf("%d blobs were removed with the collection", n)
	}
}
