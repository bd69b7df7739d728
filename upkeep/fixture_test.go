package upkeep_test

import (
	"context"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/upkeep"
)

// fixture is a store of conversations over memory, without layers, whose clock ticks by
// a second.
type fixture struct {
	*conversation.Store
	mem   *memblob.Store
	blobs blob.Store
	rows  *memkv.Store
	clock time.Time
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{mem: memblob.New(), clock: time.UnixMilli(1_700_000_000_000)}
	f.blobs = blob.Checked(f.mem)
	f.rows = memkv.New(f.mem)
	f.Store = conversation.New(f.blobs, f.rows, &conversation.Options{Now: func() time.Time {
		f.clock = f.clock.Add(time.Second)
		return f.clock
	}})
	return f
}

func (f *fixture) upkeep() *upkeep.Service {
	return upkeep.New(upkeep.Stores{Blobs: f.blobs, Rows: f.rows, Inventory: f.mem})
}

func (f *fixture) count(t testing.TB) (n int) {
	t.Helper()
	must(t, f.mem.List(context.Background(), blob.ID{}, func(blob.Info) error { n++; return nil }))
	return n
}

func step(text string) *agentv1.ConversationStep {
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: text}}}
}

func userMessage(text string) *agentv1.UserMessage {
	return &agentv1.UserMessage{Text: text, MessageId: "m-" + text}
}

func newTurn(t testing.TB, text string) conversation.Turn {
	t.Helper()
	turn, err := conversation.NewTurn(userMessage(text))
	must(t, err)
	return turn
}

// grow saves a turn for each text.
func (f *fixture) grow(t testing.TB, c *conversation.Conversation, texts ...string) {
	t.Helper()
	for _, text := range texts {
		must(t, c.AppendTurn(context.Background(), newTurn(t, text)))
		_, err := c.Save(context.Background(), &conversation.SaveOptions{MessageID: "m-" + text})
		must(t, err)
	}
}
