package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/server"
)

// What a caller of the row API stores as a checkpoint counts as one from elsewhere,
// whatever it says: a rewind takes no set-user-id bit from it.
func TestCheckpointsOfTheRowAPIAreFromElsewhere(t *testing.T) {
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := db.Checkpoints().Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	res, err := w.Checkpoint(t.Context(), checkpoint.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if res.Record.Received {
		t.Fatal("a checkpoint that was captured here counts as one from elsewhere")
	}
	rows := dial(t, serveDB(t, db, &server.Options{Token: token}), token).Rows()
	row, err := rows.Get(t.Context(), keyspace.Checkpoint(res.Record.ID))
	if err != nil {
		t.Fatal(err)
	}
	if err := rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: row.Key, Value: row.Value}}}); err != nil {
		t.Fatal(err)
	}
	rec, err := db.Checkpoints().Get(t.Context(), res.Record.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !rec.Received {
		t.Error("a checkpoint that a caller stored counts as captured here")
	}
}
