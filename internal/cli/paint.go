package cli

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// paint colours text, or leaves it as it is where nobody wants colour.
type paint bool

func (a *app) paint() paint { return paint(a.colorful()) }

func (p paint) with(code, text string) string {
	if !p || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p paint) bold(s string) string   { return p.with("1", s) }
func (p paint) dim(s string) string    { return p.with("2", s) }
func (p paint) red(s string) string    { return p.with("31", s) }
func (p paint) green(s string) string  { return p.with("32", s) }
func (p paint) yellow(s string) string { return p.with("33", s) }
func (p paint) cyan(s string) string   { return p.with("36", s) }

// pad fills text with spaces up to a width, counted in characters.
func pad(text string, width int) string {
	if n := utf8.RuneCountInString(text); n < width {
		return text + strings.Repeat(" ", width-n)
	}
	return text
}

// padLeft is pad with the spaces in front.
func padLeft(text string, width int) string {
	if n := utf8.RuneCountInString(text); n < width {
		return strings.Repeat(" ", width-n) + text
	}
	return text
}

// clip makes text one line of at most width characters.
func clip(text string, width int) string {
	text = printable(strings.Join(strings.Fields(text), " "))
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	runes := []rune(text)
	return strings.TrimRight(string(runes[:max(width-1, 0)]), " ") + "…"
}

// printable replaces what could move the cursor or change the colours of a
// terminal: titles, paths and labels come from agents and files.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '�'
		}
		return r
	}, text)
}

// width returns the number of columns of the terminal, or a good one for files.
func (a *app) width() int {
	if f, ok := a.out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w >= 40 {
			return w
		}
	}
	return 100
}

// when writes a time for people: the time of day today, the date before.
func when(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch {
	case t.IsZero() || t.UnixMilli() == 0:
		return "-"
	case t.YearDay() == now.YearDay() && t.Year() == now.Year():
		return t.Format("15:04")
	case t.Year() == now.Year():
		return t.Format("Jan 02 15:04")
	}
	return t.Format("2006-01-02")
}

// stamp writes a time for machines.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// tilde shortens a path in the home directory.
func tilde(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "/" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, home); ok && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return path
}

// few lists up to most names and says how many more there are.
func few(names []string, most int) string {
	shown := names
	if len(names) > most {
		shown = names[:most]
	}
	clean := make([]string, len(shown))
	for i, name := range shown {
		clean[i] = printable(name)
	}
	text := strings.Join(clean, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// now is the clock of everything that is only shown.
func now() time.Time { return time.Now() }

// warn tells people something that they must not miss, also with -q.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.err, "stet: "+format+"\n", args...)
}
