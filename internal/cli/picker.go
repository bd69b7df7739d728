package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/stet-dev/stet/checkpoint"
)

// pickerLines is how many checkpoints the picker shows at once.
const pickerLines = 15

// pick lets the user choose a checkpoint with the arrow keys. Where nobody can be
// asked, it says that a reference is needed.
func (a *app) pick(ctx context.Context, p *place) (string, error) {
	in, ok := a.in.(*os.File)
	if !ok || a.json || !isTerminal(a.in) || !isTerminal(a.err) {
		return "", usage(fmt.Errorf("%w; see 'stet log' for what there is", errNoRef))
	}
	entries, err := p.history(ctx)
	if err != nil {
		return "", err
	}
	conv, err := a.named(ctx, p.db)
	if err != nil {
		return "", err
	}
	shown := visible(entries, conv, 0, false)
	if len(shown) == 0 {
		return "", fmt.Errorf("%w: the workspace has none yet", checkpoint.ErrNotFound)
	}
	plain := *a
	plain.noColor = true // lines are cut to the width, and colours have none
	lines, err := plain.logLines(ctx, p, shown)
	if err != nil {
		return "", err
	}
	for i := range lines {
		lines[i] = cut(lines[i], a.width()-3)
	}
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(in.Fd()), state)
	chosen, err := a.runPicker(in, lines)
	if err != nil {
		return "", err
	}
	return shown[chosen].rec.ID, nil
}

// runPicker draws the list and follows the keys until one line is chosen.
func (a *app) runPicker(in *os.File, lines []string) (int, error) {
	at, top := 0, 0
	fmt.Fprint(a.err, "Rewind to which? (arrows, Enter; q to leave)\r\n")
	for {
		height := min(pickerLines, len(lines))
		top = max(min(top, at), at-height+1)
		for i := top; i < top+height; i++ {
			line := "  " + lines[i]
			if i == at {
				line = a.paint().bold("> " + lines[i])
			}
			fmt.Fprintf(a.err, "\x1b[2K%s\r\n", line)
		}
		key, err := readKey(in)
		switch {
		case err != nil:
			return 0, err
		case key == "quit":
			return 0, coded(ExitInterrupted, "nothing was changed")
		case key == "enter":
			return at, nil
		}
		at = moved(key, at, height, len(lines))
		fmt.Fprintf(a.err, "\x1b[%dA", height)
	}
}

func moved(key string, at, height, n int) int {
	switch key {
	case "up":
		at--
	case "down":
		at++
	case "pageup":
		at -= height
	case "pagedown":
		at += height
	case "home":
		at = 0
	case "end":
		at = n - 1
	}
	return max(0, min(at, n-1))
}

var keyNames = map[string]string{
	"\r": "enter", "\n": "enter", "q": "quit", "\x03": "quit", "\x04": "quit", "\x1b": "quit",
	"k": "up", "j": "down", "\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down",
	"\x1b[5~": "pageup", "\x1b[6~": "pagedown", "\x1b[H": "home", "\x1b[F": "end", "g": "home", "G": "end",
}

// readKey reads one key. A terminal sends the bytes of an arrow key at once.
func readKey(in *os.File) (string, error) {
	var buf [8]byte
	n, err := in.Read(buf[:1])
	if err != nil || n == 0 {
		return "quit", nil // the terminal is gone
	}
	key := string(buf[:1])
	if key != "\x1b" {
		return keyNames[key], nil
	}
	n, err = in.Read(buf[1:3])
	if err != nil || n == 0 {
		return "quit", nil
	}
	key = string(buf[:1+n])
	if strings.HasPrefix(key, "\x1b[") && n == 2 && key[2] >= '0' && key[2] <= '9' {
		if _, err := in.Read(buf[3:4]); err != nil {
			return "quit", nil
		}
		key = string(buf[:4])
	}
	return keyNames[key], nil
}

// cut shortens a line to a width. A longer one would take two rows of the
// terminal, and the list would be drawn in the wrong place.
func cut(line string, width int) string {
	if runes := []rune(line); len(runes) > width {
		return string(runes[:max(width-1, 0)]) + "…"
	}
	return line
}
