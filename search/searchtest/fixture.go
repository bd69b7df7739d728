package searchtest

import (
	"context"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/search"
)

// fixture is a store over memory, with an index, whose clock advances by a second.
type fixture struct {
	*conversation.Store
	blobs blob.Store
	rows  *memkv.Store
	index search.Searcher
	clock time.Time
}

func newFixture(t testing.TB, open Open) *fixture {
	t.Helper()
	mem := memblob.New()
	f := &fixture{blobs: blob.Checked(mem), rows: memkv.New(mem), clock: time.UnixMilli(1_700_000_000_000)}
	f.Store = conversation.New(f.blobs, f.rows, &conversation.Options{Now: func() time.Time {
		f.clock = f.clock.Add(time.Second)
		return f.clock
	}})
	f.index = f.openOver(t, open, f.blobs)
	return f
}

// openOver opens an index over other blobs.
func (f *fixture) openOver(t testing.TB, open Open, blobs blob.Store) search.Searcher {
	t.Helper()
	store := f.Store
	if blobs != f.blobs {
		store = conversation.New(blobs, f.rows, nil)
	}
	ix := open(t, store, blobs, f.rows)
	t.Cleanup(func() { Check(t, ix.Close()) })
	return ix
}

// missing is a store that has lost a blob.
type missing struct {
	blob.Store
	id blob.ID
}

func (m *missing) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if id == m.id {
		return nil, blob.NotFound(id)
	}
	return m.Store.Get(ctx, id)
}

// Check ends a test at an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Say makes an answer step.
func Say(text string) *agentv1.ConversationStep {
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: text}}}
}

// Think makes a thinking step.
func Think(text string) *agentv1.ConversationStep {
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ThinkingMessage{ThinkingMessage: &agentv1.ThinkingMessage{Text: text}}}
}

// Shell makes a step that runs a command.
func Shell(command, output string) *agentv1.ConversationStep {
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: &agentv1.ToolCall{
		Tool: &agentv1.ToolCall_ShellToolCall{ShellToolCall: &agentv1.ShellToolCall{
			Args:   &agentv1.ShellArgs{Command: command},
			Result: &agentv1.ShellResult{Result: &agentv1.ShellResult_Success{Success: &agentv1.ShellSuccess{Stdout: output}}},
		}},
	}}}
}

// Read makes a step that reads a file.
func Read(path, content string) *agentv1.ConversationStep {
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: &agentv1.ToolCall{
		Tool: &agentv1.ToolCall_ReadToolCall{ReadToolCall: &agentv1.ReadToolCall{
			Args:   &agentv1.ReadToolArgs{Path: path},
			Result: &agentv1.ReadToolResult{Result: &agentv1.ReadToolResult_Success{Success: &agentv1.ReadToolSuccess{Output: &agentv1.ReadToolSuccess_Content{Content: content}}}},
		}},
	}}}
}

// Turn makes a turn of a user message and the agent's steps.
func Turn(t testing.TB, text string, steps ...*agentv1.ConversationStep) conversation.Turn {
	t.Helper()
	made, err := conversation.NewTurn(&agentv1.UserMessage{Text: text}, steps...)
	Check(t, err)
	return made
}

// save makes a conversation of turns.
func (f *fixture) save(t testing.TB, id string, turns ...conversation.Turn) *conversation.Conversation {
	t.Helper()
	c, err := f.Create(t.Context(), conversation.Info{ID: id, Title: "title of " + id})
	Check(t, err)
	Add(t, c, turns...)
	return c
}

// Add saves further turns.
func Add(t testing.TB, c *conversation.Conversation, turns ...conversation.Turn) {
	t.Helper()
	for _, x := range turns {
		Check(t, c.AppendTurn(t.Context(), x))
	}
	_, err := c.Save(t.Context(), nil)
	Check(t, err)
}

func (f *fixture) update(t testing.TB, ids ...string) search.Stats {
	t.Helper()
	stats, err := f.index.Update(t.Context(), ids...)
	Check(t, err)
	return stats
}

// Find returns the hits of a query as "conversation/message".
func Find(t testing.TB, ix search.Searcher, query string, opts *search.SearchOptions) []string {
	t.Helper()
	page, err := ix.Search(t.Context(), query, opts)
	Check(t, err)
	var out []string
	for _, h := range page.Hits {
		out = append(out, h.Conversation+"/"+h.MessageID)
	}
	return out
}
