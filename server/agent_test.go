package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/server"
)

// converse has a client say something to the agent of a server and returns what
// the agent said.
func converse(t *testing.T, c *client.Client) ([]string, error) {
	t.Helper()
	ctx := t.Context()
	mem := memblob.New()
	blobs := blob.Checked(mem)
	store := conversation.New(blobs, memkv.New(mem), nil)
	conv, err := store.Create(ctx, conversation.Info{ID: "c1"})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := agentrun.NewHandler(ctx, blobs, conv, nil)
	if err != nil {
		t.Fatal(err)
	}
	nothing := agentrun.ExecutorFunc(func(context.Context, *agentv1.ExecServerMessage, func(*agentv1.ExecClientMessage)) error {
		return errors.New("no tool is called")
	})
	hc, base := c.HTTP()
	_, runErr := agentrun.Run(ctx, agentrun.Connect(agentv1connect.NewAgentServiceClient(hc, base)), agentrun.Request{
		Handler: handler, Action: agentrun.Say("hello"), Executor: nothing, Backoff: time.Millisecond,
	})
	state, err := store.Hydrate(ctx, "c1", nil)
	if err != nil {
		t.Fatal(err)
	}
	inline, _, err := state.Inline()
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, turn := range inline.GetTurns() {
		for _, step := range turn.GetAgentConversationTurn().GetSteps() {
			said = append(said, step.GetAssistantMessage().GetText())
		}
	}
	return said, runErr
}

func TestRunAnAgent(t *testing.T) {
	agent := agentrun.NewService(agentrun.ServeOptions{Agent: agentrun.NewScripted([]agentrun.Line{{Say: "one"}, {Disconnect: true}, {Say: "two"}})})
	h := newHouse(t, &server.Options{Agent: agent, Limits: access.Limits{Bytes: 1}}) // it stores nothing here
	said, err := converse(t, h.client("a", access.Write))
	if err != nil || len(said) != 2 || said[0] != "one" || said[1] != "two" {
		t.Errorf("the agent said %q, %v", said, err)
	}
	if _, err := converse(t, h.client("a", access.Read)); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("with a token that only reads: %v", err)
	}
}

func TestNoAgentIsConfigured(t *testing.T) {
	_, err := converse(t, dial(t, start(t, nil), token))
	var wire *connect.Error
	if !errors.As(err, &wire) || wire.Code() != connect.CodeUnimplemented {
		t.Errorf("got %v", err)
	}
}
