package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/stet-dev/stet/blob"
)

func newFile(t testing.TB, store blob.Store, content string) *Entry {
	t.Helper()
	e, err := PutFile(context.Background(), store, bytes.NewReader([]byte(content)))
	if err != nil {
		t.Fatal(err)
	}
	e.Mode = 0o644
	return &e
}

func mustEdit(t testing.TB, store blob.Store, tree blob.ID, changes map[string]*Entry) blob.ID {
	t.Helper()
	id, err := Edit(context.Background(), store, tree, changes)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestEditBuildsAndChangesTrees(t *testing.T) {
	store := newStore()
	x, y := newFile(t, store, "x"), newFile(t, store, "y")
	tree := mustEdit(t, store, blob.ID{}, map[string]*Entry{"a/b/c": x, "d": x, "empty": {Kind: Dir, Mode: 0o700}})
	wantList(t, "built", listTree(t, store, tree), "a dir", "a/b dir", "a/b/c file", "d file", "empty dir")

	next := mustEdit(t, store, tree, map[string]*Entry{"a/b/c": y, "d/now/dir": x, "empty": nil, "no/such": nil})
	wantList(t, "edited", listTree(t, store, next), "a dir", "a/b dir", "a/b/c file", "d dir", "d/now dir", "d/now/dir file")
	diff, err := Diff(context.Background(), store, tree, next)
	if err != nil {
		t.Fatal(err)
	}
	wantList(t, "diff", changeList(diff), "modify a/b/c", "modify d", "add d/now", "add d/now/dir", "remove empty")

	gone := mustEdit(t, store, tree, map[string]*Entry{"a/b/c": nil})
	wantList(t, "a directory stays when it runs empty", listTree(t, store, gone), "a dir", "a/b dir", "d file", "empty dir")
	if same := mustEdit(t, store, tree, nil); same != tree {
		t.Errorf("no change: tree %s, want %s", same, tree)
	}
	mode := mustEdit(t, store, tree, map[string]*Entry{"a": {Kind: Dir, Mode: 0o700}})
	diff, err = Diff(context.Background(), store, tree, mode)
	if err != nil {
		t.Fatal(err)
	}
	wantList(t, "mode", changeList(diff), "modify a")
	back := mustEdit(t, store, next, map[string]*Entry{"a/b/c": x, "d": x, "empty": {Kind: Dir, Mode: 0o700}})
	if back != tree {
		t.Errorf("edited back: %v", listTree(t, store, back))
	}
	if _, err := Edit(context.Background(), store, tree, map[string]*Entry{"../x": x}); !errors.Is(err, ErrBadPath) {
		t.Errorf("bad path: %v, want ErrBadPath", err)
	}
	if _, err := Edit(context.Background(), store, tree, map[string]*Entry{"x": {Kind: 9, ID: x.ID}}); !errors.Is(err, ErrBadNode) {
		t.Errorf("bad entry: %v, want ErrBadNode", err)
	}
}

func TestDiffSkipsEqualSubtrees(t *testing.T) {
	store := newStore()
	changes := map[string]*Entry{}
	for _, d := range []string{"a", "b", "c", "d", "e", "f"} {
		changes[d+"/x/y/z"] = newFile(t, store, d)
	}
	tree := mustEdit(t, store, blob.ID{}, changes)
	next := mustEdit(t, store, tree, map[string]*Entry{"c/x/y/z": newFile(t, store, "changed")})
	store.gets = 0
	diff, err := Diff(context.Background(), store, tree, next)
	if err != nil {
		t.Fatal(err)
	}
	wantList(t, "diff", changeList(diff), "modify c/x/y/z")
	if store.gets != 8 {
		t.Errorf("%d nodes read, want 8", store.gets)
	}
	all, err := Diff(context.Background(), store, blob.ID{}, tree)
	if err != nil || len(all) != 24 {
		t.Errorf("from nothing: %d changes, %v; want 24", len(all), err)
	}
	if _, err := Diff(context.Background(), store, tree, blob.Sum([]byte("no tree"))); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("missing tree: %v, want ErrNotFound", err)
	}
}

func TestLargeFilesAreChunked(t *testing.T) {
	store := newStore()
	r := rand.New(rand.NewPCG(3, 4))
	data := make([]byte, 20<<20)
	for i := 0; i < len(data); i += 8 {
		v := r.Uint64()
		for k := range 8 {
			data[i+k] = byte(v >> (8 * k))
		}
	}
	a := newFile(t, store, string(data))
	if !a.Chunked || a.Size != int64(len(data)) {
		t.Fatalf("entry = %+v, want chunked", a)
	}
	before := len(store.blobs)
	edited := append([]byte("inserted at the start"), data...)
	b := newFile(t, store, string(edited))
	if added := len(store.blobs) - before; added > 4 {
		t.Errorf("an insertion stored %d of %d blobs again", added, before)
	}
	for _, c := range []struct {
		e    *Entry
		want []byte
	}{{a, data}, {b, edited}} {
		got, err := ReadFile(context.Background(), store, *c.e)
		if err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("read back %d bytes, %v; want %d", len(got), err, len(c.want))
		}
	}
	for _, blob := range store.blobs {
		if len(blob) > maxChunk {
			t.Errorf("a blob of %d bytes", len(blob))
		}
	}
	root, scanned := t.TempDir(), newStore()
	write(t, root, map[string]string{"big": string(data), "just": string(data[:ChunkedFrom-1]), "over": string(data[:ChunkedFrom])})
	res := mustScan(t, scanned, root, nil, nil)
	for name, want := range map[string][]byte{"big": data, "just": data[:ChunkedFrom-1], "over": data[:ChunkedFrom]} {
		e, err := Lookup(context.Background(), scanned, res.Tree, name)
		if err != nil || e.Chunked != (name != "just") {
			t.Errorf("%s = %+v, %v", name, e, err)
		}
		if got, err := ReadFile(context.Background(), scanned, e); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: read back %d bytes, %v", name, len(got), err)
		}
	}
	if big, _ := Lookup(context.Background(), scanned, res.Tree, "big"); big.ID != a.ID {
		t.Error("scan and PutFile store the same content differently")
	}
}

func TestVerifyAndRefsCoverEveryBlob(t *testing.T) {
	store := newStore()
	large := newFile(t, store, string(bytes.Repeat([]byte("0123456789abcdef"), ChunkedFrom/16)))
	link, err := PutLink(context.Background(), store, "target")
	if err != nil {
		t.Fatal(err)
	}
	tree := mustEdit(t, store, blob.ID{}, map[string]*Entry{"a/b": newFile(t, store, "b"), "a/large": large, "link": &link, "e": {Kind: Dir}})
	refs := map[blob.ID]bool{}
	visit := func(id blob.ID) bool {
		fresh := !refs[id]
		refs[id] = true
		return fresh
	}
	if err := Refs(context.Background(), store, tree, visit); err != nil {
		t.Fatal(err)
	}
	if len(refs) != len(store.blobs) {
		t.Errorf("%d references, %d blobs", len(refs), len(store.blobs))
	}
	for id := range refs {
		data := store.blobs[id]
		for _, readData := range []bool{false, true} {
			delete(store.blobs, id)
			wantProblem(t, store, tree, readData, id)
		}
		if len(data) > 0 {
			bad := bytes.Clone(data)
			bad[len(bad)-1] ^= 1
			store.blobs[id] = bad
			wantProblem(t, store, tree, true, id)
		}
		store.blobs[id] = data
	}
	if problems, err := Verify(context.Background(), store, tree, true); err != nil || len(problems) > 0 {
		t.Errorf("intact tree: %v, %v", problems, err)
	}
}

func wantProblem(t *testing.T, store blob.Store, tree blob.ID, readData bool, id blob.ID) {
	t.Helper()
	problems, err := Verify(context.Background(), store, tree, readData)
	if err != nil || len(problems) == 0 {
		t.Errorf("blob %s missing or damaged (read %v): problems %v, error %v", id.Short(), readData, problems, err)
	}
}

func TestOpenFileNoticesDamage(t *testing.T) {
	store := newStore()
	e := newFile(t, store, "hello")
	short := *e
	short.Size = 4
	long := *e
	long.Size = 6
	for _, bad := range []Entry{short, long} {
		if _, err := ReadFile(context.Background(), store, bad); !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("size %d: %v, want ErrCorrupt", bad.Size, err)
		}
	}
	if _, err := OpenFile(context.Background(), store, Entry{Name: "d", Kind: Dir}); err == nil {
		t.Error("opened a directory")
	}
	if _, err := ReadLink(context.Background(), store, *e); err == nil {
		t.Error("read a file as a link")
	}
	err := Walk(context.Background(), store, mustEdit(t, store, blob.ID{}, map[string]*Entry{"d/f": e, "g": e}), func(path string, _ Entry) error {
		if path == "d/f" {
			t.Error("walked into a skipped directory")
		}
		if path == "d" {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A few nodes that name each other again and again would keep a naive walk busy
// without end.
func TestHostileTreesEnd(t *testing.T) {
	ctx, store := context.Background(), newStore()
	child := mustEdit(t, store, blob.ID{}, nil)
	for range 9 {
		var entries []Entry
		for name := 'a'; name <= 'z'; name++ {
			entries = append(entries, Entry{Name: string(name), Kind: Dir, ID: child})
		}
		data, err := EncodeNode(entries)
		if err != nil {
			t.Fatal(err)
		}
		b := blob.New(data)
		if err := store.Put(ctx, b); err != nil {
			t.Fatal(err)
		}
		child = b.ID
	}
	if problems, err := Verify(ctx, store, child, true); err != nil || len(problems) > 0 {
		t.Errorf("verify: %v, %v", problems, err)
	}
	seen := 0
	stop := errors.New("enough")
	err := Walk(ctx, store, child, func(string, Entry) error {
		if seen++; seen > 100000 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Errorf("walk: %v", err)
	}
	w := walker{ctx: ctx, store: store, fn: func(string, Entry) error { return nil }, seen: MaxTree - 1000}
	if err := w.dir("", child); !errors.Is(err, ErrBadNode) {
		t.Errorf("walk to the end: %v, want ErrBadNode", err)
	}
	d := differ{ctx: ctx, store: store, seen: MaxTree - 1000}
	if err := d.dirs("", &dirRef{}, &dirRef{node: child}); !errors.Is(err, ErrBadNode) {
		t.Errorf("diff to the end: %v, want ErrBadNode", err)
	}
}
