package jsoncheckpoint

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/workspace"
)

// grow stores a tree. A name that ends in "/" is an empty folder, one in ".sh" is
// executable.
func grow(t *testing.T, store blob.Store, files map[string]string) blob.ID {
	t.Helper()
	edits := map[string]*workspace.Entry{}
	for name, content := range files {
		if dir, ok := strings.CutSuffix(name, "/"); ok {
			edits[dir] = &workspace.Entry{Kind: workspace.Dir, Mode: workspace.NewDirMode}
			continue
		}
		e, err := workspace.PutFile(t.Context(), store, strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		e.Mode = 0o644
		if strings.HasSuffix(name, ".sh") {
			e.Mode = 0o755
		}
		edits[name] = &e
	}
	id, err := workspace.Edit(t.Context(), store, blob.ID{}, edits)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// there describes a tree and brings the description about again. It returns the
// paths at which the two differ, and those that the description left unsaid.
func there(t *testing.T, store blob.Store, v0, after map[string]string) (differ, unsaid []string) {
	t.Helper()
	from, to := grow(t, store, v0), grow(t, store, after)
	cp, unsaid, err := FromTree(t.Context(), store, from, to, "/w")
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(cp)
	if err != nil {
		t.Fatal(err)
	}
	originals := map[string]Original{}
	for name, content := range v0 {
		originals[FileURI("/w/"+name).String()] = Original{Content: content}
	}
	target, err := Restore(parse(t, string(data)), nil, originals)
	if err != nil {
		t.Fatal(err)
	}
	got, _, outside, err := ToTree(t.Context(), store, from, "/w", target)
	if err != nil || len(outside) > 0 {
		t.Fatalf("outside %q, %v", outside, err)
	}
	changes, err := workspace.Diff(t.Context(), store, got, to)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		differ = append(differ, c.Path)
	}
	return differ, unsaid
}

// What a description does not bring about, it names.
func TestFoldersAndModesAreSaidOrNamed(t *testing.T) {
	v0 := map[string]string{"d/x": "x\n", "k": "k\n"}
	tests := map[string]struct {
		v0, after map[string]string
		unsaid    []string
	}{
		"a folder is gone":           {v0, map[string]string{"k": "k\n"}, []string{"d"}},
		"an empty folder is gone":    {map[string]string{"e/": "", "k": "k\n"}, map[string]string{"k": "k\n"}, []string{"e"}},
		"an empty folder":            {v0, map[string]string{"d/x": "x\n", "k": "k\n", "e/": ""}, nil},
		"a file became a folder":     {v0, map[string]string{"d/x": "x\n", "k/z": "z\n"}, nil},
		"a file became an empty one": {v0, map[string]string{"d/x": "x\n", "k/": ""}, nil},
		"a folder became a file":     {v0, map[string]string{"d": "d\n", "k": "k\n"}, []string{"d"}},
		"a new program":              {v0, map[string]string{"d/x": "x\n", "k": "k\n", "run.sh": "#!\n"}, []string{"run.sh"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			differ, unsaid := there(t, memblob.New(), tt.v0, tt.after)
			if !slices.Equal(differ, tt.unsaid) || !slices.Equal(unsaid, tt.unsaid) {
				t.Errorf("differs in %q and names %q, want %q", differ, unsaid, tt.unsaid)
			}
		})
	}
}

// Whatever the trees are, no difference goes without a name.
func TestNothingGoesUnnamed(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	contents := []string{"", "\n", "a", "a\n", "a\nb\n", "a\r\nb\r\n", "a\r\nb\n", "\ufeffa\n", "\xff\n", "\x00", "ü\n\n\n", "a\rb\r"}
	random := func() map[string]string {
		files := map[string]string{}
		for _, dir := range []string{"", "d/", "d/e/", "f/"} {
			for range rnd.IntN(3) {
				files[dir+[]string{"x", "y", "z.sh"}[rnd.IntN(3)]] = contents[rnd.IntN(len(contents))]
			}
			if dir != "" && rnd.IntN(4) == 0 {
				files[dir] = ""
			}
		}
		return files
	}
	for range 500 {
		v0, after := random(), random()
		differ, unsaid := there(t, memblob.New(), v0, after)
		for _, p := range differ {
			if !slices.Contains(unsaid, p) {
				t.Fatalf("from %q to %q: %s differs and only %q are named", v0, after, p, unsaid)
			}
		}
	}
}

// What stands where the target has or had something else is not the target's to
// remove.
func TestNothingElseIsRemoved(t *testing.T) {
	store := memblob.New()
	base := grow(t, store, map[string]string{"mine/a": "a\n", "note": "n\n"})
	for name, target := range map[string]*Target{
		"a folder where a file was absent":  {Absent: []string{"file:///w/mine"}},
		"a folder where a file was":         {Files: map[string]string{"file:///w/mine": "x"}},
		"a file where a folder was":         {Files: map[string]string{"file:///w/note/x": "x"}},
		"a file where a folder was made":    {Made: []string{"file:///w/note"}},
		"a file where a folder is to go":    {Folders: []string{"file:///w/note"}},
		"a folder that holds something":     {Folders: []string{"file:///w/mine"}},
		"a folder that was made and exists": {Made: []string{"file:///w/mine"}},
	} {
		tree, paths, _, err := ToTree(t.Context(), store, base, "/w", target)
		if err != nil || tree != base || len(paths) > 0 {
			t.Errorf("%s: %q changed, %v", name, paths, err)
		}
	}
}

// Programs escape URIs in different ways, and mean the same file.
func TestSpellingsOfOneFile(t *testing.T) {
	doc := func(uri, line string) string {
		return fmt.Sprintf(`{"files": [{"uri": %s, "originalModelDiffWrtV0": [{"original": {"startLineNumber": 1, "endLineNumberExclusive": 2}, "modified": [%q]}]}]}`, uri, line)
	}
	chosen := parse(t, doc(`{"$mid": 1, "path": "/w/a+b (1).ts", "scheme": "file"}`, "chosen"))
	later := parse(t, doc(`"file:///w/a%2Bb%20%281%29.ts"`, "later"))
	later.NonExistent = []URI{FileURI("/w/a+b (1).ts")}
	target, err := Restore(chosen, []*Checkpoint{later}, map[string]Original{"file:///w/a%2Bb%20%281%29.ts": {Content: "v0"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(target.Files) != 1 || target.Files[chosen.Files[0].URI.String()] != "chosen" || len(target.Absent) != 0 {
		t.Errorf("got %+v", target)
	}
}

// Editors count one line in an empty text, and walk it as any other.
func TestEditorsReadWhatIsWrittenForAnEmptyV0(t *testing.T) {
	for _, content := range []string{"n", "n\n", "\n", "a\nb"} {
		changes, ok := changesTo("", content)
		if got := strings.Join(Apply([]string{""}, changes), "\n"); !ok || got != content {
			t.Errorf("%q is read as %q from %+v", content, got, changes)
		}
	}
}
