package transcript

import (
	"fmt"
	"strings"

	"znkr.io/diff"
	"znkr.io/diff/textdiff"
)

// Texts up to maxDiff bytes are compared; above fastDiff the diff may be longer than
// necessary.
const (
	maxDiff  = 8 << 20
	fastDiff = 128 << 10
)

// Diff returns the change of a file in unified form, with the numbers of added and
// removed lines. A nil text means that there is no file.
func Diff(path string, before, after *string) (unified string, added, removed int) {
	x, y := deref(before), deref(after)
	if x == y && (before == nil) == (after == nil) {
		return "", 0, 0
	}
	head := "--- " + diffName("a/", path, before) + "\n+++ " + diffName("b/", path, after) + "\n"
	if len(x) > maxDiff || len(y) > maxDiff || strings.IndexByte(x, 0) >= 0 || strings.IndexByte(y, 0) >= 0 {
		return fmt.Sprintf("%sBinary or large file: %d bytes became %d\n", head, len(x), len(y)), 0, 0
	}
	opts := []textdiff.Option{textdiff.IndentHeuristic()}
	if len(x)+len(y) > fastDiff {
		opts = []textdiff.Option{diff.Fast()}
	}
	body := textdiff.Unified(x, y, opts...)
	added, removed = countChanges(body)
	return head + body, added, removed
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// diffName escapes a file's name so that it stays on one line. An absolute path has no
// second slash behind the prefix, as in git.
func diffName(prefix, path string, text *string) string {
	if text == nil {
		return "/dev/null"
	}
	return prefix + oneLine(strings.TrimPrefix(path, "/"))
}

// countChanges counts the changed lines of hunks, without the two lines that name the
// files.
func countChanges(unified string) (added, removed int) {
	for line := range strings.Lines(unified) {
		switch line[0] {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return added, removed
}

// countForeign counts the changed lines of a diff from elsewhere, with or without
// headers.
func countForeign(unified string) (added, removed int) {
	for line := range strings.Lines(unified) {
		if strings.HasPrefix(line, "+++ ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		a, r := countChanges(line)
		added, removed = added+a, removed+r
	}
	return added, removed
}
