package workspace

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// testKeys is a sealer with some keys, the last of which is active.
type testKeys struct{ ids [][8]byte }

func newTestKeys() *testKeys { return &testKeys{ids: [][8]byte{{1}}} }

func (k *testKeys) Active() ([8]byte, error) { return k.ids[len(k.ids)-1], nil }

func (k *testKeys) Key(id [8]byte, salt []byte) ([]byte, error) {
	for _, known := range k.ids {
		if known == id {
			mac := hmac.New(sha256.New, id[:])
			mac.Write(salt)
			return mac.Sum(nil), nil
		}
	}
	return nil, fmt.Errorf("no key %x", id)
}

// sealedTree saves the index of a tree, whole and then with something appended.
func sealedTree(t *testing.T, seal Sealer) (root string, store *mapStore, path string) {
	t.Helper()
	root, store, res := indexedTree(t)
	path = filepath.Join(t.TempDir(), "ws.index")
	if err := res.Index.SaveSealed(path, seal); err != nil {
		t.Fatal(err)
	}
	write(t, root, map[string]string{"d2/canary-name": "canary content"})
	letTick()
	next := mustScanPaths(t, store, root, res.Index, []string{"d2/canary-name"}, nil)
	if err := next.Index.SaveSealed(path, seal); err != nil {
		t.Fatal(err)
	}
	return root, store, path
}

func TestSealedIndexShowsNothing(t *testing.T) {
	_, _, path := sealedTree(t, newTestKeys())
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("canary content"))
	for name, canary := range map[string][]byte{
		"a name": []byte("canary-name"), "another name": []byte(".gitignore"), "a hash": sum[:8], "a hash in hex": []byte(hex.EncodeToString(sum[:4])),
	} {
		if bytes.Contains(data, canary) {
			t.Errorf("the index shows %s", name)
		}
	}
	if _, err := OpenIndex(path); !errors.Is(err, ErrBadIndex) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := OpenSealedIndex(path, &testKeys{ids: [][8]byte{{2}}}); !errors.Is(err, ErrBadIndex) {
		t.Errorf("with another key: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("a sealed index was removed: %v", err)
	}
}

func TestPlainIndexOfASealedStoreIsRemoved(t *testing.T) {
	needsTrust(t)
	root, store, path := sealedTree(t, nil)
	seal := newTestKeys()
	if _, err := OpenSealedIndex(path, seal); !errors.Is(err, ErrBadIndex) {
		t.Errorf("open: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the plain index is still there: %v", err)
	}
	if err := mustScan(t, store, root, nil, nil).Index.SaveSealed(path, seal); err != nil {
		t.Fatal(err)
	}
	x, err := OpenSealedIndex(path, seal)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if got := mustScan(t, store, root, x, nil); got.Stats.Read != 0 {
		t.Errorf("read %d files with the index that was made again", got.Stats.Read)
	}
}

func TestIndexUnderARetiredKeyIsReadAndReplaced(t *testing.T) {
	needsTrust(t)
	seal := newTestKeys()
	root, store, path := sealedTree(t, seal)
	seal.ids = append(seal.ids, [8]byte{9})
	x, err := OpenSealedIndex(path, seal)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	next := mustScan(t, store, root, x, nil)
	if next.Stats.Read != 0 {
		t.Errorf("read %d files", next.Stats.Read)
	}
	if err := next.Index.SaveSealed(path, seal); err != nil {
		t.Fatal(err)
	}
	files, err := IndexFiles(filepath.Dir(path))
	if err != nil || len(files) != 1 || !files[0].Sealed || files[0].Key != [8]byte{9} {
		t.Errorf("files %+v, %v", files, err)
	}
}

// Whatever happens to the bytes of a sealed index, scans give the right tree.
func TestDamagedSealedIndexIsNeverTrusted(t *testing.T) {
	seal := newTestKeys()
	root, store, path := sealedTree(t, seal)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, map[string]string{"d1/s1/f1": "edited", "d3/new": "new"})
	touched := &Options{Touched: []string{"d1/f1.o"}}
	want := mustScan(t, newStore(), root, nil, touched).Tree
	r := rand.New(rand.NewPCG(1, 2))
	used := 0
	for i := range rounds(200) {
		bad := bytes.Clone(data)
		switch i % 4 {
		case 0:
			bad = bad[:r.IntN(len(bad))]
		case 1:
			at := r.IntN(len(bad) - 200)
			copy(bad[at:], bad[at+100:at+200])
		default:
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := OpenSealedIndex(path, seal)
		if err != nil {
			if !errors.Is(err, ErrBadIndex) {
				t.Fatalf("error %v, want ErrBadIndex", err)
			}
			continue
		}
		used++
		got := mustScan(t, store, root, x, touched)
		if got.Tree != want {
			t.Fatalf("case %d: tree by a damaged index differs: %v", i, changeList(got.Changed))
		}
		x.Close()
	}
	if used == 0 {
		t.Error("no damaged index was ever used")
	}
}
