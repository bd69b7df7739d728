package cli

import (
	"fmt"
	"math"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// paint colours text, or leaves it unchanged without colour.
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

// columns returns the width of text on a terminal: East Asian characters and most
// emoji take two columns, combining marks none.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// pad fills text with spaces up to a number of columns.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-columns(text)))
}

// padLeft is pad with the spaces in front.
func padLeft(text string, width int) string {
	return strings.Repeat(" ", max(0, width-columns(text))) + text
}

// clip makes text one line of at most width columns.
func clip(text string, width int) string {
	return cut(printable(strings.Join(strings.Fields(text), " ")), width)
}

// cut shortens a line to a number of columns.
func cut(line string, width int) string {
	if columns(line) <= width {
		return line
	}
	room := width - 1 // one is for the dots
	if room < 0 {
		return ""
	}
	for i, r := range line {
		if room -= runeColumns(r); room < 0 {
			return strings.TrimRight(line[:i], " ") + "…"
		}
	}
	return line
}

// cutFront shortens a line to a number of columns and keeps its end, which says most about
// a path.
func cutFront(line string, width int) string {
	room := columns(line) - width
	if room <= 0 {
		return line
	}
	for i, r := range line {
		if room < 0 {
			return "…" + line[i:]
		}
		room -= runeColumns(r)
	}
	return "…"
}

// printable replaces characters that could move the cursor or change the colours of a
// terminal: titles, paths and labels come from agents and files.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '�'
		}
		return r
	}, text)
}

// printableLines is printable for messages of several lines. Messages quote file
// names and foreign text, which must not control the terminal.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable(strings.ReplaceAll(lines[i], "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// width returns the number of columns of the terminal, or a default for files.
func (a *app) width() int {
	if w, _ := terminalSize(a.out); w > 0 {
		return w
	}
	return 100
}

// room returns how many columns a line of a table may have: those of the terminal. A file
// or a program that reads the line has no edge.
func (a *app) room() int {
	if isTerminal(a.out) {
		return a.width()
	}
	return math.MaxInt
}

// terminalSize returns the columns and rows of a terminal, or 0 for anything else.
func terminalSize(stream any) (width, height int) {
	f, ok := terminalOf(stream).(*os.File)
	if !ok {
		return 0, 0
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}

// when formats a time for people: the time of day for today, else the date.
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

// stamp formats a time for machines.
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

// few lists up to most names and the number of further ones.
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

// now is the clock for display.
func now() time.Time { return time.Now() }

// warn prints an important message, even with -q.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.err, "stet: %s\n", printableLines(fmt.Sprintf(format, args...)))
}
