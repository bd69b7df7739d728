package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
)

// defaultPager shows a text that fits on the screen as it is, keeps colours, and leaves
// the text on the screen.
var defaultPager = []string{"less", "-FRX"}

// noPagerFlag adds the flag that prints to the terminal directly.
func (a *app) noPagerFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.noPager, "no-pager", false, "print to the terminal directly (also: PAGER=cat, or the setting pager)")
}

// paged runs a verb whose output a person reads from top to bottom. On a terminal it goes
// through the user's pager.
func (a *app) paged(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if a.json || !isTerminal(a.out) {
			return run(cmd, args)
		}
		out, errOut := a.out, a.err
		p := &pager{app: a, terminal: out, messages: errOut}
		p.more.L = &p.mu
		a.out = p
		if isTerminal(errOut) { // both would write over each other
			a.err = &pagedMessages{p}
		}
		err := run(cmd, args)
		left := p.finish()
		a.out, a.err = out, errOut
		if left && errors.Is(err, syscall.EPIPE) {
			return nil // the reader has seen enough
		}
		return err
	}
}

// pager is the output of a verb while it is paged. Writes never wait for the reader: the
// verb ends, and releases what it holds, while the text is still being read.
type pager struct {
	app      *app
	terminal any       // an *os.File
	messages io.Writer // the stderr of the app

	begun bool
	cmd   *exec.Cmd
	in    io.WriteCloser
	sent  chan struct{} // closed when all is sent

	mu      sync.Mutex // guards the rest
	more    sync.Cond
	pending bytes.Buffer
	ended   bool
	gone    error // why the pager takes no more
}

// Write starts the pager at the first call, so that a verb that prints nothing has none.
func (p *pager) Write(data []byte) (int, error) {
	if !p.begun {
		p.begun = true
		p.start()
	}
	if p.cmd == nil {
		return p.terminal.(io.Writer).Write(data)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone != nil {
		return 0, p.gone
	}
	p.more.Signal()
	return p.pending.Write(data)
}

func (p *pager) start() {
	argv := p.app.pagerCommand()
	if len(argv) == 0 {
		return
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = p.terminal.(io.Writer), p.messages
	cmd.Env = os.Environ()
	if os.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS="+strings.TrimPrefix(defaultPager[1], "-"))
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.app.pagerFailed(argv, err)
		return
	}
	p.cmd, p.in, p.sent = cmd, in, make(chan struct{})
	go p.send()
}

// send passes on what is written, as fast as it is read.
func (p *pager) send() {
	defer close(p.sent)
	for {
		p.mu.Lock()
		for p.pending.Len() == 0 && !p.ended {
			p.more.Wait()
		}
		data := bytes.Clone(p.pending.Bytes())
		p.pending.Reset()
		p.mu.Unlock()
		if len(data) == 0 {
			return
		}
		if _, err := p.in.Write(data); err != nil {
			p.mu.Lock()
			p.gone = syscall.EPIPE
			p.mu.Unlock()
			return
		}
	}
}

// finish waits until the text was read. It reports whether the reader left before its end.
func (p *pager) finish() (left bool) {
	if p.cmd == nil {
		return false
	}
	// An interrupt is for the pager. It must not leave the terminal to the shell meanwhile.
	signal.Ignore(os.Interrupt)
	p.mu.Lock()
	p.ended = true
	p.more.Signal()
	p.mu.Unlock()
	<-p.sent
	_ = p.in.Close() // a pager that has left closed it
	_ = p.cmd.Wait() // its exit code says nothing about the verb
	return p.gone != nil
}

// pagerCommand returns the pager to start, or nil for none.
func (a *app) pagerCommand() []string {
	if a.noPager || os.Getenv("TERM") == "dumb" {
		return nil
	}
	line, set := os.LookupEnv("PAGER")
	line = strings.TrimSpace(line)
	words := strings.Fields(line)
	switch {
	case !set:
		if _, err := exec.LookPath(defaultPager[0]); err != nil {
			return nil
		}
		return defaultPager
	case line == "" || line == "cat":
		return nil
	case !strings.ContainsAny(line, "|&;<>()$`\\\"'*?[#~=%"): // a plain command, which can be found
		if _, err := exec.LookPath(words[0]); err != nil {
			a.pagerFailed(words, err)
			return nil
		}
		return words
	}
	return []string{"/bin/sh", "-c", line}
}

func (a *app) pagerFailed(argv []string, err error) {
	a.warn("cannot start the pager %s, so output is not paged: %v", argv[0], err)
}

// pagedMessages are messages beside paged output: they are shown after what was printed
// before them.
type pagedMessages struct{ *pager }

func (m *pagedMessages) Write(data []byte) (int, error) {
	if m.cmd == nil {
		return m.messages.Write(data)
	}
	return m.pager.Write(data)
}

// terminalOf returns the terminal that paged output is shown on, or the stream itself.
func terminalOf(stream any) any {
	switch s := stream.(type) {
	case *pager:
		return s.terminal
	case *pagedMessages:
		return s.pager.messages
	}
	return stream
}
