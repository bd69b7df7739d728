package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// counter shows the progress of work of unknown length, on stderr and only on a
// terminal. It is safe for concurrent use.
type counter struct {
	out  io.Writer // nil without a terminal
	what string

	mu    sync.Mutex
	last  time.Time // of the line on the screen; guarded by mu
	shown bool      // guarded by mu
}

func (a *app) counter(what string) *counter {
	c := &counter{what: what, last: time.Now()}
	if !a.quiet && !a.json && isTerminal(a.err) {
		c.out = a.err
	}
	return c
}

// set shows a number, at most ten times a second and only for longer work.
func (c *counter) set(n int64) { c.show(fmt.Sprintf("%s %d", c.what, n)) }

// of shows a number and the total.
func (c *counter) of(n, all int) { c.show(fmt.Sprintf("%s %d of %d", c.what, n, all)) }

func (c *counter) show(line string) {
	if c.out == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.last) < 100*time.Millisecond {
		return
	}
	c.last, c.shown = time.Now(), true
	fmt.Fprintf(c.out, "\r\x1b[2K%s", line)
}

// done clears the line.
func (c *counter) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shown {
		fmt.Fprint(c.out, "\r\x1b[2K")
		c.shown = false
	}
}
