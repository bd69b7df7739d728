package upkeep_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/upkeep"
	"github.com/stet-dev/stet/workspace"
)

// lossy is a store that has lost some blobs.
type lossy struct {
	*memblob.Store
	gone map[blob.ID]bool
}

func (l *lossy) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if l.gone[id] {
		return nil, blob.NotFound(id)
	}
	return l.Store.Get(ctx, id)
}

func (l *lossy) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	has, err := l.Store.Has(ctx, ids...)
	for i, id := range ids {
		if err == nil && l.gone[id] {
			has[i] = false
		}
	}
	return has, err
}

// damageable returns a store with a conversation and a checkpoint of it, and what
// lies below.
func damageable(t *testing.T) (*stet.DB, *lossy, *memkv.Store, *checkpoint.Record) {
	t.Helper()
	blobs := &lossy{Store: memblob.New(), gone: map[blob.ID]bool{}}
	rows := memkv.New(blobs.Store)
	db, err := stet.New(t.Context(), stet.Backend{Blobs: blobs, Rows: rows, Inventory: blobs}, nil, &stet.Options{CacheBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Conversations().Create(t.Context(), conversation.Info{ID: "talk"}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.txt", "sub/b.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("content of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	space, err := db.Checkpoints().Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { space.Close() })
	res, err := space.Checkpoint(t.Context(), checkpoint.Request{Conversation: "talk", Side: checkpoint.After})
	if err != nil {
		t.Fatal(err)
	}
	report, err := db.Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
	if err != nil || !report.OK() || report.Rows == 0 || report.Orphans != 0 {
		t.Fatalf("before any damage: %+v, %v", report, err)
	}
	return db, blobs, rows, res.Record
}

func TestCheckNamesALostFileOfACheckpoint(t *testing.T) {
	db, blobs, _, rec := damageable(t)
	for _, path := range []string{"a.txt", "sub"} {
		entry, err := workspace.Lookup(t.Context(), db.Blobs(), rec.Tree, path)
		if err != nil {
			t.Fatal(err)
		}
		blobs.gone = map[blob.ID]bool{entry.ID: true}
		report, err := db.Check(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Damage) != 1 {
			t.Fatalf("%s: %d damages, want 1: %+v", path, len(report.Damage), report.Damage)
		}
		d := report.Damage[0]
		if d.ID != entry.ID || d.Kind != upkeep.DamageMissing || !slices.Equal(d.Conversations, []string{"talk"}) {
			t.Errorf("%s: got %+v", path, d)
		}
	}
}

func TestCheckNamesEveryDamagedRow(t *testing.T) {
	db, _, rows, rec := damageable(t)
	keys := []string{keyspace.Conversation("talk"), keyspace.Checkpoint(rec.ID), keyspace.Workspace(rec.Workspace)}
	for _, key := range keys {
		row, err := rows.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		row.Value[len(row.Value)/2] ^= 1
		if err := rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: key, Value: row.Value}}}); err != nil {
			t.Fatal(err)
		}
	}
	report, err := db.Check(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if !slices.ContainsFunc(report.Damage, func(d upkeep.Damage) bool { return d.Key == key && d.Kind == upkeep.DamageRow }) {
			t.Errorf("%s is not named: %+v", key, report.Damage)
		}
	}
	first := slices.IndexFunc(report.Damage, func(d upkeep.Damage) bool { return d.Key == keys[0] })
	if first >= 0 && !slices.Equal(report.Damage[first].Conversations, []string{"talk"}) {
		t.Errorf("got %+v", report.Damage[first])
	}
}
