package stet

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/upkeep"
)

// releaseStore is where the stores of releases were made; their checkpoints name it.
const releaseStore = "/tmp/stet-release-store"

// TestStoresOfEveryRelease opens, checks and uses the stores that releases have left in
// testdata/releases: a store, one with archived conversations, an encrypted one. They are
// those of `stet demo`, made by internal/tools/stores.sh.
func TestStoresOfEveryRelease(t *testing.T) {
	found, err := filepath.Glob("testdata/releases/*/*.tar.gz")
	must(t, err)
	if len(found) < 3 {
		t.Fatalf("found the stores %q only", found)
	}
	for _, path := range found {
		t.Run(path, func(t *testing.T) {
			dir := t.TempDir()
			unpack(t, path, dir)
			for range 2 { // what this version wrote opens, too
				useStore(t, dir)
			}
		})
	}
}

// useStore reads what `stet demo` stored, rewinds, takes that back, and goes on.
func useStore(t *testing.T, dir string) {
	t.Helper()
	ctx, opts := t.Context(), &Options{}
	if key := filepath.Join(dir, "key"); fileThere(key) {
		unlock := keyring.KeyFile(key)
		opts.Unlock = &unlock
	}
	db, err := Open(ctx, filepath.Join(dir, "store"), opts)
	must(t, err)
	defer func() { must(t, db.Close()) }()
	sound(t, db)

	page, err := db.Conversations().List(ctx, nil)
	must(t, err)
	if len(page.Conversations) != 1 || page.Conversations[0].Title != "add retry to checkout" {
		t.Fatalf("it has the conversations %+v", page.Conversations)
	}
	id := page.Conversations[0].ID
	index, err := db.Search(ctx)
	must(t, err)
	_, err = index.Update(ctx)
	must(t, err)
	if hits, err := index.Search(ctx, "retry", nil); err != nil || len(hits.Hits) == 0 {
		t.Errorf("a search found %+v, %v", hits, err)
	}

	shop := filepath.Join(dir, "shop")
	if _, err := db.Checkpoints().Move(ctx, releaseStore+"/shop", shop, true); err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
		t.Fatal(err)
	}
	rewindAndBack(t, db, shop)

	c, err := db.Conversations().Open(ctx, id) // brings it back from the archive
	must(t, err)
	before, err := c.Turns(ctx)
	must(t, err)
	if before < 3 {
		t.Errorf("the conversation has %d turns", before)
	}
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "and then?"})
	must(t, err)
	must(t, c.AppendTurn(ctx, turn))
	saved, err := c.Save(ctx, nil)
	must(t, err)
	if int(saved.Turns) != before+1 {
		t.Errorf("%d turns were saved after %d", saved.Turns, before)
	}
	_, err = db.Archive(ctx, id)
	must(t, err)
	_, err = db.Collect(ctx, &upkeep.CollectOptions{Grace: -1})
	must(t, err)
	sound(t, db)
}

// rewindAndBack goes to the first checkpoint, in which there are no retries, and undoes
// that.
func rewindAndBack(t *testing.T, db *DB, shop string) {
	t.Helper()
	ctx := t.Context()
	space, err := db.Checkpoints().Open(ctx, shop)
	must(t, err)
	defer func() { must(t, space.Close()) }()
	checkpoints := 0
	for _, err := range space.List(ctx, nil) {
		must(t, err)
		checkpoints++
	}
	if checkpoints < 7 {
		t.Errorf("the workspace has %d checkpoints", checkpoints)
	}
	retry := filepath.Join(shop, "checkout", "retry.go")
	if !fileThere(retry) {
		t.Fatal("the workspace lacks retry.go before the rewind")
	}
	_, err = space.Rewind(ctx, checkpoint.RewindRequest{To: "c1", Scope: checkpoint.FilesOnly, Exact: true}, "")
	must(t, err)
	if fileThere(retry) {
		t.Error("the rewind left retry.go")
	}
	_, err = space.Undo(ctx, nil)
	must(t, err)
	if !fileThere(retry) {
		t.Error("the undo did not bring back retry.go")
	}
}

func fileThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// unpack unpacks an archive that has files and directories.
func unpack(t *testing.T, path, to string) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	plain, err := gzip.NewReader(f)
	must(t, err)
	for r := tar.NewReader(plain); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		name := filepath.Join(to, filepath.FromSlash(header.Name))
		if header.Typeflag == tar.TypeDir {
			must(t, os.MkdirAll(name, 0o700))
			continue
		}
		data, err := io.ReadAll(r)
		must(t, err)
		must(t, os.WriteFile(name, data, header.FileInfo().Mode().Perm()))
	}
}
