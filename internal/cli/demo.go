package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "demo [DIR]",
		Short:   "Make a sample workspace in which a scripted agent has worked",
		GroupID: groupStart,
		Long: `Make a small project in DIR (default: stet-demo) and let a scripted agent work in
it: a few turns, one of them taken back, and an edit of yours that collides with
the agent's. Nothing leaves the machine. Afterwards everything can be tried:

  cd stet-demo
  stet log
  stet rewind turn:2
  stet undo

DIR must not exist or be empty. The conversation goes into your store; --store
takes another one.`,
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

// demonstration plays the agent and the user.
type demonstration struct {
	db    *stet.DB
	store *conversation.Store
	space *checkpoint.Workspace
	conv  *conversation.Conversation
	clock time.Time
	turn  uint64
	root  blob.ID
	names []string // of the checkpoints after turns
}

func (a *app) demo(ctx context.Context, db *stet.DB, dir string) error {
	if err := emptyDir(dir); err != nil {
		return err
	}
	d, err := a.newDemonstration(ctx, db, dir)
	if err != nil {
		return err
	}
	if err := errors.Join(d.play(ctx), d.space.Close()); err != nil {
		return err
	}
	value := map[string]any{"schema": "stet.demo.v1", "dir": d.space.Path(), "conversation": d.conv.ID(), "checkpoints": d.names}
	return a.print(value, a.demoText(dir, d))
}

// emptyDir makes a directory, or takes one that holds nothing.
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

func (a *app) newDemonstration(ctx context.Context, db *stet.DB, dir string) (*demonstration, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if full, err = filepath.EvalSymlinks(full); err != nil {
		return nil, err
	}
	if err := apart(db, full); err != nil {
		return nil, err
	}
	// The story began a while ago, so that the log looks like one.
	d := &demonstration{db: db, clock: time.Now().Add(-47 * time.Minute)}
	_, opts, err := a.checkpoints(db)
	if err != nil {
		return nil, err
	}
	d.store = conversation.New(db.Blobs(), db.Rows(), &conversation.Options{Now: func() time.Time { return d.clock }})
	opts.Now = func() time.Time { return d.clock }
	opts.Conversations = checkpoint.Of(d.store)
	if d.space, err = checkpoint.New(db.Blobs(), db.Rows(), &opts).Open(ctx, full); err != nil {
		return nil, err
	}
	d.conv, err = d.store.Create(ctx, conversation.Info{Title: "add retry to checkout", Agent: "demo-agent", Workspace: full})
	return d, err
}

// play tells the story.
func (d *demonstration) play(ctx context.Context) error {
	if err := d.write(demoStart); err != nil {
		return err
	}
	for i, scene := range demoScenes {
		if err := d.write(scene.yours); err != nil {
			return err
		}
		if err := d.agentTurn(ctx, scene); err != nil {
			return fmt.Errorf("scene %d: %w", i+1, err)
		}
		if scene.back != 0 {
			if err := d.goBack(ctx, scene.back); err != nil {
				return fmt.Errorf("scene %d: %w", i+1, err)
			}
		}
	}
	d.wait(6)
	return d.write(demoYours)
}

func (d *demonstration) wait(minutes int) {
	d.clock = d.clock.Add(time.Duration(minutes) * time.Minute)
}

// write puts files into the workspace; an empty text removes one.
func (d *demonstration) write(files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(d.space.Path(), name)
		if text == "" {
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// agentTurn lets the agent answer a message and change files.
func (d *demonstration) agentTurn(ctx context.Context, s scene) error {
	d.turn++
	d.wait(2)
	if err := d.checkpoint(ctx, checkpoint.Before, s); err != nil {
		return err
	}
	if err := d.write(s.files); err != nil {
		return err
	}
	d.wait(s.minutes)
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: s.ask, MessageId: s.message}, s.steps()...)
	if err != nil {
		return err
	}
	if err := d.conv.AppendTurn(ctx, turn); err != nil {
		return err
	}
	save, err := d.conv.Save(ctx, &conversation.SaveOptions{MessageID: s.message, Author: "demo-agent"})
	if err != nil {
		return err
	}
	d.root = save.Root
	return d.checkpoint(ctx, checkpoint.After, s)
}

func (d *demonstration) checkpoint(ctx context.Context, side checkpoint.Side, s scene) error {
	res, err := d.space.Checkpoint(ctx, checkpoint.Request{
		Conversation: d.conv.ID(), Root: d.root, MessageID: s.message, Turn: d.turn, Side: side, Author: "demo-agent", Auto: true,
	})
	if err != nil {
		return err
	}
	if res.Record == nil {
		return coded(ExitError, "nothing was saved: %s", res.Skipped)
	}
	if side == checkpoint.After {
		d.names = append(d.names, res.Record.Name())
	}
	return nil
}

// goBack rewinds to the end of a turn, as the user would.
func (d *demonstration) goBack(ctx context.Context, turn uint64) error {
	d.wait(3)
	to := fmt.Sprintf("turn:%d", turn)
	if _, err := d.space.Rewind(ctx, checkpoint.RewindRequest{To: to, Conversation: d.conv.ID(), Author: author()}, ""); err != nil {
		return err
	}
	conv, err := d.store.Open(ctx, d.conv.ID())
	if err != nil {
		return err
	}
	d.conv, d.turn, d.root = conv, turn, conv.Info().Root
	return nil
}

func (a *app) demoText(dir string, d *demonstration) string {
	p := a.paint()
	step := func(command, about string) string { return "  " + p.bold(pad(command, 34)) + p.dim(about) + "\n" }
	return fmt.Sprintf("An agent worked in %s for four turns; one was taken back. Then you edited two\nfiles, one of them the agent's. Look around:\n\n", dir) +
		step("cd "+dir, "") +
		step("stet log", "what happened; x was rewound and is kept") +
		step("stet diff", "what you changed since") +
		step("stet rewind turn:2", "back before the last turn; your edits are safe") +
		step("stet undo", "and forward again") +
		step("stet show "+d.names[len(d.names)-1], "what the last turn changed") +
		step("stet rewind", "pick a point from a list")
}
