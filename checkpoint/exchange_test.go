package checkpoint

import (
	"testing"

	"github.com/stet-dev/stet/checkpoint/jsoncheckpoint"
	"github.com/stet-dev/stet/internal/testenv"
)

// A JSON checkpoint is brought about like any other: planned, with the user's
// files kept, and undoable.
func TestJSONCheckpoint(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1\n2\n", "b", "b\n", "other", "o\n")
	f.save(Request{})
	originals := map[string]jsoncheckpoint.Original{
		jsoncheckpoint.FileURI(f.dir + "/a").String():        {Content: "1\n2\n"},
		jsoncheckpoint.FileURI(f.dir + "/b").String():        {Content: "b\n"},
		jsoncheckpoint.FileURI(f.dir + "/new/made").String(): {NewlyCreated: true},
	}
	first := &jsoncheckpoint.Checkpoint{Files: []jsoncheckpoint.File{{URI: jsoncheckpoint.FileURI(f.dir + "/a")}}}
	later := &jsoncheckpoint.Checkpoint{
		Files: []jsoncheckpoint.File{
			{URI: jsoncheckpoint.FileURI(f.dir + "/b")},
			{URI: jsoncheckpoint.FileURI(f.dir + "/new/made"), NewlyCreated: true},
		},
		NewFolders: []jsoncheckpoint.URI{jsoncheckpoint.FileURI(f.dir + "/new")},
	}
	f.write("a", "1\ntwo\n", "b", "agent\n", "new/made", "made\n")
	last := f.save(Request{})
	f.write("b", "user\n", "other", "user\n")
	present := testenv.Snapshot(t, f.dir)

	target, err := jsoncheckpoint.Restore(first, []*jsoncheckpoint.Checkpoint{later}, originals)
	must(t, err)
	tree, paths, outside, err := jsoncheckpoint.ToTree(t.Context(), f.blobs, last.Tree, f.dir, target)
	if err != nil || len(outside) > 0 {
		t.Fatal(outside, err)
	}
	req := RewindRequest{Conversation: "c", Exchange: &Exchange{To: tree, Last: last.Tree, Paths: paths}}
	p := f.plan(req)
	same(t, "plan", lines(p), []string{"restore a", "conflict b", "delete new", "delete new/made"})
	if _, err := f.w.Rewind(t.Context(), p.Request(), p.Token); err != nil {
		t.Fatal(err)
	}
	if f.read("a") != "1\n2\n" || f.read("b") != "user\n" || f.read("other") != "user\n" {
		t.Error("files are not as planned")
	}
	must(t, undo(f))
	f.expect(present)
}
