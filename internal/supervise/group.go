package supervise

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"github.com/stet-dev/stet/fault"
)

// ErrTime says that a command was ended because it took too long.
var ErrTime = fault.New(fault.Exhausted, "the time is over")

// grace is how long the processes of a group have to end after they were asked to.
// Tests shorten it.
var grace = 2 * time.Second

// RunGroup runs the command away from the terminal, together with everything that it starts,
// and leaves none of it behind: when the command has ended, when ctx is done, or when the
// limit of time is over, all its processes are ended. Where the system can, they also end
// with this process. A process that left the group of the command, as a daemon does, is not
// found. A limit of 0 is none.
//
// It returns the exit code as Run does. Signals, In and Terminal are not used; Env is. The
// observer may be nil.
func (c *Command) RunGroup(ctx context.Context, limit time.Duration, observer Observer) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("not started: %w", err)
	}
	if observer == nil {
		observer = nobody{}
	}
	var watched *watcher
	var hints <-chan struct{} // nil never gives any
	if c.Watch != "" {
		watched = watchTree(c.Watch, c.Quiet)
		defer watched.close()
		hints = watched.hints
	}
	cmd, err := c.command()
	if err != nil {
		return 0, &StartError{ExitNotExecutable, err}
	}
	g := startGroup(cmd)
	if err := <-g.started; err != nil {
		return 0, &StartError{ExitNotExecutable, err}
	}
	defer g.members.close()
	quiet := context.WithoutCancel(ctx)
	observer.Started(quiet, g.cmd.Process.Pid)
	close(g.release)
	over := newTimer(limit)
	defer over.Stop()
	kill := newTimer(0)
	defer kill.Stop()
	done, why := ctx.Done(), error(nil)
	for {
		select {
		case err := <-g.ended:
			code, err := exitCode(g.cmd, err)
			return code, errors.Join(err, why)
		case <-hints:
			observer.Quiet(quiet, watched.take())
			continue
		case <-done:
			why = ctx.Err()
		case <-over.C:
			why = fmt.Errorf("%w: ended after %v", ErrTime, limit)
		case <-kill.C:
			g.members.end(true)
			continue
		}
		done = nil
		over.Stop()
		g.members.end(false)
		kill.Reset(grace)
	}
}

// command returns what is to be started.
func (c *Command) command() (*exec.Cmd, error) {
	cmd := exec.Command(c.Path)
	cmd.Args, cmd.Dir, cmd.Env = c.Args, c.Dir, c.Env
	if c.Limits != (Limits{}) {
		var err error
		if cmd.Path, cmd.Args, err = c.Limits.limited(c.Path, c.Args); err != nil {
			return nil, err
		}
	}
	cmd.Stdout, cmd.Stderr = c.Out, c.Err
	cmd.WaitDelay = pipeDelay
	return cmd, nil
}

// newTimer returns a timer that never ends if the duration is 0.
func newTimer(d time.Duration) *time.Timer {
	t := time.NewTimer(max(d, time.Hour))
	if t.Stop(); d > 0 {
		t.Reset(d)
	}
	return t
}

// nobody observes nothing.
type nobody struct{}

func (nobody) Started(context.Context, int)    {}
func (nobody) Quiet(context.Context, []string) {}
func (nobody) Beat(context.Context)            {}

// group is a running command with the processes that it starts.
type group struct {
	cmd     *exec.Cmd
	members members
	started chan error
	release chan struct{} // closed when the command may be waited for
	ended   chan error
}

// startGroup starts a command as the first process of a group.
func startGroup(cmd *exec.Cmd) *group {
	g := &group{cmd: cmd, started: make(chan error, 1), release: make(chan struct{}), ended: make(chan error, 1)}
	go func() {
		// The kernel ends the command with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := g.members.start(cmd)
		g.started <- err
		if err != nil {
			return
		}
		<-g.release
		g.ended <- g.members.wait(cmd)
	}()
	return g
}
