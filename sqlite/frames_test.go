package sqlite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// logWrites counts the writes to the log since a mark.
func (r *recorder) logWrites(from int) (writes, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.changes[from:] {
		if c.op == opWrite && strings.HasSuffix(c.path, logSuffix) {
			writes, bytes = writes+1, bytes+len(c.data)
		}
	}
	return writes, bytes
}

func TestACommitIsOneWriteToTheLog(t *testing.T) {
	dir := t.TempDir()
	r := newRecorder(t, dir)
	db, err := Open(t.Context(), dir, r.options())
	check(t, err)
	defer db.Close()
	commit := func(n int) {
		var refs []blob.ID
		for i := range 10 {
			one := blob.New(fmt.Appendf(nil, "blob %d of commit %d", i, n))
			check(t, db.Blobs().Put(t.Context(), one))
			refs = append(refs, one.ID)
		}
		check(t, db.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: fmt.Sprint("row ", n)}}, Refs: refs}))
	}
	commit(0) // begins the log
	from := r.mark()
	commit(1)
	writes, bytes := r.logWrites(from)
	if writes != 1 || bytes < 3*4096 {
		t.Errorf("a commit of several pages made %d writes of %d bytes to the log, want one", writes, bytes)
	}
}

// TestATransactionLargerThanTheCache makes the library write frames before the commit,
// read them again and change pages that have a frame already.
func TestATransactionLargerThanTheCache(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(t.Context(), dir, &Options{PageCache: 64 << 10, MaxPending: 64 << 20})
	check(t, err)
	var refs []blob.ID
	for i := range 3000 {
		one := blob.New(fmt.Appendf(nil, "%d %s", i, strings.Repeat("content ", 1000)))
		check(t, db.Blobs().Put(t.Context(), one))
		refs = append(refs, one.ID)
	}
	check(t, db.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "all"}}, Refs: refs}))
	check(t, db.Close())
	db, err = Open(t.Context(), dir, nil)
	check(t, err)
	defer db.Close()
	has, err := db.Blobs().Has(t.Context(), refs...)
	check(t, err)
	for i, there := range has {
		if !there {
			t.Fatalf("blob %d is missing", i)
		}
	}
	report, err := db.Check(t.Context(), CheckOptions{})
	check(t, err)
	if len(report.Damage) > 0 {
		t.Error(report.Damage)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
