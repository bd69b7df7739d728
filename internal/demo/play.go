package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/intake"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Stage is where stories are played.
type Stage struct {
	DB *stet.DB
	// Options are those of checkpoints. The clock and the conversations of a story take
	// the place of theirs.
	Options checkpoint.Options
	// User is the author of what the user does.
	User string
}

// Told is what came of a story.
type Told struct {
	Dir, Conversation string
	Checkpoints       []string // names of those after turns
}

// Tell plays a story in a directory, which it creates if it is missing. The turns lie as
// far back as the story says.
func Tell(ctx context.Context, st Stage, dir string, s *Story) (_ *Told, err error) {
	d, err := st.enter(ctx, dir, s)
	if err != nil {
		return nil, fmt.Errorf("story %q: %w", s.Title, err)
	}
	defer func() { err = errors.Join(err, d.space.Close()) }()
	told := &Told{Dir: d.space.Path(), Conversation: d.conv.ID()}
	if err := d.tell(ctx, s); err != nil {
		return nil, fmt.Errorf("story %q: %w", s.Title, err)
	}
	told.Checkpoints = d.names
	return told, nil
}

// player plays the agent and the user.
type player struct {
	Stage
	agent string
	model string
	store *conversation.Store
	space *checkpoint.Workspace
	conv  *conversation.Conversation
	clock time.Time
	live  bool // happens now: the clock does not run ahead
	turn  uint64
	root  blob.ID
	names []string // of the checkpoints after turns
}

// enter opens the workspace and begins the conversation of a story.
func (st Stage) enter(ctx context.Context, dir string, s *Story) (*player, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	d := &player{Stage: st, agent: s.Agent, model: s.model, clock: time.Now().Add(-s.Ago)}
	d.store = conversation.New(st.DB.Blobs(), st.DB.Rows(), &conversation.Options{Now: func() time.Time { return d.clock }})
	opts := st.Options
	opts.Now = func() time.Time { return d.clock }
	opts.Conversations = checkpoint.Of(d.store)
	var err error
	if d.space, err = checkpoint.New(st.DB.Blobs(), st.DB.Rows(), &opts).Open(ctx, dir); err != nil {
		return nil, err
	}
	info := conversation.Info{Title: s.Title, Agent: s.Agent, Workspace: d.space.Path()}
	if l := dialects[s.Agent]; l != nil {
		info.ID = l.session()
	}
	d.conv, err = d.store.Create(ctx, info)
	if err != nil {
		return nil, errors.Join(err, d.space.Close())
	}
	return d, nil
}

func (d *player) tell(ctx context.Context, s *Story) error {
	if err := errors.Join(d.write(s.start), d.play(ctx, s.scenes)); err != nil {
		return err
	}
	for _, name := range sortedKeys(s.pins) {
		rec, err := d.space.Resolve(ctx, fmt.Sprintf("turn:%d", s.pins[name]), d.conv.ID())
		if err != nil {
			return err
		}
		if err := d.DB.Checkpoints().Pin(ctx, name, rec.ID, d.User); err != nil {
			return err
		}
	}
	if s.fork != nil {
		if err := d.branchOff(ctx, *s.fork); err != nil {
			return err
		}
	}
	return d.write(s.end)
}

// play plays one scene after the other.
func (d *player) play(ctx context.Context, scenes []scene) error {
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

func (d *player) wait(minutes int) {
	if d.live {
		d.clock = time.Now()
		return
	}
	d.clock = d.clock.Add(time.Duration(minutes) * time.Minute)
}

// write puts files into the workspace; an empty text removes one.
func (d *player) write(files map[string]string) error {
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

// contents reads what files hold before the agent changes them.
func (d *player) contents(files map[string]string) map[string]string {
	old := make(map[string]string)
	for name := range files {
		if text, err := os.ReadFile(filepath.Join(d.space.Path(), name)); err == nil {
			old[name] = string(text)
		}
	}
	return old
}

// delegate lets a subagent have its own conversation, below this one. Its state becomes a
// part of this one.
func (d *player) delegate(ctx context.Context, s scene, began time.Time) error {
	if s.sub == nil {
		return nil
	}
	conv, err := d.store.Create(ctx, conversation.Info{
		ID: s.sub.id, Title: s.sub.ask, Agent: d.agent, Workspace: d.space.Path(),
		Labels: map[string]string{conversation.LabelParent: d.conv.ID(), conversation.LabelSubagent: "true"},
	})
	if err != nil {
		return err
	}
	own := scene{message: s.sub.message, ask: s.sub.ask, think: s.sub.think, runs: s.sub.runs, say: s.sub.say}
	turn, err := d.made(own, nil, began)
	if err != nil {
		return err
	}
	if err := conv.AppendTurn(ctx, turn); err != nil {
		return err
	}
	save, err := conv.Save(ctx, &conversation.SaveOptions{Turn: d.took(s.sub.tokens, 0, began)})
	if err != nil {
		return err
	}
	return d.conv.SetSubagent(ctx, s.sub.id, save.Root)
}

// took is what the agent's record would say about a turn, nil for an agent without one.
func (d *player) took(tokens [3]int64, cost float64, began time.Time) *conversation.TurnDetails {
	if d.model == "" {
		return nil
	}
	out := &conversation.TurnDetails{
		Model: d.model, Started: began, Ended: d.clock, Input: tokens[0], Output: tokens[1], CacheRead: tokens[2], Done: true,
	}
	if cost > 0 {
		out.CostUSD = &cost
	}
	return out
}

// agentTurn lets the agent answer a message and change files.
func (d *player) agentTurn(ctx context.Context, s scene) error {
	d.turn++
	d.wait(2)
	if err := d.checkpoint(ctx, checkpoint.Before, s); err != nil {
		return err
	}
	began, old := d.clock, d.contents(s.files)
	if err := d.write(s.files); err != nil {
		return err
	}
	d.wait(s.minutes)
	if err := d.delegate(ctx, s, began); err != nil {
		return err
	}
	turn, err := d.made(s, old, began)
	if err != nil {
		return err
	}
	if err := d.conv.AppendTurn(ctx, turn); err != nil {
		return err
	}
	save, err := d.conv.Save(ctx, &conversation.SaveOptions{MessageID: s.message, Author: d.agent, Turn: d.took(s.tokens, s.cost, began)})
	if err != nil {
		return err
	}
	d.root = save.Root
	return d.checkpoint(ctx, checkpoint.After, s)
}

// made returns a turn that ends now in the form in which conversations keep those of the
// agent.
func (d *player) made(s scene, old map[string]string, began time.Time) (conversation.Turn, error) {
	if l := dialects[d.agent]; l != nil {
		return intake.NewTurn(d.agent, l.turn(s, d.space.Path(), old, began, d.clock))
	}
	return conversation.NewTurn(&agentv1.UserMessage{Text: s.ask, MessageId: s.message}, s.steps(old)...)
}

func (d *player) checkpoint(ctx context.Context, side checkpoint.Side, s scene) error {
	res, err := d.space.Checkpoint(ctx, checkpoint.Request{
		Conversation: d.conv.ID(), Root: d.root, MessageID: s.message, Turn: d.turn, Side: side, Author: d.agent, Auto: true,
	})
	if err != nil {
		return err
	}
	if res.Record == nil {
		return fmt.Errorf("nothing was saved: %s", res.Skipped)
	}
	if side == checkpoint.After {
		d.names = append(d.names, res.Record.Name())
	}
	return nil
}

// goBack rewinds to the end of a turn, as the user would.
func (d *player) goBack(ctx context.Context, turn uint64) error {
	d.wait(3)
	to := fmt.Sprintf("turn:%d", turn)
	if _, err := d.space.Rewind(ctx, checkpoint.RewindRequest{To: to, Conversation: d.conv.ID(), Author: d.User}, ""); err != nil {
		return err
	}
	conv, err := d.store.Open(ctx, d.conv.ID())
	if err != nil {
		return err
	}
	d.conv, d.turn, d.root = conv, turn, conv.Info().Root
	return nil
}

// branchOff continues the story elsewhere after its first turn, in words only.
func (d *player) branchOff(ctx context.Context, s scene) error {
	fork, err := d.store.Fork(ctx, d.conv.ID(), 1, conversation.Info{ID: dialects[d.agent].session(), Title: s.title, Agent: d.agent, Workspace: d.space.Path()})
	if err != nil {
		return err
	}
	d.conv, d.turn, d.root = fork, fork.Info().Turns, fork.Info().Root
	return d.agentTurn(ctx, s)
}
