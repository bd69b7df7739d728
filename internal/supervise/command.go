package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Exit codes of commands that could not be run, as shells have them.
const (
	ExitNotExecutable = 126
	ExitNotFound      = 127
)

// StartError says that a command could not be started.
type StartError struct {
	Code int // ExitNotExecutable or ExitNotFound
	Err  error
}

func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Find returns the path of a command as a shell in a directory finds it; "" is the
// current directory. Its error is a StartError.
func Find(name, dir string) (string, error) {
	look := name
	if strings.ContainsAny(name, separators) && !filepath.IsAbs(name) && dir != "" {
		abs, err := filepath.Abs(dir) // the command is started there
		if err != nil {
			return "", &StartError{ExitNotFound, err}
		}
		look = filepath.Join(abs, name)
	}
	path, err := exec.LookPath(look)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR):
		return "", &StartError{ExitNotExecutable, err}
	case err != nil:
		return "", &StartError{ExitNotFound, err}
	case look != name:
		return name, nil // as it was called, since a script sees its name
	}
	return path, nil
}

// Signals returns the signals that a Command hands on. While they are collected they do
// not end this process, so that a second interrupt does not keep the caller from saving
// what the command did. Signals that are ignored stay so: a process that was started
// with nohup wants its command to go on, too. The caller calls stop.
func Signals() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 8)
	signal.Notify(c, NotIgnored(slices.Clone(handedOn)...)...)
	return c, func() { signal.Stop(c) }
}

// NotIgnored returns the signals that are not ignored: after nohup the command must go on,
// too.
func NotIgnored(signals ...os.Signal) []os.Signal {
	return slices.DeleteFunc(signals, signal.Ignored)
}

// pipeDelay is how long to read from the pipes of a command after its end: a process that
// it left behind may hold them open. Files are handed to the command itself.
const pipeDelay = 2 * time.Second

// Command is a command to be run.
type Command struct {
	Path string   // of the program; see Find
	Args []string // the first is the name that the command sees
	Dir  string   // where it runs; "" is the current directory
	Env  []string // nil is that of this process

	In       io.Reader
	Out, Err io.Writer
	// Signals are handed on to the command; see Signals.
	Signals <-chan os.Signal
	// Terminal says that In is a terminal, which sends the command SIGINT and SIGQUIT
	// itself: they are not handed on.
	Terminal bool

	// Watch is the directory whose changes are reported, and Quiet how long nothing
	// must change before they are. RunGroup watches nothing if Watch is empty.
	Watch string
	Quiet time.Duration
	// Limits bound what the command may take; RunGroup uses them.
	Limits Limits
	// Beat is the time between two calls of Observer.Beat.
	Beat time.Duration
}

// Observer learns what happens while a command runs. Its methods are called one after
// the other; signals are handed on meanwhile, however long they take. The context is
// never done.
type Observer interface {
	// Started is called once, with the id of the process, which no other process has
	// before the command was waited for.
	Started(ctx context.Context, pid int)
	// Quiet is called when a burst of changes below Watch has ended, or goes on for
	// long. It gets the paths that changed since the last call, relative to Watch, or nil
	// if they are not known: in the first call, where not everything can be watched,
	// and after events were lost.
	Quiet(ctx context.Context, paths []string)
	// Beat is called from time to time.
	Beat(ctx context.Context)
}

// Run runs the command and returns its exit code, which is 128 and the number of the
// signal if one ended it. If ctx is done before the command was started, it is not, and
// Run returns the context's error; later only signals end the command. A command that
// cannot be started gives a StartError.
func (c *Command) Run(ctx context.Context, observer Observer) (int, error) {
	watched := watchTree(c.Watch, c.Quiet)
	defer watched.close()
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("not started: %w", err)
	}
	ctx = context.WithoutCancel(ctx)
	cmd := exec.Command(c.Path)
	cmd.Args, cmd.Dir, cmd.Env = c.Args, c.Dir, c.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.In, c.Out, c.Err
	cmd.WaitDelay = pipeDelay
	set, err := start(cmd, c.Terminal)
	if err != nil {
		return 0, &StartError{ExitNotExecutable, err}
	}
	defer set.close()
	ended := make(chan error, 1)
	release := make(chan struct{}) // the process is waited for only after Started has seen it
	go func() { <-release; ended <- cmd.Wait() }()
	over := make(chan struct{})
	defer close(over)
	go c.forward(set, over) // beside, since an observer may take long
	observer.Started(ctx, cmd.Process.Pid)
	close(release)
	beat := time.NewTicker(c.Beat)
	defer beat.Stop()
	for {
		select {
		case err := <-ended:
			return exitCode(cmd, err)
		case <-beat.C:
			observer.Beat(ctx)
		case <-watched.hints:
			observer.Quiet(ctx, watched.take())
		}
	}
}

// forward hands signals on to the command.
func (c *Command) forward(set *processes, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case sig := <-c.Signals:
			if !c.Terminal || sig != syscall.SIGINT && sig != syscall.SIGQUIT {
				set.signal(sig)
			}
		}
	}
}

func exitCode(cmd *exec.Cmd, err error) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return 0, err
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return asShells(cmd.ProcessState), nil
}
