package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
)

const (
	liveAgent = "demo-live"
	livePace  = 180 * time.Millisecond // between two pieces of the agent's text
	liveRest  = 8 * time.Second        // between two turns
	liveTurns = 2000                   // after which it stops

	liveRunning = aiserverv1.CloudAgentWorkflowStatus_CLOUD_AGENT_WORKFLOW_STATUS_RUNNING
	liveIdle    = aiserverv1.CloudAgentWorkflowStatus_CLOUD_AGENT_WORKFLOW_STATUS_IDLE
)

// GoOn runs the agent of the demonstration in the background until ctx is done, in the
// directory of its story. In a store that is not a demonstration it does nothing. A
// failure is reported to failed and otherwise harmless.
func GoOn(ctx context.Context, st Stage, dir string, failed func(error)) error {
	dir = filepath.Join(dir, library()["live"].Place)
	agent, err := st.liveAgent(ctx, dir)
	if err != nil || agent.Conversation == "" {
		return err
	}
	go func() {
		if err := st.work(ctx, dir, agent); err != nil && ctx.Err() == nil {
			failed(err)
		}
	}()
	return nil
}

// liveAgent returns the agent, and creates it if the workspace is a demonstration.
// Otherwise there is none.
func (st Stage) liveAgent(ctx context.Context, dir string) (cloudagent.Agent, error) {
	agent, err := st.DB.Agents().Get(ctx, liveAgent)
	if err == nil || !errors.Is(err, cloudagent.ErrNotFound) {
		return agent, err
	}
	if _, err := os.Stat(filepath.Join(dir, "notes", "export.py")); err != nil {
		return cloudagent.Agent{}, nil
	}
	full, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return agent, err
	}
	story := library()["live"]
	conv, err := st.DB.Conversations().Create(ctx, conversation.Info{Title: story.Title, Agent: story.Agent, Workspace: full})
	if err != nil {
		return agent, err
	}
	return st.DB.Agents().Create(ctx, cloudagent.Spec{ID: liveAgent, Name: story.Title, Conversation: conv.ID(), Status: liveRunning})
}

// work plays turns one after the other.
func (st Stage) work(ctx context.Context, dir string, agent cloudagent.Agent) error {
	info, err := st.DB.Conversations().Get(ctx, agent.Conversation)
	if err != nil {
		return err
	}
	if _, err := st.DB.Agents().SetStatus(ctx, agent.ID, liveRunning, nil); err != nil {
		return err
	}
	for n := int(info.Turns) + 1; n <= liveTurns; n++ {
		l := &livePlay{Stage: st, dir: dir, agent: agent}
		if err := l.turn(ctx, liveScene(n)); err != nil {
			return err
		}
		if err := pause(ctx, liveRest); err != nil {
			return err
		}
	}
	_, err = st.DB.Agents().SetStatus(ctx, agent.ID, liveIdle, nil)
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// livePlay streams a scene while it happens, then saves it as any turn.
type livePlay struct {
	Stage
	dir   string
	agent cloudagent.Agent
}

func (l *livePlay) turn(ctx context.Context, s scene) error {
	updates := []*agentv1.InteractionUpdate{{Message: &agentv1.InteractionUpdate_UserMessageAppended{
		UserMessageAppended: &agentv1.UserMessageAppendedUpdate{UserMessage: &agentv1.UserMessage{Text: s.ask, MessageId: s.message}},
	}}}
	for _, piece := range pieces(s.think) {
		updates = append(updates, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ThinkingDelta{ThinkingDelta: &agentv1.ThinkingDeltaUpdate{Text: piece}}})
	}
	for i, r := range s.runs {
		updates = append(updates, callUpdates(fmt.Sprintf("%s-run%d", s.message, i), shellCall(r.command, r.output))...)
	}
	for i, name := range sortedKeys(s.files) {
		old, _ := os.ReadFile(filepath.Join(l.dir, name)) // treat an unreadable file as new
		before := string(old)
		updates = append(updates, callUpdates(fmt.Sprintf("%s-edit%d", s.message, i), editCall(name, &before, s.files[name]))...)
	}
	for _, piece := range pieces(s.say) {
		updates = append(updates, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: piece}}})
	}
	for _, u := range updates {
		if _, err := l.DB.Agents().AppendUpdate(ctx, l.agent.ID, nil, u); err != nil {
			return err
		}
		if err := pause(ctx, livePace); err != nil {
			return err
		}
	}
	if err := l.keep(ctx, s); err != nil {
		return err
	}
	_, err := l.DB.Agents().AppendUpdate(ctx, l.agent.ID, nil, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TurnEnded{TurnEnded: &agentv1.TurnEndedUpdate{}}})
	return err
}

// keep writes the files of the scene and saves the turn with its checkpoints. It
// opens the conversation again, because the user may have rewound it meanwhile.
func (l *livePlay) keep(ctx context.Context, s scene) error {
	d, err := l.reopened(ctx, l.dir, l.agent.Conversation)
	if err != nil {
		return err
	}
	return errors.Join(d.agentTurn(ctx, s), d.space.Close())
}

// reopened opens a workspace of the demonstration for one more turn, which happens now.
func (st Stage) reopened(ctx context.Context, dir, conv string) (*player, error) {
	d := &player{Stage: st, store: st.DB.Conversations(), clock: time.Now(), live: true}
	opts := st.Options
	opts.Conversations = checkpoint.Of(d.store)
	var err error
	if d.space, err = checkpoint.New(st.DB.Blobs(), st.DB.Rows(), &opts).Open(ctx, dir); err != nil {
		return nil, err
	}
	if d.conv, err = d.store.Open(ctx, conv); err != nil {
		return nil, errors.Join(err, d.space.Close())
	}
	info := d.conv.Info()
	d.agent, d.turn, d.root = info.Agent, info.Turns, info.Root
	return d, nil
}

func callUpdates(id string, call *agentv1.ToolCall) []*agentv1.InteractionUpdate {
	return []*agentv1.InteractionUpdate{
		{Message: &agentv1.InteractionUpdate_ToolCallStarted{ToolCallStarted: &agentv1.ToolCallStartedUpdate{CallId: id, ToolCall: call}}},
		{Message: &agentv1.InteractionUpdate_ToolCallCompleted{ToolCallCompleted: &agentv1.ToolCallCompletedUpdate{CallId: id, ToolCall: call}}},
	}
}

// pieces splits a text like a streaming model: a few words at a time.
func pieces(text string) []string {
	var out []string
	words := strings.SplitAfter(text, " ")
	for len(words) > 0 && text != "" {
		n := min(4, len(words))
		out = append(out, strings.Join(words[:n], ""))
		words = words[n:]
	}
	return out
}
