package stet

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/kvtest"
	"github.com/stet-dev/stet/sqlite"
)

// optionsFor returns options for a new store in dir; a key makes it encrypted.
func optionsFor(t *testing.T, dir string, key []byte) *Options {
	t.Helper()
	if key == nil {
		return nil
	}
	unlock := keyring.Raw(key)
	if _, err := keyring.Create(filepath.Join(prepared(t, dir), KeyringName), unlock); err != nil {
		t.Fatal(err)
	}
	return &Options{Unlock: &unlock}
}

// openTest opens a store that is closed with the test; a key makes it encrypted.
func openTest(t *testing.T, key []byte) *DB {
	t.Helper()
	dir := t.TempDir()
	db, err := Open(t.Context(), dir, optionsFor(t, dir, key))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// prepared makes an empty store in dir, since a keyring is added to one.
func prepared(t *testing.T, dir string) string {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

var key = bytes.Repeat([]byte{7}, 32)

func TestWholeStack(t *testing.T) {
	for name, key := range map[string][]byte{"plain": nil, "encrypted": key} {
		t.Run(name, func(t *testing.T) {
			t.Run("blobs", func(t *testing.T) {
				blobtest.Run(t, func(t *testing.T) blob.Store { return openTest(t, key).Blobs() })
			})
			t.Run("rows", func(t *testing.T) {
				kvtest.Run(t, func(t *testing.T) kv.Store { return openTest(t, key).Rows() })
			})
			t.Run("references", func(t *testing.T) {
				kvtest.RunRefs(t, func(t *testing.T) (kv.Store, blob.Store) {
					db := openTest(t, key)
					return db.Rows(), db.Blobs()
				})
			})
		})
	}
}

func TestLockedStore(t *testing.T) {
	dir := prepared(t, t.TempDir())
	right, wrong := keyring.Raw(key), keyring.Raw(bytes.Repeat([]byte{8}, 32))
	if _, err := keyring.Create(filepath.Join(dir, KeyringName), right); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("Open without a key = %v, want ErrLocked", err)
	}
	if _, err := Open(t.Context(), filepath.Join(dir, KeyringName), nil); !errors.Is(err, sqlite.ErrForeign) || errors.Is(err, ErrLocked) {
		t.Errorf("Open of a file = %v, want ErrForeign", err)
	}
	if _, err := Open(t.Context(), dir, &Options{Unlock: &wrong}); !errors.Is(err, keyring.ErrWrongKey) {
		t.Errorf("Open with a wrong key = %v, want ErrWrongKey", err)
	}
	db, err := Open(t.Context(), dir, &Options{Unlock: &right})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

func TestEncryptedStoreShowsNothing(t *testing.T) {
	db := openTest(t, key)
	secret := []byte("the canary sings at midnight")
	large := bytes.Repeat(secret, 20_000)
	b, l := blob.New(secret), blob.New(large)
	if err := db.Blobs().Put(t.Context(), b, l); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Conversations().Create(t.Context(), conversation.Info{Title: string(secret)}); err != nil {
		t.Fatal(err)
	}
	batch := &kv.Batch{Set: []kv.Set{{Key: "k", Value: secret}}, Refs: []blob.ID{b.ID, l.ID}}
	if err := db.Rows().Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(db.Engine().Dir(), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, canary := range [][]byte{secret, b.ID[:], l.ID[:], []byte(l.ID.String()[2:])} {
			if bytes.Contains(data, canary) || bytes.Contains([]byte(path), canary) {
				t.Errorf("%s shows what it should not", path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestReencrypt(t *testing.T) {
	db := openTest(t, key)
	contents := make(map[blob.ID][]byte)
	for i := range 50 {
		data := bytes.Repeat(fmt.Appendf(nil, "content %d ", i), 1+i*i*20)
		b := blob.New(data)
		contents[b.ID] = data
		if err := db.Blobs().Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "k", Value: []byte("v")}}}); err != nil {
		t.Fatal(err)
	}
	if err := db.Ring().Rotate(); err != nil {
		t.Fatal(err)
	}
	if err := db.Reencrypt(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for id, want := range contents {
		if got, err := db.Blobs().Get(t.Context(), id); err != nil || !bytes.Equal(got, want) {
			t.Errorf("Get(%s) = %d bytes, %v", id.Short(), len(got), err)
		}
	}
	if row, err := db.Rows().Get(t.Context(), "k"); err != nil || string(row.Value) != "v" {
		t.Errorf("row k = %q, %v", row.Value, err)
	}
}
