// Command attempt runs a command in a directory and reverts its changes if it fails.
// The rewind restores deleted files, too, and can itself be undone with 'stet undo'.
//
//	attempt -store /tmp/attempts -dir . go generate ./...
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
)

func main() {
	store := flag.String("store", "", "directory of the store, outside of -dir")
	dir := flag.String("dir", ".", "directory in which the command works")
	flag.Parse()
	if *store == "" || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), os.Stdout, *store, *dir, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "attempt:", err)
		os.Exit(1)
	}
}

// run keeps what the command did if it succeeds.
func run(ctx context.Context, out io.Writer, store, dir string, command []string) (err error) {
	db, err := stet.Open(ctx, store, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	space, err := db.Checkpoints().Open(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, space.Close()) }()
	before, err := space.Checkpoint(ctx, checkpoint.Request{Label: "before the attempt"})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, os.Stderr
	failure := cmd.Run()
	if failure == nil {
		after, err := space.Checkpoint(ctx, checkpoint.Request{Label: "after the attempt"})
		if err == nil {
			fmt.Fprintf(out, "kept: %d files changed\n", after.Record.FilesChanged)
		}
		return err
	}
	applied, err := space.Rewind(ctx, checkpoint.RewindRequest{To: before.Record.ID, Scope: checkpoint.FilesOnly, Exact: true}, "")
	if err != nil {
		return errors.Join(failure, err)
	}
	fmt.Fprintf(out, "failed (%v): %d files taken back\n", failure, applied.Files)
	return nil
}
