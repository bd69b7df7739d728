package transcript_test

import (
	"context"
	"fmt"
	"os"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/transcript"
)

func Example() {
	ctx := context.Background()
	mem := memblob.New()
	blobs := blob.Checked(mem)
	store := conversation.New(blobs, memkv.New(mem), nil)

	c, _ := store.Create(ctx, conversation.Info{Title: "greeting"})
	turn, _ := conversation.NewTurn(&agentv1.UserMessage{Text: "hello"}, &agentv1.ConversationStep{
		Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: "hi there"}},
	})
	_ = c.AppendTurn(ctx, turn)
	if _, err := c.Save(ctx, nil); err != nil {
		fmt.Println(err)
		return
	}

	t, err := transcript.New(store, blobs).Conversation(ctx, c.ID())
	if err != nil {
		fmt.Println(err)
		return
	}
	for m, err := range t.Messages(ctx, nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d %s: %s\n", m.Turn, m.Role, m.Text)
	}
	_ = transcript.Write(ctx, os.Stdout, t, transcript.JSONL, nil)
	// Output:
	// 1 user: hello
	// 1 assistant: hi there
	// {"role":"user","message":{"content":[{"type":"text","text":"hello"}]}}
	// {"role":"assistant","message":{"content":[{"type":"text","text":"hi there"}]}}
	// {"type":"turn_ended","status":"success"}
}
