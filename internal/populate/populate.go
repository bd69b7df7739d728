// Package populate fills a store with many small conversations, for measurements of
// what grows with their number.
//
//	err := populate.Conversations(ctx, db.Conversations(), 100_000)
//
// What it makes depends only on the number of the conversation, so that two stores of
// the same size hold the same texts. It knows the library's own calls only: titles,
// workspaces, agents and words are spread as a list, a filter or a search meets them.
package populate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Agents are the agents of the conversations, the most common one first.
var Agents = []string{"claude-code", "codex", "gemini", "opencode"}

// Workspaces is the number of directories that the conversations belong to.
const Workspaces = 200

// writers is how many conversations are saved at once, so that they share commits.
const writers = 64

var words = strings.Fields(`retry timeout checkout payment order invoice parser token stream buffer cache index
	worker queue lease shard replica leader follower snapshot checkpoint rewind branch merge diff patch review test fixture
	benchmark profile trace metric alert deploy rollback config secret header cookie session router handler middleware`)

// Workspace is the directory of the n-th conversation.
func Workspace(n int) string { return fmt.Sprintf("/home/me/src/project-%03d", (n*7919)%Workspaces) }

// Agent is the agent of the n-th conversation.
func Agent(n int) string {
	for i := range Agents {
		if n%10 < []int{6, 8, 9, 10}[i] {
			return Agents[i]
		}
	}
	return Agents[0]
}

// Conversations adds n conversations of one turn each.
func Conversations(ctx context.Context, store *conversation.Store, n int) error {
	return Some(ctx, store, 0, n)
}

// Some adds the conversations with the numbers from first up to n.
func Some(ctx context.Context, store *conversation.Store, first, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	next.Store(int64(first))
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := one(ctx, store, i); err != nil {
					cancel(fmt.Errorf("conversation %d: %w", i, err))
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func one(ctx context.Context, store *conversation.Store, n int) error {
	random := rand.New(rand.NewPCG(uint64(n), 17))
	text := func(length int) string {
		said := make([]string, length)
		for i := range said {
			said[i] = words[int(float64(len(words))*random.Float64()*random.Float64())]
		}
		return strings.Join(said, " ")
	}
	c, err := store.Create(ctx, conversation.Info{Title: text(4), Workspace: Workspace(n), Agent: Agent(n)})
	if err != nil {
		return err
	}
	question := &agentv1.UserMessage{Text: fmt.Sprintf("%s number%d", text(12), n), MessageId: fmt.Sprintf("m-%d", n)}
	answer := &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: text(40)}}}
	turn, err := conversation.NewTurn(question, answer)
	if err != nil {
		return err
	}
	if err := c.AppendTurn(ctx, turn); err != nil {
		return err
	}
	_, err = c.Save(ctx, nil)
	return err
}
