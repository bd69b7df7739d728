package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/stet-dev/stet/checkpoint"
)

// pickerLines is how many checkpoints the picker shows at once.
const pickerLines = 15

// pick lets the user choose a checkpoint with the arrow keys. Without a terminal it
// fails because a reference is needed.
func (a *app) pick(ctx context.Context, p *place) (string, error) {
	in, ok := a.in.(*os.File)
	if !ok || a.json || !isTerminal(a.in) || !isTerminal(a.err) {
		return "", usage(fmt.Errorf("%w; 'stet log' lists the checkpoints", errNoRef))
	}
	conv, err := a.known(ctx, p)
	if err != nil {
		return "", err
	}
	history, err := p.history(ctx, conv)
	if err != nil {
		return "", err
	}
	shown := history.Shown()
	if len(shown) == 0 {
		return "", fmt.Errorf("%w: the workspace has none yet", checkpoint.ErrNotFound)
	}
	plain := *a
	plain.noColor = true // lines are cut to the width, which colours would break
	rows, err := plain.logRows(ctx, history, shown)
	if err != nil {
		return "", err
	}
	lines := make([]string, len(rows)) // one for each entry
	for i, row := range rows {
		lines[i] = row.line
	}
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(in.Fd()), state)
	chosen, err := a.runPicker(ctx, in, lines)
	if err != nil {
		return "", err
	}
	return shown[chosen].Record.ID, nil
}

// runPicker draws the list and follows the keys until one line is chosen.
func (a *app) runPicker(ctx context.Context, in *os.File, lines []string) (int, error) {
	width, rows := terminalSize(a.err)
	height := max(1, min(pickerLines, len(lines), rows-2)) // beside the question and the cursor
	at, top := 0, 0
	fmt.Fprintf(a.err, "%s\r\n", cut("Rewind to which? (arrows, Enter; q to quit)", width-1))
	for {
		top = max(min(top, at), at-height+1)
		for i := top; i < top+height; i++ {
			// A line that wraps would shift the list.
			line := cut("  "+lines[i], width-1)
			if i == at {
				line = a.paint().bold(cut("> "+lines[i], width-1))
			}
			fmt.Fprintf(a.err, "\x1b[2K%s\r\n", line)
		}
		key, err := readKey(ctx, in)
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
	"\x1b[5~": "pageup", "\x1b[6~": "pagedown", "\x1b[H": "home", "\x1b[F": "end", "\x1b[1~": "home", "\x1b[4~": "end",
	"g": "home", "G": "end",
}

// escapeTime is how long the rest of a key that begins with an escape may take.
const escapeTime = 100 * time.Millisecond

// readKey reads one key. Escape sends only the first byte of an arrow key.
func readKey(ctx context.Context, in *os.File) (string, error) {
	key := ""
	for limit := time.Duration(0); ; limit = escapeTime {
		if ready, err := waitInput(ctx, in, limit); err != nil || !ready {
			return keyNames[key], err
		}
		var buf [1]byte
		if n, err := in.Read(buf[:]); err != nil || n == 0 {
			return "quit", nil // the terminal is gone
		}
		if key += string(buf[:]); !unfinished(key) {
			return keyNames[key], nil
		}
	}
}

// unfinished reports whether more bytes belong to a key.
func unfinished(key string) bool {
	last := key[len(key)-1]
	switch {
	case key == "\x1b", key == "\x1bO", key == "\x1b[":
		return true
	case strings.HasPrefix(key, "\x1b["):
		return (last < 0x40 || last > 0x7e) && len(key) < 16
	}
	return false
}

// waitInput waits until a terminal has input, at most up to a limit. A blocked read
// would not notice the end of the context.
func waitInput(ctx context.Context, in *os.File, limit time.Duration) (bool, error) {
	const step = 50 * time.Millisecond
	for waited := time.Duration(0); limit == 0 || waited < limit; waited += step {
		if ctx.Err() != nil {
			return false, errInterrupted
		}
		if ready, err := inputReady(in, step); ready || err != nil {
			return ready, err
		}
	}
	return false, nil
}
