package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/agentrun/openai"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
	"github.com/stet-dev/stet/kv/memkv"
)

const secret = "sk-canary-0123456789"

// said is a message of the protocol.
type said struct {
	Role, Content string
	ToolCalls     []struct{ ID string } `json:"tool_calls"`
	ToolCallID    string                `json:"tool_call_id"`
}

// endpoint is a model that plays replies and keeps what it was asked.
type endpoint struct {
	replies []string // a JSON message, or a number: that status
	asked   [][]said
	keys    []string
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct{ Messages []said }
	if r.URL.Path != "/v1/chat/completions" || json.NewDecoder(r.Body).Decode(&in) != nil {
		http.Error(w, "bad", http.StatusBadRequest)
		return
	}
	e.asked, e.keys = append(e.asked, in.Messages), append(e.keys, r.Header.Get("Authorization"))
	reply := e.replies[0]
	e.replies = e.replies[1:]
	var status int
	if json.Unmarshal([]byte(reply), &status) == nil {
		w.WriteHeader(status)
		return
	}
	w.Write([]byte(`{"choices":[{"message":` + reply + `}]}`))
}

// talk has a client say something to the agent and returns its conversation.
func talk(t *testing.T, e *endpoint) (*agentv1.ConversationState, []string, error) {
	t.Helper()
	fake := httptest.NewServer(e)
	defer fake.Close()
	listener, err := listenLocally("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(&openai.Agent{URL: fake.URL + "/v1/", Key: secret, Model: "test"})
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	return converse(t, listener.Addr())
}

func converse(t *testing.T, addr net.Addr) (*agentv1.ConversationState, []string, error) {
	t.Helper()
	ctx := context.Background()
	mem := memblob.New()
	blobs, rows := blob.Checked(mem), memkv.New(mem)
	store := conversation.New(blobs, rows, nil)
	conv, err := store.Create(ctx, conversation.Info{ID: "c1"})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := agentrun.NewHandler(ctx, blobs, conv, nil)
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	executor := agentrun.ExecutorFunc(func(_ context.Context, req *agentv1.ExecServerMessage, reply func(*agentv1.ExecClientMessage)) error {
		commands = append(commands, req.GetShellArgs().GetCommand())
		reply(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_ShellResult{ShellResult: &agentv1.ShellResult{
			Result: &agentv1.ShellResult_Success{Success: &agentv1.ShellSuccess{Stdout: "main.go"}},
		}}})
		return nil
	})
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	client := agentv1connect.NewAgentServiceClient(&http.Client{Transport: transport}, "http://"+addr.String())
	_, runErr := agentrun.Run(ctx, agentrun.Connect(client), agentrun.Request{
		Handler: handler, Action: agentrun.Say("what is here?"), Executor: executor, Backoff: time.Millisecond,
	})
	state, err := store.Hydrate(ctx, "c1", nil)
	if err != nil {
		t.Fatal(err)
	}
	inline, _, err := state.Inline()
	if err != nil {
		t.Fatal(err)
	}
	return inline, commands, runErr
}

func TestAConversationWithAModel(t *testing.T) {
	e := &endpoint{replies: []string{
		`{"role":"assistant","content":"I look.","tool_calls":[{"id":"call_7","type":"function","function":{"name":"shell","arguments":"{\"command\":\"ls\"}"}}]}`,
		`503`, // a moment of weakness, after which the run is resumed
		`{"role":"assistant","content":"There is main.go."}`,
	}}
	state, commands, err := talk(t, e)
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) != 1 || commands[0] != "ls" {
		t.Errorf("commands are %v", commands)
	}
	steps := state.GetTurns()[0].GetAgentConversationTurn().GetSteps()
	if len(steps) != 3 || steps[0].GetAssistantMessage().GetText() != "I look." || steps[2].GetAssistantMessage().GetText() != "There is main.go." {
		t.Errorf("steps are %v", steps)
	}
	last := e.asked[len(e.asked)-1]
	if n := len(last); n != 5 || last[1].Content != "what is here?" || last[3].ToolCalls[0].ID != "call_7" || !strings.Contains(last[4].Content, "main.go") || last[4].ToolCallID != "call_7" {
		t.Errorf("the model was told %+v", last)
	}
	for _, key := range e.keys {
		if key != "Bearer "+secret {
			t.Errorf("the endpoint was given %q", key)
		}
	}
}

func TestRefusalDoesNotShowTheKey(t *testing.T) {
	_, _, err := talk(t, &endpoint{replies: []string{`401`}})
	if err == nil || !strings.Contains(err.Error(), "status 401") || strings.Contains(err.Error(), secret) {
		t.Errorf("the run ended with %v", err)
	}
}

func TestOnlyLoopback(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "nonsense"} {
		if l, err := listenLocally(address); err == nil {
			l.Close()
			t.Errorf("%s was accepted", address)
		}
	}
}
