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
		Short:   "Create a sample workspace with the work of a scripted agent",
		GroupID: groupStart,
		Long: `Create a small project in DIR (default: stet-demo) and let a scripted agent work in
it: a few turns, one of them taken back, and an edit of yours that collides with
the agent's. Nothing leaves the machine. Then try the commands:

  cd stet-demo
  stet log
  stet rewind turn:2
  stet undo

DIR must not exist or be empty. The conversation is saved in your store; --store
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

// cast is the agent, the title and the start of the story.
type cast struct {
	title, agent string
	ago          time.Duration
}

// demonstration plays the agent and the user.
type demonstration struct {
	cast
	db    *stet.DB
	store *conversation.Store
	space *checkpoint.Workspace
	conv  *conversation.Conversation
	clock time.Time
	live  bool // in real time, without an invented clock
	turn  uint64
	root  blob.ID
	names []string // of the checkpoints after turns
}

func (a *app) demo(ctx context.Context, db *stet.DB, dir string) error {
	if err := emptyDir(dir); err != nil {
		return err
	}
	// The story starts in the past, so that the log looks real.
	d, err := a.newDemonstration(ctx, db, dir, cast{title: "add retry to checkout", agent: "demo-agent", ago: 47 * time.Minute})
	if err != nil {
		return err
	}
	err = errors.Join(d.write(demoStart), d.play(ctx, demoScenes), d.write(demoYours), d.space.Close())
	if err != nil {
		return err
	}
	value := map[string]any{"schema": "stet.demo.v1", "dir": d.space.Path(), "conversation": d.conv.ID(), "checkpoints": d.names}
	return a.print(value, a.demoText(dir, d))
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

func (a *app) newDemonstration(ctx context.Context, db *stet.DB, dir string, c cast) (*demonstration, error) {
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
	d := &demonstration{cast: c, db: db, clock: time.Now().Add(-c.ago)}
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
	d.conv, err = d.store.Create(ctx, conversation.Info{Title: c.title, Agent: c.agent, Workspace: full})
	return d, err
}

// play runs the story.
func (d *demonstration) play(ctx context.Context, scenes []scene) error {
	for i, scene := range scenes {
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
	return nil
}

func (d *demonstration) wait(minutes int) {
	if d.live {
		d.clock = time.Now()
		return
	}
	d.clock = d.clock.Add(time.Duration(minutes) * time.Minute)
}

// write writes files to the workspace; an empty text removes one.
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

// contents reads the files that the agent is about to change.
func (d *demonstration) contents(files map[string]string) map[string]string {
	old := make(map[string]string)
	for name := range files {
		if text, err := os.ReadFile(filepath.Join(d.space.Path(), name)); err == nil {
			old[name] = string(text)
		}
	}
	return old
}

// delegate gives a subagent its own conversation and attaches it to this one.
func (d *demonstration) delegate(ctx context.Context, s scene) error {
	if s.sub == nil {
		return nil
	}
	conv, err := d.store.Create(ctx, conversation.Info{Title: s.sub.ask, Agent: d.agent, Workspace: d.space.Path()})
	if err != nil {
		return err
	}
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: s.sub.ask, MessageId: s.message + "-" + s.sub.id}, scene{think: s.sub.think, runs: s.sub.runs, say: s.sub.say}.steps(nil)...)
	if err != nil {
		return err
	}
	if err := conv.AppendTurn(ctx, turn); err != nil {
		return err
	}
	save, err := conv.Save(ctx, nil)
	if err != nil {
		return err
	}
	// The state is kept by reference from the parent; the list of conversations shows
	// only those of people.
	return errors.Join(d.conv.SetSubagent(ctx, s.sub.id, save.Root), d.store.Delete(ctx, conv.ID(), nil))
}

// agentTurn lets the agent answer a message and change files.
func (d *demonstration) agentTurn(ctx context.Context, s scene) error {
	d.turn++
	d.wait(2)
	if err := d.checkpoint(ctx, checkpoint.Before, s); err != nil {
		return err
	}
	old := d.contents(s.files)
	if err := d.write(s.files); err != nil {
		return err
	}
	d.wait(s.minutes)
	if err := d.delegate(ctx, s); err != nil {
		return err
	}
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: s.ask, MessageId: s.message}, s.steps(old)...)
	if err != nil {
		return err
	}
	if err := d.conv.AppendTurn(ctx, turn); err != nil {
		return err
	}
	save, err := d.conv.Save(ctx, &conversation.SaveOptions{MessageID: s.message, Author: d.agent})
	if err != nil {
		return err
	}
	d.root = save.Root
	return d.checkpoint(ctx, checkpoint.After, s)
}

func (d *demonstration) checkpoint(ctx context.Context, side checkpoint.Side, s scene) error {
	res, err := d.space.Checkpoint(ctx, checkpoint.Request{
		Conversation: d.conv.ID(), Root: d.root, MessageID: s.message, Turn: d.turn, Side: side, Author: d.agent, Auto: true,
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
