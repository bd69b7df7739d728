package sqlite

import (
	"errors"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// TestABaseThatIsCertain asks for a base as the next save of a conversation does, without
// a reading connection: between transactions, and while one is written.
func TestABaseThatIsCertain(t *testing.T) {
	dir := t.TempDir()
	r := newRecorder(t, dir)
	db, err := Open(t.Context(), dir, r.options())
	check(t, err)
	defer db.Close()
	base := blob.New([]byte("base"))
	check(t, errors.Join(db.Blobs().Put(t.Context(), base), db.Blobs().Flush(t.Context())))
	stranger := blob.New([]byte("stranger"))
	ask := func(when string) {
		if !db.writer.certain([]blob.ID{base.ID}) {
			t.Errorf("%s it is not certain that the base is stored", when)
		}
		if db.writer.certain([]blob.ID{base.ID, stranger.ID}) {
			t.Errorf("%s a blob that was never stored counts as stored", when)
		}
	}
	ask("between transactions")
	asked := 0
	r.setFault(func(c change) error {
		if c.op == opSync {
			asked++
			ask("during a sync")
		}
		return nil
	})
	check(t, db.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "row"}}}))
	r.setFault(nil)
	if asked == 0 {
		t.Error("the commit did not sync")
	}
	if now := db.writer.fresh.current.Load(); now != 0 {
		t.Errorf("after the transaction generation %d still counts as held", now)
	}
}

// TestABaseThatAnotherProcessSwept was stored by this process, so it remembers it.
func TestABaseThatAnotherProcessSwept(t *testing.T) {
	db := openTest(t, nil)
	base := blob.New([]byte("base"))
	check(t, errors.Join(db.Blobs().Put(t.Context(), base), db.Blobs().Flush(t.Context())))
	sweepAll(t, openAgain(t, db).Blobs())
	next := blob.New([]byte("next"))
	next.Base = base.ID
	if err := db.Blobs().Put(t.Context(), next); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("putting a blob whose base was swept returned %v, want not found", err)
	}
}

// TestCertaintyAfterClose uses no connection that is closed.
func TestCertaintyAfterClose(t *testing.T) {
	db, err := Open(t.Context(), t.TempDir(), nil)
	check(t, err)
	base := blob.New([]byte("base"))
	check(t, errors.Join(db.Blobs().Put(t.Context(), base), db.Close()))
	next := blob.New([]byte("next"))
	next.Base = base.ID
	if err := db.Blobs().Put(t.Context(), next); !errors.Is(err, blob.ErrClosed) {
		t.Errorf("putting into a closed store returned %v, want closed", err)
	}
}
