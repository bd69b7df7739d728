package jsoncheckpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/workspace"
)

// Documents as the editor writes them.
const (
	cp0 = `{"files": [{"uri": {"$mid": 1, "external": "file:///w/a.txt", "path": "/w/a.txt", "scheme": "file"}, "originalModelDiffWrtV0": []}], "nonExistentFiles": [], "newlyCreatedFolders": [], "activeInlineDiffs": [], "inlineDiffNewlyCreatedResources": {"files": [], "folders": []}}`
	cp1 = `{"files": [{"uri": {"$mid": 1, "external": "file:///w/new.txt", "path": "/w/new.txt", "scheme": "file"}, "originalModelDiffWrtV0": [], "isNewlyCreated": true}], "nonExistentFiles": [], "newlyCreatedFolders": [{"uri": {"$mid": 1, "external": "file:///w/d", "path": "/w/d", "scheme": "file"}}], "activeInlineDiffs": [], "inlineDiffNewlyCreatedResources": {"files": [], "folders": []}}`
	cp2 = `{"files": [{"uri": {"$mid": 1, "external": "file:///w/a.txt", "path": "/w/a.txt", "scheme": "file"}, "originalModelDiffWrtV0": [{"original": {"startLineNumber": 2, "endLineNumberExclusive": 2}, "modified": ["inserted"]}, {"original": {"startLineNumber": 3, "endLineNumberExclusive": 3}, "modified": ["three"]}]}], "nonExistentFiles": [], "newlyCreatedFolders": [], "activeInlineDiffs": [], "inlineDiffNewlyCreatedResources": {"files": [], "folders": []}}`
	cp3 = `{"files": [], "nonExistentFiles": [{"uri": {"$mid": 1, "external": "file:///w/gone.txt", "path": "/w/gone.txt", "scheme": "file"}}], "newlyCreatedFolders": [], "activeInlineDiffs": [{"uri": "file:///w/a.txt", "originalTextDiffWrtV0": [], "newTextDiffWrtV0": [{"original": {"startLineNumber": 1, "endLineNumberExclusive": 2}, "modified": ["ONE"]}], "generationUUID": "g", "codeBlockId": "b", "later": 7}], "inlineDiffNewlyCreatedResources": {"files": [], "folders": [], "x": 1}, "unknown": {"kept": true}}`
)

func parse(t *testing.T, doc string) *Checkpoint {
	t.Helper()
	cp := new(Checkpoint)
	if err := json.Unmarshal([]byte(doc), cp); err != nil {
		t.Fatal(err)
	}
	return cp
}

// Reading and writing a document changes nothing in it.
func TestRoundTrip(t *testing.T) {
	for i, doc := range []string{cp0, cp1, cp2, cp3} {
		out, err := json.Marshal(parse(t, doc))
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := errors.Join(json.Unmarshal(out, &got), json.Unmarshal([]byte(doc), &want)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("document %d became\n%s\nfrom\n%s", i, out, doc)
		}
	}
}

func TestApply(t *testing.T) {
	tests := []struct {
		name    string
		v0      string
		changes []Change
		want    string
	}{
		{"insertion and append", "one two", parse(t, cp2).Files[0].Changes, "one inserted two three"},
		{"nothing", "one two", nil, "one two"},
		{"replace", "one two three", []Change{{2, 3, []string{"TWO", "2"}}}, "one TWO 2 three"},
		{"delete", "one two three", []Change{{1, 3, nil}}, "three"},
		{"insert before the first", "one", []Change{{1, 1, []string{"zero"}}}, "zero one"},
		{"far past the end", "one", []Change{{9, 12, []string{"end"}}}, "one end"},
		{"into nothing", "", []Change{{1, 1, []string{"a", "b"}}}, "a b"},
	}
	for _, tt := range tests {
		if got := Apply(strings.Fields(tt.v0), tt.changes); !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// What Diff says is what Apply does, for any texts and line ends.
func TestDiffApply(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	word := func() string {
		var b strings.Builder
		ends := []string{"\n", "\r\n", "\n", "\r"}
		end := ends[rnd.IntN(len(ends))]
		for range rnd.IntN(12) {
			fmt.Fprintf(&b, "%d", rnd.IntN(4))
			if rnd.IntN(5) > 0 {
				b.WriteString(end)
			} else {
				b.WriteString("\n")
			}
		}
		return b.String()
	}
	said := 0
	for range 3000 {
		v0, content := word(), word()
		changes, ok := changesTo(v0, content)
		f := File{Changes: changes}
		if ok != (f.Text(v0) == content) {
			t.Fatalf("from %q to %q: ok is %v, and Text gives %q", v0, content, ok, f.Text(v0))
		}
		if ok {
			said++
		}
		if err := checkChanges(changes); err != nil {
			t.Fatal(err)
		}
	}
	if said < 2500 {
		t.Errorf("only %d of 3000 could be said", said)
	}
}

func TestMalformed(t *testing.T) {
	for _, doc := range []string{
		`[]`, `null`, `{"files": 3}`, `{"files": [{}]}`, `{"files": [{"uri": 5}]}`, `{"files": [{"uri": ""}]}`, `{"files":[{"uri":{}}]}`,
		`{"files": [{"uri": "file:///a", "originalModelDiffWrtV0": [{"modified": []}]}]}`,
		`{"files": [{"uri": "file:///a", "originalModelDiffWrtV0": [{"original": {"startLineNumber": 1, "endLineNumberExclusive": 2}}]}]}`,
		`{"files": [{"uri": "file:///a", "originalModelDiffWrtV0": [{"original": {"startLineNumber": 0, "endLineNumberExclusive": 1}, "modified": []}]}]}`,
		`{"files": [{"uri": "file:///a", "originalModelDiffWrtV0": [{"original": {"startLineNumber": 3, "endLineNumberExclusive": 2}, "modified": []}]}]}`,
		`{"files": [{"uri": "file:///a", "originalModelDiffWrtV0": [{"original": {"startLineNumber": 3, "endLineNumberExclusive": 5}, "modified": []}, {"original": {"startLineNumber": 4, "endLineNumberExclusive": 4}, "modified": []}]}]}`,
		`{"nonExistentFiles": [{"uri": {"uri": {"uri": "x"}}}]}`,
	} {
		if err := json.Unmarshal([]byte(doc), new(Checkpoint)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", doc, err)
		}
	}
}

func TestStore(t *testing.T) {
	ctx := t.Context()
	s := NewStore(memkv.New(nil))
	for _, conv := range []string{"c", "c:x", "d"} {
		if err := s.Put(ctx, conv, "1", parse(t, cp2)); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			err := s.Update(ctx, "c", "1", func(cp *Checkpoint) error {
				cp.NonExistent = append(cp.NonExistent, FileURI(fmt.Sprintf("/w/%d", i)))
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	cp, err := s.Get(ctx, "c", "1")
	if err != nil || len(cp.NonExistent) != 8 {
		t.Errorf("after 8 updates: %d, %v", len(cp.NonExistent), err)
	}
	if err := s.Clear(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, "c", "1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after Clear: %v", err)
	}
	for _, conv := range []string{"c:x", "d"} {
		n := 0
		for id, err := range s.List(ctx, conv) {
			if err != nil || id != "1" {
				t.Errorf("list: %q, %v", id, err)
			}
			n++
		}
		if n != 1 {
			t.Errorf("conversation %s has %d checkpoints, want 1", conv, n)
		}
	}
	if err := s.Update(ctx, "c", "1", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("update of nothing: %v", err)
	}
}

// Going back takes the chosen files, and of others the first later mention.
func TestRestore(t *testing.T) {
	v0 := map[string]Original{
		"file:///w/a.txt": {Content: "one\ntwo"}, "file:///w/b.txt": {Content: "b"}, "file:///w/gone.txt": {Content: "g"},
		"file:///w/new.txt": {NewlyCreated: true},
	}
	file := func(name string, lines ...string) File {
		return File{URI: FileURI("/w/" + name), Changes: []Change{{1, 99, lines}}}
	}
	later := []*Checkpoint{
		parse(t, cp1),
		{Files: []File{file("a.txt", "later"), file("b.txt", "first")}},
		{Files: []File{file("b.txt", "second")}, NonExistent: []URI{FileURI("/w/new.txt")}},
		parse(t, cp3),
	}
	got, err := Restore(parse(t, cp2), later, v0)
	if err != nil {
		t.Fatal(err)
	}
	want := &Target{
		Files:   map[string]string{"file:///w/a.txt": "one\ninserted\ntwo\nthree", "file:///w/b.txt": "first"},
		Absent:  []string{"file:///w/gone.txt", "file:///w/new.txt"},
		Folders: []string{"file:///w/d"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if before, after := later[3].InlineDiffs[0].InlineTexts("one\ntwo"); before != "one\ntwo" || after != "ONE\ntwo" {
		t.Errorf("inline: %q, %q", before, after)
	}
	if _, err := Restore(parse(t, cp2), nil, nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("without V0: %v", err)
	}
}

func TestCreate(t *testing.T) {
	originals := map[string]Original{
		"file:///w/a": {Content: "1\r\n2\r\n"}, "file:///w/gone": {Content: "x"}, "file:///w/new": {NewlyCreated: true},
	}
	now := map[string]string{"file:///w/a": "1\r\ntwo\r\n", "file:///w/new": "n\n"}
	read := func(uri string) (string, bool, error) {
		content, ok := now[uri]
		return content, ok, nil
	}
	cp, unsaid, err := Create(Scene{Originals: originals, Read: read})
	if err != nil || len(unsaid) > 0 {
		t.Fatal(unsaid, err)
	}
	target, err := Restore(cp, nil, originals)
	if err != nil || !reflect.DeepEqual(target.Files, now) || !slices.Equal(target.Absent, []string{"file:///w/gone"}) {
		t.Errorf("got %+v, %v", target, err)
	}
	// A file that lines cannot represent does not fail the others.
	now["file:///w/gone"] = "\xff"
	cp, unsaid, err = Create(Scene{Originals: originals, Read: read})
	if err != nil || len(cp.Files) != 2 || !slices.Equal(unsaid, []string{"file:///w/gone"}) {
		t.Errorf("binary: %+v, %q, %v", cp, unsaid, err)
	}
}

// Everything that a checkpoint can say survives being made, stored, collected around and
// restored.
func TestCreateFoldersEditsAndBinaryFiles(t *testing.T) {
	ctx := t.Context()
	blobs := memblob.New()
	rows := memkv.New(blobs)
	originals := map[string]Original{"file:///w/a": {Content: "1\n2"}, "file:///w/bin": {NewlyCreated: true}}
	now := map[string]string{"file:///w/a": "1\n2\n3", "file:///w/bin": "\x00\xff"}
	cp, unsaid, err := Create(Scene{
		Originals: originals,
		Read:      func(uri string) (string, bool, error) { return now[uri], true, nil },
		Keep: func(content string) (blob.ID, error) {
			b := blob.New([]byte(content))
			return b.ID, blobs.Put(ctx, b)
		},
		NewFolders: []string{"file:///w/made"},
		Edits: []Edit{
			{URI: "file:///w/a", Before: "1\n2\n3", After: "1\nzwei\n3", CodeBlock: "cb"},
			{URI: "file:///w/a", Before: "1\n2", After: "0", Generation: "g", Removed: true},
			{URI: "file:///w/sub/draft", After: "new\n", DecorationsOnly: true, NewFile: true, NewFolders: []string{"file:///w/sub"}},
		},
	})
	if err != nil || len(unsaid) > 0 {
		t.Fatal(unsaid, err)
	}
	store := NewStore(rows)
	id, err := store.Add(ctx, "talk", cp)
	if err != nil || id == "" {
		t.Fatal(id, err)
	}
	if cp, err = store.Get(ctx, "talk", id); err != nil {
		t.Fatal(err)
	}
	if len(cp.InlineDiffs) != 2 || len(cp.RemovedDiffs) != 1 || cp.InlineDiffs[0].Generation == "" || !cp.InlineDiffs[1].DecorationsOnly || cp.RemovedDiffs[0].Generation != "g" {
		t.Errorf("edits %+v, removed %+v", cp.InlineDiffs, cp.RemovedDiffs)
	}
	if before, after := cp.InlineDiffs[0].InlineTexts("1\n2"); before != "1\n2\n3" || after != "1\nzwei\n3" {
		t.Errorf("the first edit leads from %q to %q", before, after)
	}
	var roots []blob.ID
	for root, err := range store.Roots(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		roots = append(roots, root.ID)
	}
	want := blob.Sum([]byte("\x00\xff"))
	if !slices.Equal(roots, []blob.ID{want}) {
		t.Errorf("roots %v, want the binary content", roots)
	}
	target, err := Restore(cp, nil, originals)
	if err != nil || target.Blobs["file:///w/bin"] != want || target.Files["file:///w/a"] != "1\n2\n3" || target.Files["file:///w/sub/draft"] != "new\n" ||
		!slices.Equal(target.Made, []string{"file:///w/made", "file:///w/sub"}) || len(target.Diffs) != 2 {
		t.Errorf("the target is %+v, %v", target, err)
	}
	base := grow(t, blobs, map[string]string{"other": "o"})
	tree, _, outside, err := ToTree(ctx, blobs, base, "/w", target)
	if err != nil || len(outside) > 0 {
		t.Fatal(outside, err)
	}
	e, err := workspace.Lookup(ctx, blobs, tree, "bin")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := workspace.ReadFile(ctx, blobs, e); err != nil || string(data) != "\x00\xff" {
		t.Errorf("the binary file is %q, %v", data, err)
	}
	// Seen from an earlier checkpoint, what an edit created later does not exist.
	early := &Checkpoint{}
	target, err = Restore(early, []*Checkpoint{cp}, originals)
	if err != nil || !slices.Contains(target.Absent, "file:///w/sub/draft") {
		t.Errorf("from before: %+v, %v", target, err)
	}
}

// An empty first version has one empty line: an insertion before it keeps it.
func TestAnEmptyFirstVersionHasOneLine(t *testing.T) {
	for want, changes := range map[string][]Change{
		"":     nil,
		"a":    {{1, 2, []string{"a"}}},
		"a\n":  {{1, 1, []string{"a"}}},
		"\na":  {{2, 2, []string{"a"}}},
		"a\nb": {{1, 2, []string{"a", "b"}}},
	} {
		f := &File{NewlyCreated: true, Changes: changes}
		if got := f.Text("ignored"); got != want {
			t.Errorf("%v gives %q, want %q", changes, got, want)
		}
	}
}

// Trees become documents and documents trees again.
func TestTrees(t *testing.T) {
	ctx := t.Context()
	store := memblob.New()
	tree := func(files map[string]string) blob.ID {
		edits := map[string]*workspace.Entry{}
		for name, content := range files {
			e, err := workspace.PutFile(ctx, store, strings.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			e.Mode = 0o644
			edits[name] = &e
		}
		id, err := workspace.Edit(ctx, store, blob.ID{}, edits)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	v0Files := map[string]string{"a": "1\n2\n", "gone": "x\n", "bin": "\x00", "ü b/c": "c\n"}
	v0 := tree(v0Files)
	after := tree(map[string]string{"a": "1\ntwo\n", "bin": "\x00\x01", "new/dir/n": "n", "ü b/c": "d\n"})
	cp, unsaid, err := FromTree(ctx, store, v0, after, "/w")
	if err != nil || !slices.Equal(unsaid, []string{"bin"}) {
		t.Fatalf("unsaid %v, %v", unsaid, err)
	}
	if len(cp.NewFolders) != 2 || len(cp.NonExistent) != 1 || len(cp.Files) != 3 {
		t.Errorf("got %+v", cp)
	}
	originals := map[string]Original{}
	for name, content := range v0Files {
		originals[FileURI("/w/"+name).String()] = Original{Content: content}
	}
	target, err := Restore(cp, nil, originals)
	if err != nil {
		t.Fatal(err)
	}
	target.Files["file:///elsewhere/x"] = "x"
	target.Files["untitled:1"] = "x"
	target.Absent = append(target.Absent, "file:///w/.git/HEAD", "file:///w/../x")
	got, paths, outside, err := ToTree(ctx, store, v0, "/w", target)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := workspace.Diff(ctx, store, got, after)
	if err != nil || len(changes) != 1 || changes[0].Path != "bin" {
		t.Errorf("differs in %+v, %v; want bin only", changes, err)
	}
	if !slices.Equal(paths, []string{"a", "gone", "new", "new/dir", "new/dir/n", "ü b/c"}) {
		t.Errorf("paths %q", paths)
	}
	if len(outside) != 4 {
		t.Errorf("outside %q", outside)
	}
	// And back again: the folders go with what was made in them.
	first, err := Restore(&Checkpoint{}, []*Checkpoint{cp}, originals)
	if err != nil {
		t.Fatal(err)
	}
	back, _, _, err := ToTree(ctx, store, after, "/w", first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := workspace.Lookup(ctx, store, back, "new"); err == nil {
		t.Error("the folders stayed")
	}
}

func FuzzCheckpoint(f *testing.F) {
	for _, doc := range []string{cp0, cp1, cp2, cp3} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cp := new(Checkpoint)
		if json.Unmarshal(data, cp) != nil {
			return
		}
		for i := range cp.Files {
			_ = cp.Files[i].Text("one\ntwo\n")
		}
		out, err := json.Marshal(cp)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, new(Checkpoint)); err != nil {
			t.Fatalf("%s\nwas written as\n%s\nand then: %v", data, out, err)
		}
	})
}

func TestURIsOfWindows(t *testing.T) {
	for path, want := range map[string]string{
		`C:\work dir\a.txt`: "file:///c:/work%20dir/a.txt", "C:/w/a": "file:///c:/w/a", "/w/a": "file:///w/a", "/c:x": "file:///c:x",
	} {
		if got := FileURI(path).String(); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	for uri, want := range map[string]string{
		"file:///c%3A/w/d/a.txt": "d/a.txt", "file:///C:/w/d/a.txt": "d/a.txt", "file:///d:/w/a.txt": "", "file:///w/a.txt": "",
	} {
		if got, ok := relative(`C:\w`, uri); got != want || ok != (want != "") {
			t.Errorf("%s below C:\\w is %q, %v", uri, got, ok)
		}
	}
}
