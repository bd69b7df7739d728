// Command remote is the quick start of docs/embed/GO.md for a server: a conversation there,
// and an agent that is followed.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/stet-dev/stet/client"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

func main() {
	if err := run(context.Background(), os.Stdout, os.Getenv("STET_URL"), os.Getenv("STET_TOKEN")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, url, token string) error {
	c, err := client.New(url, &client.Options{Token: token})
	if err != nil {
		return err
	}
	defer c.Close()

	made, err := c.Conversations().Create(ctx, &stetv1.CreateConversationRequest{Title: "add retry"})
	if err != nil {
		return err
	}
	talk := made.GetConversation()
	saved, err := c.Conversations().Save(ctx, &stetv1.SaveConversationRequest{
		Id: talk.GetId(), Epoch: talk.GetEpoch(), State: &stetv1.SaveConversationRequest_Inline{Inline: said("add retry to checkout")},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "saved turn", saved.GetSave().GetTurns())

	agent := "agent-of-" + talk.GetId()
	if _, err := c.Agents().Create(ctx, agent, "add retry", talk.GetId()); err != nil {
		return err
	}
	update := &agentv1.InteractionUpdate{
		Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: "Looking at checkout"}},
	}
	if _, err := c.Agents().Append(ctx, agent, "first", update); err != nil { // stored once, however often
		return err
	}
	if err := c.Agents().Archive(ctx, agent); err != nil {
		return err
	}
	for event, err := range c.Agents().Follow(ctx, agent, nil) { // resumes after event.Offset by itself
		if err != nil {
			return err
		}
		if event.Update != nil {
			fmt.Fprintln(out, event.Update.GetTextDelta().GetText())
		}
	}
	return nil
}

// said returns a conversation of one turn.
func said(text string) *agentv1.ConversationState {
	turn := &agentv1.AgentConversationTurn{UserMessage: &agentv1.UserMessage{Text: text}}
	return &agentv1.ConversationState{Turns: []*agentv1.ConversationTurn{
		{Turn: &agentv1.ConversationTurn_AgentConversationTurn{AgentConversationTurn: turn}},
	}}
}
