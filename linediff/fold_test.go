package linediff_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stet-dev/stet/linediff"
)

func folded(files []linediff.Stat, most int) []string {
	var out []string
	for _, f := range linediff.Fold(files, most) {
		out = append(out, fmt.Sprintf("%s %d %s +%d -%d %s", f.Path, f.Files, f.Op, f.Added, f.Removed, f.Note))
	}
	return out
}

func TestFold(t *testing.T) {
	var files []linediff.Stat
	for i := range 30 {
		files = append(files, linediff.Stat{Path: fmt.Sprintf("gen/d%d/f%02d", i%3, i), Op: "add", Added: 2, Note: "turn 1"})
	}
	files = append(files,
		linediff.Stat{Path: "gen/index", Op: "modify", Added: 1, Removed: 1}, linediff.Stat{Path: "gen/list", Op: "modify"},
		linediff.Stat{Path: "a/b/c/one", Op: "remove", Removed: 5}, linediff.Stat{Path: "top", Op: "add"})
	for most, want := range map[int][]string{
		3:  {"a/b/c/one 1 remove +0 -5 ", "gen/ 32  +61 -1 ", "top 1 add +0 -0 "},
		6:  {"a/b/c/one 1 remove +0 -5 ", "gen/* 2 modify +1 -1 ", "gen/d0/ 10 add +20 -0 turn 1", "gen/d1/ 10 add +20 -0 turn 1", "gen/d2/ 10 add +20 -0 turn 1", "top 1 add +0 -0 "},
		7:  {"a/b/c/one 1 remove +0 -5 ", "gen/d0/ 10 add +20 -0 turn 1", "gen/d1/ 10 add +20 -0 turn 1", "gen/d2/ 10 add +20 -0 turn 1", "gen/index 1 modify +1 -1 ", "gen/list 1 modify +0 -0 ", "top 1 add +0 -0 "},
		34: nil, // each file
	} {
		got := folded(files, most)
		if most == 34 {
			if len(got) != 34 || got[0] != "gen/d0/f00 1 add +2 -0 turn 1" {
				t.Errorf("unfolded: %q", got)
			}
			continue
		}
		if !slices.Equal(got, want) {
			t.Errorf("at most %d: got %q, want %q", most, got, want)
		}
	}
}

// What cannot be shorter is as short as it can be, and a single file has its own name.
func TestFoldOfOneDirectory(t *testing.T) {
	var files []linediff.Stat
	for i := range 50 {
		files = append(files, linediff.Stat{Path: fmt.Sprintf("deep/er/f%d", i), Op: "add"})
	}
	if got := folded(files, 10); !slices.Equal(got, []string{"deep/er/ 50 add +0 -0 "}) {
		t.Errorf("one directory: %q", got)
	}
	for i := range files {
		files[i].Path = fmt.Sprintf("f%d", i)
	}
	if got := folded(files, 10); !slices.Equal(got, []string{"* 50 add +0 -0 "}) {
		t.Errorf("the root: %q", got)
	}
}
