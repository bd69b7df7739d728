package stet

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
	"github.com/stet-dev/stet/workspace"
)

// keysOf returns the keys of a store's keyring.
func keysOf(t *testing.T, dir string, unlock keyring.Unlock) []keyring.Info {
	t.Helper()
	ring, err := keyring.Open(filepath.Join(dir, KeyringName), unlock)
	must(t, err)
	return ring.List()
}

// TestKeysThatAreNeededStay leaves one thing at a time under the old key.
func TestKeysThatAreNeededStay(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(*testing.T, *DB)
		want  func(upkeep.KeyUse) bool
	}{
		"blob": {
			func(t *testing.T, db *DB) { must(t, db.Blobs().Put(t.Context(), blob.New([]byte("old")))) },
			func(u upkeep.KeyUse) bool { return u.Blobs == 1 && u.Rows == 0 && u.Packed == 0 },
		},
		"row": {
			func(t *testing.T, db *DB) {
				must(t, db.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "k", Value: []byte("v")}}}))
			},
			func(u upkeep.KeyUse) bool { return u.Blobs == 0 && u.Rows == 1 && u.Packed == 0 },
		},
		"pack": {
			func(t *testing.T, db *DB) {
				talk(t, db, "c1", 2)
				_, err := db.Archive(t.Context(), "c1")
				must(t, err)
				_, err = db.Collect(t.Context(), &upkeep.CollectOptions{Grace: -1})
				must(t, err)
			},
			func(u upkeep.KeyUse) bool { return u.Packed > 0 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, unlock := encryptedDir(t)
			hold(t, dir, &unlock, func(db *DB) {
				must(t, db.Reencrypt(t.Context(), nil))
				must(t, db.Ring().Rotate())
				must(t, db.Reencrypt(t.Context(), nil)) // the mark too
			})
			hold(t, dir, &unlock, func(db *DB) { c.leave(t, db) })
			hold(t, dir, &unlock, func(db *DB) { must(t, db.Ring().Rotate()) })
			before := keysOf(t, dir, unlock)
			old := before[1].ID
			hold(t, dir, &unlock, func(db *DB) { // rows that every store has
				if name != "pack" {
					_, err := db.seal.Reseal(t.Context(), kv.Range{Start: "stet:"})
					must(t, err)
				}
			})
			result, err := PruneKeys(t.Context(), dir, unlock)
			if !errors.Is(err, ErrKeyInUse) || !c.want(result.Use[old]) {
				t.Fatalf("%v, use %+v", err, result.Use[old])
			}
			if after := keysOf(t, dir, unlock); len(after) != len(before) {
				t.Fatalf("%d keys before, %d after", len(before), len(after))
			}
			hold(t, dir, &unlock, func(db *DB) { must(t, db.Reencrypt(t.Context(), nil)) })
			result, err = PruneKeys(t.Context(), dir, unlock)
			if err != nil || len(result.Removed) != 2 || len(keysOf(t, dir, unlock)) != 1 {
				t.Fatalf("after re-encryption: %v, removed %v, keys %v", err, result.Removed, keysOf(t, dir, unlock))
			}
			hold(t, dir, &unlock, func(db *DB) { sound(t, db) })
		})
	}
}

// TestPrunedStoreIsWhole removes a key from a store that did everything.
func TestPrunedStoreIsWhole(t *testing.T) {
	dir, unlock := encryptedDir(t)
	space := t.TempDir()
	hold(t, dir, &unlock, func(db *DB) {
		useEverything(t, db, space)
		must(t, db.Ring().Rotate())
		if _, err := PruneKeys(t.Context(), dir, unlock); !errors.Is(err, kv.ErrBusy) {
			t.Errorf("while the store is open: %v, want ErrBusy", err)
		}
		must(t, db.Reencrypt(t.Context(), nil))
	})
	if _, err := PruneKeys(t.Context(), dir, unlock); err != nil {
		t.Fatal(err)
	}
	keys := keysOf(t, dir, unlock)
	if len(keys) != 1 || !keys[0].Active {
		t.Fatalf("keys %v", keys)
	}
	hold(t, dir, &unlock, func(db *DB) {
		sound(t, db)
		w, err := db.Checkpoints().Open(t.Context(), space)
		must(t, err)
		_, err = w.Present(t.Context())
		must(t, err)
	})
	files, err := workspace.IndexFiles(filepath.Join(dir, IndexName))
	must(t, err)
	for _, f := range files {
		if !f.Sealed || f.Key != keys[0].ID {
			t.Errorf("index %+v is not under the key that is left", f)
		}
	}
}
