// Package supervise runs a command in the place of this process: the command has its
// terminal and its output, gets its signals, and its exit code is reported as a shell
// would. Meanwhile an Observer learns when the command started, when a burst of changes
// to the files of a directory has ended, and that the command still runs:
//
//	signals, stop := supervise.Signals()
//	defer stop()
//	path, err := supervise.Find(args[0], dir)
//	cmd := &supervise.Command{Path: path, Args: args, Dir: dir, Watch: root, Signals: signals}
//	code, err := cmd.Run(ctx, observer)
//
// RunGroup runs a command beside others instead, away from the terminal, and ends it with
// everything that it started.
//
// Hints about changes may come late or be missing; whoever needs to know looks at the
// files. What an Observer does with them, such as making checkpoints, is left to it.
package supervise
