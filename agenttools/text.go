package agenttools

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stet-dev/stet/transcript"
)

// Limits of answers. An agent pays for every character.
const (
	maxAnswer = 16 << 10 // bytes of an answer
	maxText   = 1500     // bytes of one message in it
	maxPaths  = 20       // paths in one list
	maxTitle  = 80
)

// answer is the text of an answer.
type answer struct{ strings.Builder }

func (a *answer) line(format string, args ...any) { fmt.Fprintf(a, format+"\n", args...) }

// full reports whether the answer has no room for n more bytes.
func (a *answer) full(n int) bool { return a.Len()+n > maxAnswer }

// clip makes text one line of at most n bytes.
func clip(text string, n int) string {
	return cut(transcript.Visible(strings.Join(strings.Fields(text), " ")), n)
}

// cut shortens text to at most n bytes, between characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.TrimRight(text[:n], " ") + "…"
}

func code(text string) string { return transcript.CodeSpan(text) }

// when is a time that cannot be misread on another day.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04")
}

// few lists paths and the number of further ones.
func few(paths []string, most int) string {
	var parts []string
	for _, path := range paths[:min(most, len(paths))] {
		parts = append(parts, code(path))
	}
	text := strings.Join(parts, ", ")
	if more := len(paths) - len(parts); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// lines returns how many lines changed, "" if none did.
func lines(added, removed uint64) string {
	if added+removed == 0 {
		return ""
	}
	return fmt.Sprintf("+%d -%d", added, removed)
}

// limit returns how many of something to show: the given number, or else usual.
func limit(given, usual, most int) (int, error) {
	switch {
	case given == 0:
		return usual, nil
	case given < 0 || given > most:
		return 0, refused("limit must be from 1 to %d, not %d", most, given)
	}
	return given, nil
}

// inside converts paths to those of the workspace: relative ones are relative to it, and
// absolute ones must be below it.
func (p *Place) inside(paths []string) ([]string, error) {
	var out []string
	for _, path := range paths {
		if path == "" {
			return nil, refused("an empty path names nothing; omit the paths for the whole workspace")
		}
		rel := filepath.Clean(path)
		if filepath.IsAbs(path) {
			var err error
			if rel, err = filepath.Rel(p.Space.Path(), resolved(path)); err != nil {
				return nil, refused("%s is outside the workspace %s", code(path), code(p.Space.Path()))
			}
		}
		if rel == ".." || strings.HasPrefix(rel, "../") {
			return nil, refused("%s is outside the workspace %s", code(path), code(p.Space.Path()))
		}
		out = append(out, filepath.ToSlash(rel))
	}
	return out, nil
}

// resolved resolves links in the directory of a path, which need not exist.
func resolved(path string) string {
	dir, base := filepath.Split(filepath.Clean(path))
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return filepath.Join(real, base)
	}
	return filepath.Clean(path)
}
