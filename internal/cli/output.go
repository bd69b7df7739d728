package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// print writes the answer of a verb: the value as JSON, or the text.
func (a *app) print(value any, text string) error {
	if a.json {
		return a.printJSON(value)
	}
	_, err := io.WriteString(a.out, text)
	return err
}

// printJSON writes one value on one line.
func (a *app) printJSON(value any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}

// say prints a message, unless -q or --json is set.
func (a *app) say(format string, args ...any) {
	if !a.quiet && !a.json {
		fmt.Fprintln(a.err, printableLines(fmt.Sprintf(format, args...)))
	}
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := terminalOf(stream).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colorful reports whether stdout may be coloured.
func (a *app) colorful() bool {
	return !a.noColor && os.Getenv("NO_COLOR") == "" && !a.json && isTerminal(a.out)
}

// confirm asks a question and takes the default on an empty answer. Without a
// terminal it fails with the exit code for that.
func (a *app) confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if !isTerminal(a.in) || a.json {
		return coded(ExitUsage, "%s: not confirmed; pass -y to proceed without asking", strings.TrimSuffix(question, "?"))
	}
	fmt.Fprintf(a.err, "%s [Y/n] ", question)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && answer == "" {
		return errInterrupted
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "", "y", "yes":
		return nil
	}
	return coded(ExitUsage, "nothing was changed")
}

// progress shows a bar on stderr, on a terminal only. A total of -1 is unknown.
func (a *app) progress(what string, total int64) *progressbar.ProgressBar {
	writer := a.err
	if a.quiet || a.json || !isTerminal(a.err) {
		writer = io.Discard
	}
	return progressbar.NewOptions64(total,
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWriter(writer),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionShowCount(),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetSpinnerChangeInterval(0), // its own goroutine races with Finish
	)
}

// byteSize formats a number of bytes.
func byteSize(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, exp := float64(n)/unit, 0
	for value >= unit && exp < 4 {
		value /= unit
		exp++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTP"[exp])
}

// plural writes "1 blob", "2 blobs".
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
