package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
)

// fillDemo fills an empty store with a few conversations, and runs an agent while it
// is served. In a store with content, it only resumes an earlier agent.
func (a *app) fillDemo(ctx context.Context, db *stet.DB) error {
	dir, err := a.storeDir()
	if err != nil {
		return err
	}
	dir += "-demo"
	page, err := db.Conversations().List(ctx, &conversation.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if len(page.Conversations) == 0 {
		if err := a.tellStories(ctx, db, dir); err != nil {
			return fmt.Errorf("fill the demonstration: %w", err)
		}
	}
	return a.goOnWorking(ctx, db, filepath.Join(dir, "notes"))
}

// story is a conversation of the demonstration.
type story struct {
	cast
	place  string            // directory of the workspace
	start  map[string]string // initial files
	scenes []scene
	yours  map[string]string // the user's changes at the end
	pins   map[string]int    // by name: after which turn
	fork   string            // title of a fork after the first turn
}

// tellStories fills a store. Stories of one workspace are in chronological order.
func (a *app) tellStories(ctx context.Context, db *stet.DB, dir string) error {
	for _, s := range demoStories() {
		if err := a.tell(ctx, db, filepath.Join(dir, s.place), s); err != nil {
			return fmt.Errorf("story %q: %w", s.title, err)
		}
	}
	return nil
}

func (a *app) tell(ctx context.Context, db *stet.DB, dir string, s story) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	d, err := a.newDemonstration(ctx, db, dir, s.cast)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.space.Close()) }()
	if err := errors.Join(d.write(s.start), d.play(ctx, s.scenes)); err != nil {
		return err
	}
	for _, name := range sortedKeys(s.pins) {
		rec, err := d.space.Resolve(ctx, fmt.Sprintf("turn:%d", s.pins[name]), d.conv.ID())
		if err != nil {
			return err
		}
		if err := db.Checkpoints().Pin(ctx, name, rec.ID, author()); err != nil {
			return err
		}
	}
	if s.fork != "" {
		if err := d.branchOff(ctx, s); err != nil {
			return err
		}
	}
	return d.write(s.yours)
}

// branchOff continues the story in a fork after its first turn, without files.
func (d *demonstration) branchOff(ctx context.Context, s story) error {
	fork, err := d.store.Fork(ctx, d.conv.ID(), 1, conversation.Info{Title: s.fork, Agent: s.agent, Workspace: d.space.Path()})
	if err != nil {
		return err
	}
	d.conv, d.turn, d.root = fork, fork.Info().Turns, fork.Info().Root
	return d.agentTurn(ctx, scene{ask: "and what if we added jitter?", message: "fork-1", minutes: 1, say: demoJitter})
}

// demoStories fill an empty store: two workspaces, several days.
func demoStories() []story {
	const hour = time.Hour
	return []story{
		{
			cast: cast{"notes as Markdown files", "claude-code", 75 * hour}, place: "notes", start: notesStart, scenes: notesScenes,
			pins: map[string]int{"export-works": 2},
		},
		{
			cast: cast{"find the slow query behind the price list", "codex", 27 * hour}, place: "shop-api", start: demoStart, scenes: priceScenes,
		},
		{
			cast: cast{"the sync test is flaky", "claude-code", 5 * hour}, place: "notes", scenes: syncScenes,
		},
		{
			cast: cast{"add retry to checkout", "claude-code", 47 * time.Minute}, place: "shop-api", scenes: demoScenes, yours: demoYours,
			pins: map[string]int{"before-timeout": 2}, fork: "retry with jitter",
		},
	}
}

// reopened opens a workspace of the demonstration for one more turn.
func (a *app) reopened(ctx context.Context, db *stet.DB, dir, conv string) (*demonstration, error) {
	_, opts, err := a.checkpoints(db)
	if err != nil {
		return nil, err
	}
	d := &demonstration{db: db, store: db.Conversations(), clock: time.Now()}
	opts.Conversations = checkpoint.Of(d.store)
	if d.space, err = checkpoint.New(db.Blobs(), db.Rows(), &opts).Open(ctx, dir); err != nil {
		return nil, err
	}
	if d.conv, err = d.store.Open(ctx, conv); err != nil {
		return nil, errors.Join(err, d.space.Close())
	}
	info := d.conv.Info()
	d.agent, d.turn, d.root = info.Agent, info.Turns, info.Root
	return d, nil
}
