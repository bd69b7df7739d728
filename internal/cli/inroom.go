package cli

import (
	"context"
	"errors"
	"time"

	"github.com/stet-dev/stet/internal/supervise"
)

// errTimeOver says that a command was ended after its time.
var errTimeOver = supervise.ErrTime

// bounds are what a command in a copy may take.
type bounds struct {
	time   time.Duration
	limits supervise.Limits
}

// runIn runs a command in a copy, with everything that it starts, and returns its exit code.
// A command that cannot be run gets the exit code that a shell gives it.
func runIn(ctx context.Context, dir string, args []string, most bounds, printed *keptOutput, env ...string) (int, error) {
	return runWatched(ctx, dir, args, most, printed, nil, 0, env...)
}

// runWatched is runIn, and tells an observer, which may be nil, when the files of the copy
// have changed and nothing happened for a while.
func runWatched(ctx context.Context, dir string, args []string, most bounds, printed *keptOutput, observer supervise.Observer, quiet time.Duration, env ...string) (int, error) {
	path, err := supervise.Find(args[0], dir)
	if err == nil {
		cmd := &supervise.Command{
			Path: path, Args: args, Dir: dir, Env: commandEnv(dir, env...), Out: printed.of(0), Err: printed.of(1), Quiet: quiet, Limits: most.limits,
		}
		if observer != nil {
			cmd.Watch = dir
		}
		var code int
		if code, err = cmd.RunGroup(ctx, most.time, observer); err == nil {
			return code, nil
		}
	}
	var start *supervise.StartError
	if errors.As(err, &start) {
		_, _ = printed.of(1).Write([]byte(start.Error() + "\n")) // never fails
		return start.Code, nil
	}
	return 0, err
}
