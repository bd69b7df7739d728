package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "demo [DIR]",
		Short:   "Create a sample workspace with the work of a scripted agent",
		GroupID: groupStart,
		Long: `Create a small project in DIR (default: stet-demo) and let a scripted agent work in
it: a few turns, one of which is taken back, and an edit of yours that collides with
the agent's. Nothing leaves the machine. Then try these commands:

  cd stet-demo
  stet log
  stet rewind turn:2
  stet undo

DIR must not exist, or must be empty. The conversation is saved in your store; --store
selects another one.`,
		Example: "  stet demo\n  stet --store /tmp/try-stet demo /tmp/shop-api",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "stet-demo"
			if len(args) == 1 {
				dir = args[0]
			}
			return a.withStore(cmd.Context(), true, func(db *stet.DB) error { return a.demo(cmd.Context(), db, dir) })
		},
	}
}

func (a *app) demo(ctx context.Context, db *stet.DB, dir string) error {
	if err := emptyDir(dir); err != nil {
		return err
	}
	full, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if full, err = filepath.EvalSymlinks(full); err != nil {
		return err
	}
	if err := apart(db, full); err != nil {
		return err
	}
	stage, err := a.stage(db)
	if err != nil {
		return err
	}
	told, err := demo.Tell(ctx, stage, full, demo.Shop())
	if err != nil {
		return err
	}
	value := map[string]any{"schema": "stet.demo.v1", "dir": told.Dir, "conversation": told.Conversation, "checkpoints": told.Checkpoints}
	text := a.demoText(dir, told)
	if a.quiet {
		text = ""
	}
	return a.print(value, text)
}

// stage is where the stories of a demonstration are played.
func (a *app) stage(db *stet.DB) (demo.Stage, error) {
	_, opts, err := a.checkpoints(db)
	return demo.Stage{DB: db, Options: opts, User: author()}, err
}

// fillDemo fills an empty store with a few conversations, and runs an agent while it
// is served. In a store with content, it only resumes an earlier agent.
func (a *app) fillDemo(ctx context.Context, db *stet.DB) error {
	dir, err := a.storeDir()
	if err != nil {
		return err
	}
	dir += "-demo"
	stage, err := a.stage(db)
	if err != nil {
		return err
	}
	used, err := holdsWork(ctx, db)
	if err != nil {
		return err
	}
	if used && !fileExists(dir) {
		a.warn("no demonstration: the store at %s is not empty; to see one, run 'stet --store DIR serve --demo' with a new DIR", strings.TrimSuffix(dir, "-demo"))
		return nil
	}
	if !used {
		for _, s := range demo.Stories() {
			if _, err := demo.Tell(ctx, stage, filepath.Join(dir, s.Place), s); err != nil {
				return fmt.Errorf("fill the demonstration: %w", err)
			}
		}
	}
	return demo.GoOn(ctx, stage, dir, func(err error) { a.say("the agent of the demonstration stopped: %v", err) })
}

// holdsWork reports whether a store has a conversation or a checkpoint.
func holdsWork(ctx context.Context, db *stet.DB) (bool, error) {
	page, err := db.Conversations().List(ctx, &conversation.ListOptions{Limit: 1})
	if err != nil || len(page.Conversations) > 0 {
		return true, err
	}
	for _, err := range db.Checkpoints().List(ctx, nil) {
		return true, err
	}
	return false, nil
}

// emptyDir creates a directory or accepts an empty one.
func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.MkdirAll(dir, 0o755)
	case err != nil:
		return err
	case len(entries) > 0:
		return coded(ExitConflict, "%s is not empty; name another directory", dir)
	}
	return nil
}

func (a *app) demoText(dir string, told *demo.Told) string {
	p := a.paint()
	step := func(command, about string) string { return "  " + p.bold(pad(command, 34)) + p.dim(about) + "\n" }
	return fmt.Sprintf("An agent worked in %s for four turns; one was taken back. Then you edited two\nfiles, one of them the agent's. Look around:\n\n", dir) +
		step("cd "+dir, "") +
		step("stet log", "what happened; x was rewound and is kept") +
		step("stet diff", "what you changed since") +
		step("stet rewind turn:2", "back before the last turn; your edits are safe") +
		step("stet undo", "and forward again") +
		step("stet show "+told.Checkpoints[len(told.Checkpoints)-1], "what the last turn changed") +
		step("stet rewind", "pick a point from a list")
}
