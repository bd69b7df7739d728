package server_test

import (
	"fmt"
	"strings"
	"testing"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// The page shows a tree: each directory says how many files are below it, however many
// there are.
func TestFilesAreCountedByDirectory(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"a/one.go", "a/deep/two.go", "a/deep/er/three.txt", "b/four.go", "five.go"} {
		b.write(name, "12345\n")
	}
	ref := b.take(&stetv1.CreateCheckpointRequest{Label: "many"}).GetId()
	list := func(m *stetv1.CheckpointFilesRequest) string {
		m.Ref, m.Workspace = ref, b.dir
		res := call(t, b.checkpoints.Files, m)
		var out []string
		for _, f := range res.GetFiles() {
			text := f.GetPath()
			if f.GetKind() == "dir" || f.GetKind() == "directory" {
				text += fmt.Sprintf("(%d)", f.GetFiles())
			}
			out = append(out, text)
		}
		return fmt.Sprintf("%s of %d, %d bytes", strings.Join(out, " "), res.GetTotal(), res.GetTotalBytes())
	}
	if got, want := list(&stetv1.CheckpointFilesRequest{Path: "a", Shallow: true}), "a/deep(2) a/one.go of 3, 18 bytes"; got != want {
		t.Errorf("in a: %s, want %s", got, want)
	}
	if got := list(&stetv1.CheckpointFilesRequest{Shallow: true}); !strings.HasPrefix(got, "a(3) b(1) cart.go five.go") {
		t.Errorf("at the top: %s", got)
	}
	if got, want := list(&stetv1.CheckpointFilesRequest{Contains: "THREE"}), "a/deep/er/three.txt of 1, 6 bytes"; got != want {
		t.Errorf("with three: %s, want %s", got, want)
	}
	if got, want := list(&stetv1.CheckpointFilesRequest{Path: "a", Contains: "deep/"}), "a/deep/er/three.txt a/deep/two.go of 2, 12 bytes"; got != want {
		t.Errorf("below deep: %s, want %s", got, want)
	}
}
