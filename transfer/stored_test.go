package transfer_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/transfer"
)

// openSealed opens an encrypted store whose keyring is a copy of that of another
// directory, or a new one.
func openSealed(t *testing.T, unlock keyring.Unlock, like string) (db *stet.DB, dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := must[*stet.DB](t)(stet.Open(t.Context(), dir, nil)).Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, stet.KeyringName)
	if like == "" {
		must[*keyring.Ring](t)(keyring.Create(path, unlock))
	} else {
		copied := must[[]byte](t)(os.ReadFile(filepath.Join(like, stet.KeyringName)))
		if err := os.WriteFile(path, copied, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db = must[*stet.DB](t)(stet.Open(t.Context(), dir, &stet.Options{Unlock: &unlock}))
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db, dir
}

func storedSide(db *stet.DB) transfer.Side {
	s := side(db)
	s.Encrypted, s.Stored = db.Ring() != nil, db.Stored()
	return s
}

func turns(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprint("turn ", i))
	}
	return texts
}

// kept returns every blob of a store as it is kept.
func kept(t *testing.T, db *stet.DB) map[blob.ID][]byte {
	t.Helper()
	all := map[blob.ID][]byte{}
	err := db.Engine().Blobs().List(t.Context(), blob.ID{}, func(i blob.Info) error {
		all[i.ID] = nil
		return nil
	})
	for name := range all {
		one, getErr := db.Stored().Get(t.Context(), name)
		all[name], err = one.Data, errors.Join(err, getErr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSealedBlobsMoveAsTheyAre(t *testing.T) {
	unlock := keyring.Raw(bytes.Repeat([]byte{7}, 32))
	a, dir := openSealed(t, unlock, "")
	say(t, a, "talk", turns(40)...)
	b, _ := openSealed(t, unlock, dir)
	must[*transfer.Report](t)(transfer.Run(t.Context(), storedSide(a), storedSide(b), nil, nil))
	if diff := cmp.Diff(said(t, a, "talk"), said(t, b, "talk")); diff != "" {
		t.Error(diff)
	}
	healthy(t, b)
	from := kept(t, a)
	for name, got := range kept(t, b) {
		if want, ok := from[name]; !ok || !bytes.Equal(got, want) {
			t.Errorf("blob %s was encrypted again", name.Short())
		}
	}
	// With another key only one side could read what the other one stores.
	if err := a.Ring().Rotate(); err != nil {
		t.Fatal(err)
	}
	say(t, a, "talk", "after the rotation")
	must[*transfer.Report](t)(transfer.Run(t.Context(), storedSide(a), storedSide(b), nil, nil))
	if diff := cmp.Diff(said(t, a, "talk"), said(t, b, "talk")); diff != "" {
		t.Error(diff)
	}
	healthy(t, b)
}

// A history takes about the same room at both ends, however it travels. It is compacted
// before: only the process that put the blobs knows which of them can lean on a later one.
func TestMovedHistoriesStaySmall(t *testing.T) {
	a := open(t)
	say(t, a, "talk", turns(200)...)
	if err := a.Compact(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]transfer.Side{"as stored": storedSide(a), "plain": side(a)} {
		b := open(t)
		must[*transfer.Report](t)(transfer.Run(t.Context(), from, storedSide(b), nil, nil))
		healthy(t, b)
		var sizes [2]int
		for i, db := range []*stet.DB{a, b} {
			if err := db.Compact(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			for _, data := range kept(t, db) {
				sizes[i] += len(data)
			}
		}
		if sizes[1] > sizes[0]*13/10 {
			t.Errorf("%s: %d bytes became %d", name, sizes[0], sizes[1])
		}
	}
}
