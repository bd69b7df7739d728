package linediff_test

import (
	"fmt"
	"strings"
	"testing"

	"znkr.io/diff/textdiff"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/workspace"
)

// entry stores a content and returns an entry of it, or none for "".
func entry(t *testing.T, blobs blob.Store, kind workspace.Kind, content string) *workspace.Entry {
	t.Helper()
	if content == "" {
		return nil
	}
	b := blob.New([]byte(content))
	if err := blobs.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return &workspace.Entry{Name: "f", Kind: kind, Mode: 0o644, Size: int64(len(content)), ID: b.ID}
}

func compare(t *testing.T, before, after string) *linediff.File {
	t.Helper()
	blobs := memblob.New()
	f, err := linediff.Compare(t.Context(), blobs, workspace.Change{
		Path: "f", Before: entry(t, blobs, workspace.File, before), After: entry(t, blobs, workspace.File, after),
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCompare(t *testing.T) {
	many := strings.Repeat("line\n", 40_000) // compared in a hurry
	for _, c := range []struct {
		before, after  string
		added, removed int
	}{
		{"a\nb\nc\n", "a\nB\nB2\nc\n", 2, 1},
		{"", "new\n", 1, 0},
		{"old\n", "", 0, 1},
		{"no newline", "no newline\n", 1, 1},
		{"a\n", "a\nend", 1, 0},
		{many, many + "more\n", 1, 0},
	} {
		f := compare(t, c.before, c.after)
		if f.Added != c.added || f.Removed != c.removed || f.Binary || f.TooLarge {
			t.Errorf("%.20q to %.20q: +%d -%d, want +%d -%d", c.before, c.after, f.Added, f.Removed, c.added, c.removed)
		}
		if got, want := f.Unified(), textdiff.Unified(c.before, c.after, textdiff.IndentHeuristic()); got != want {
			t.Errorf("%.20q to %.20q: got\n%swant\n%s", c.before, c.after, got, want)
		}
	}
}

func TestWhatIsNotCompared(t *testing.T) {
	if f := compare(t, "text\n", "\x00\x01"); !f.Binary || f.Hunks != nil || f.Unified() != "" {
		t.Errorf("binary: %+v", f)
	}
	if f := compare(t, "x", strings.Repeat("x", linediff.MaxFile+1)); !f.TooLarge || f.Binary || f.Hunks != nil {
		t.Errorf("large: %+v", f)
	}
	blobs := memblob.New()
	e := entry(t, blobs, workspace.File, "same\n")
	executable := *e
	executable.Mode, executable.ID = 0o755, blob.ID{1} // not there: nothing is read
	before := executable
	before.Mode = 0o644
	f, err := linediff.Compare(t.Context(), blobs, workspace.Change{Path: "f", Before: &before, After: &executable})
	if err != nil || f.Hunks != nil || f.ModeChange() != "0644 to 0755" || f.Kind() != workspace.File {
		t.Errorf("mode: %+v, %v", f, err)
	}
	link := before
	link.Kind, link.Mode = workspace.Symlink, 0
	if f := (&linediff.File{Change: workspace.Change{Path: "f", Before: &before, After: &link}}); !f.Became() || f.ModeChange() != "" {
		t.Errorf("a link in place of a file: %v, mode %q", f.Became(), f.ModeChange())
	}
	if _, err := linediff.Compare(t.Context(), blobs, workspace.Change{Path: "f", Before: e, After: &executable}); !strings.Contains(fmt.Sprint(err), `compare "f"`) {
		t.Errorf("a missing content: %v", err)
	}
}

func TestALinkIsOneLine(t *testing.T) {
	blobs := memblob.New()
	c := workspace.Change{Path: "l", Before: entry(t, blobs, workspace.Symlink, "old"), After: entry(t, blobs, workspace.Symlink, "new")}
	f, err := linediff.Compare(t.Context(), blobs, c)
	if err != nil || f.Unified() != "@@ -1 +1 @@\n-old\n+new\n" {
		t.Errorf("got %q, %v", f.Unified(), err)
	}
}

func TestFilesOfAChange(t *testing.T) {
	file, dir := &workspace.Entry{Kind: workspace.File}, &workspace.Entry{Kind: workspace.Dir}
	changes := []workspace.Change{
		{Path: "a", After: dir}, {Path: "a/b", After: file}, {Path: "ab", Before: file}, {Path: "c", Before: dir, After: file}, {Path: "d", Before: dir},
	}
	for paths, want := range map[string]string{"": "a/b ab c", ".": "a/b ab c", "a": "a/b", "c d": "c"} {
		var got []string
		for _, c := range linediff.Files(changes, strings.Fields(paths)) {
			got = append(got, c.Path)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %v, want %s", paths, got, want)
		}
	}
}

func TestShownPartOfAFile(t *testing.T) {
	file := &linediff.File{Old: []byte("1\n2\n3\n4\n"), New: []byte("1\nX\n3\n4")}
	for _, c := range []struct {
		lines         []linediff.Line
		before, after string
	}{
		{nil, "", ""},
		{[]linediff.Line{{Op: linediff.Same, From: 0, To: 0}, {Op: linediff.Insert, From: -1, To: 1}}, "", "1\nX\n"},
		{[]linediff.Line{{Op: linediff.Delete, From: 1, To: -1}}, "1\n2\n", ""},
		{[]linediff.Line{{Op: linediff.Delete, From: 3, To: -1}, {Op: linediff.Insert, From: -1, To: 3}}, "1\n2\n3\n4\n", "1\nX\n3\n4"},
	} {
		file.Hunks = []linediff.Hunk{{Lines: c.lines}}
		if before, after := file.Shown(); string(before) != c.before || string(after) != c.after {
			t.Errorf("%v: %q and %q, want %q and %q", c.lines, before, after, c.before, c.after)
		}
	}
}
