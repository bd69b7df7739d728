package stet

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/sealed"
	"github.com/stet-dev/stet/sqlite"
)

// encryptedDir makes an encrypted store in a directory.
func encryptedDir(t *testing.T) (dir string, unlock keyring.Unlock) {
	t.Helper()
	dir, unlock = t.TempDir(), keyring.Raw(key)
	hold(t, dir, nil, func(*DB) {})
	_, err := keyring.Create(filepath.Join(dir, KeyringName), unlock)
	must(t, err)
	return dir, unlock
}

// hold opens a store, runs fn and closes it.
func hold(t *testing.T, dir string, unlock *keyring.Unlock, fn func(*DB)) {
	t.Helper()
	db, err := Open(t.Context(), dir, &Options{Unlock: unlock})
	must(t, err)
	fn(db)
	must(t, db.Close())
}

// rawRows gives the rows of a store as they are stored.
func rawRows(t *testing.T, dir string) map[string]string {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), dir, nil)
	must(t, err)
	rows := map[string]string{}
	for row, err := range engine.Rows().Scan(t.Context(), kv.Range{}, kv.ScanOptions{}) {
		must(t, err)
		rows[row.Key] = string(row.Value)
	}
	must(t, engine.Close())
	return rows
}

// dropMark makes a store one of an earlier release.
func dropMark(t *testing.T, dir string) {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), dir, nil)
	must(t, err)
	must(t, engine.Rows().Commit(t.Context(), &kv.Batch{Delete: []string{sealed.MarkKey}}))
	must(t, engine.Close())
}

// TestStoreThatLostItsKeyring takes the keyring away from encrypted stores with and
// without data, of this and of earlier releases.
func TestStoreThatLostItsKeyring(t *testing.T) {
	fill := map[string]func(*DB){
		"nothing": func(*DB) {},
		"rows": func(db *DB) {
			_, err := db.Conversations().Create(t.Context(), conversation.Info{ID: "c"})
			must(t, err)
		},
		"blobs": func(db *DB) { must(t, db.Blobs().Put(t.Context(), blob.New([]byte("secret")))) },
	}
	for name, fn := range fill {
		for _, earlier := range []bool{false, true} {
			if earlier && name == "nothing" {
				continue // it cannot be told from a new one
			}
			t.Run(name, func(t *testing.T) {
				dir, unlock := encryptedDir(t)
				hold(t, dir, &unlock, fn)
				if earlier {
					dropMark(t, dir)
				}
				before := rawRows(t, dir)
				must(t, os.Rename(filepath.Join(dir, KeyringName), filepath.Join(dir, "away")))
				for _, u := range []*keyring.Unlock{nil, &unlock} {
					if _, err := Open(t.Context(), dir, &Options{Unlock: u}); !errors.Is(err, ErrNoKeyring) {
						t.Errorf("earlier release %v, key given %v: open: %v, want ErrNoKeyring", earlier, u != nil, err)
					}
				}
				if after := rawRows(t, dir); len(after) != len(before) {
					t.Errorf("%d rows before, %d after", len(before), len(after))
				}
				must(t, os.Rename(filepath.Join(dir, "away"), filepath.Join(dir, KeyringName)))
				hold(t, dir, &unlock, func(*DB) {})
				if _, marked := rawRows(t, dir)[sealed.MarkKey]; !marked {
					t.Error("the store does not say that it is encrypted")
				}
			})
		}
	}
}

func TestKeyOrKeyringForAPlainStore(t *testing.T) {
	fill := map[string]func(*DB){
		"rows": func(db *DB) {
			_, err := db.Conversations().Create(t.Context(), conversation.Info{ID: "c"})
			must(t, err)
		},
		"blobs": func(db *DB) { must(t, db.Blobs().Put(t.Context(), blob.New([]byte("known")))) },
	}
	for name, fn := range fill {
		t.Run(name, func(t *testing.T) {
			dir, unlock := t.TempDir(), keyring.Raw(key)
			hold(t, dir, nil, fn)
			before := rawRows(t, dir)
			if _, err := Open(t.Context(), dir, &Options{Unlock: &unlock}); !errors.Is(err, ErrNoKeyring) {
				t.Errorf("a key without a keyring: %v", err)
			}
			_, err := keyring.Create(filepath.Join(dir, KeyringName), unlock)
			must(t, err)
			if _, err := Open(t.Context(), dir, &Options{Unlock: &unlock}); !errors.Is(err, ErrNotEncrypted) {
				t.Errorf("a keyring over plain data: %v", err)
			}
			if after := rawRows(t, dir); len(after) != len(before) {
				t.Errorf("%d rows before, %d after", len(before), len(after))
			}
		})
	}
}

// TestKeyringOfAnotherStore also takes a keyring that the same key opens.
func TestKeyringOfAnotherStore(t *testing.T) {
	for _, earlier := range []bool{false, true} {
		dir, unlock := encryptedDir(t)
		other, _ := encryptedDir(t)
		hold(t, dir, &unlock, func(db *DB) { must(t, db.Blobs().Put(t.Context(), blob.New([]byte("secret")))) })
		if earlier {
			dropMark(t, dir)
		}
		foreign, err := os.ReadFile(filepath.Join(other, KeyringName))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, KeyringName), foreign, 0o600))
		if _, err := Open(t.Context(), dir, &Options{Unlock: &unlock}); !errors.Is(err, blob.ErrWrongKey) {
			t.Errorf("earlier release %v: %v, want ErrWrongKey", earlier, err)
		}
	}
}

// TestMarkComesWithTheFirstCommit looks at a store that only readers opened.
func TestMarkComesWithTheFirstCommit(t *testing.T) {
	b, ring := memBackend(), newRing(t)
	db := openOver(t, b, ring)
	if _, err := b.Rows.Get(t.Context(), sealed.MarkKey); !errors.Is(err, kv.ErrNotFound) {
		t.Fatalf("a reader wrote: %v", err)
	}
	_, err := db.Conversations().Create(t.Context(), conversation.Info{ID: "c"})
	must(t, err)
	row, err := b.Rows.Get(t.Context(), sealed.MarkKey)
	must(t, err)
	if bytes.Equal(row.Value, sealed.Mark().Value) {
		t.Error("the mark is not sealed")
	}
	if _, err := New(t.Context(), b, nil, nil); !errors.Is(err, ErrNoKeyring) {
		t.Errorf("without the ring: %v", err)
	}
	openOver(t, b, ring)
}
