package blame_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/checkpoint"
)

// left writes what is left of a turn, such as "a 3/2 you:1".
func (f *fixture) left(rec *checkpoint.Record) string {
	f.t.Helper()
	left, err := f.Left(f.t.Context(), rec, f.now())
	f.must(err)
	var out []string
	for _, file := range left.Files {
		text := fmt.Sprintf("%s %d/%d", file.Path, file.Written, file.Left)
		if file.Now != file.Path {
			text += " now " + file.Now
		}
		for _, c := range file.Changed {
			who := string(c.Origin.Kind)
			switch {
			case c.Rewound:
				who = "rewind"
			case c.Origin.Writer.Turn > 0:
				who = fmt.Sprintf("%s/%d", c.Origin.Writer.Conversation, c.Origin.Writer.Turn)
			}
			text += fmt.Sprintf(" %s:%d", who, c.Lines)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func TestWhatIsLeftOfATurn(t *testing.T) {
	f := newFixture(t)
	want := func(rec *checkpoint.Record, want string) {
		t.Helper()
		if got := f.left(rec); got != want {
			t.Errorf("left of turn %d: %q, want %q", rec.Turn, got, want)
		}
	}
	f.write("a", "1\n2\n3\n")
	f.save(checkpoint.Request{Conversation: "c", Turn: 1, Side: checkpoint.Before})
	f.write("a", "1\nx\ny\nz\nw\n3\n")
	f.write("b", "1\n2\n3\n4\n")
	one := f.save(checkpoint.Request{Conversation: "c", Turn: 1, Side: checkpoint.After})
	want(one, "a 4/4, b 4/4")

	f.write("a", "1\nx\nY\nz\nw\n3\n") // by the user
	two := f.turn("c", 2, "a", "1\nx\nY\nw\n3\nnew\n")
	want(one, "a 4/2 you:1 c/2:1, b 4/4")
	want(two, "a 1/1")

	f.must(os.Rename(filepath.Join(f.w.Path(), "b"), filepath.Join(f.w.Path(), "moved")))
	f.save(checkpoint.Request{})
	want(one, "a 4/2 you:1 c/2:1, b 4/4 now moved")

	_, err := f.w.Rewind(t.Context(), checkpoint.RewindRequest{To: one.ID, Exact: true, Scope: checkpoint.FilesOnly}, "")
	f.must(err)
	want(one, "a 4/4, b 4/4")
	want(two, "a 1/0 rewind:1")
	_, err = f.w.Undo(t.Context(), nil)
	f.must(err)
	want(two, "a 1/1")

	f.must(os.Remove(filepath.Join(f.w.Path(), "a")))
	want(two, "a 1/0 now  you:1") // not saved yet
}
