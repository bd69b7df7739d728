package openai

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stet-dev/stet/agentrun"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

const canary = "sk-canary-0123456789"

// next asks an agent for a step; the endpoint answers with a status and a body.
func next(t *testing.T, status int, body string) (agentrun.Step, error) {
	t.Helper()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+canary {
			t.Errorf("the endpoint was given %q", r.Header.Get("Authorization"))
		}
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	defer endpoint.Close()
	agent := &Agent{URL: endpoint.URL, Key: canary, Model: "any"}
	return agent.Next(context.Background(), &agentrun.Turn{Number: 1, State: &agentv1.ConversationStateStructure{}})
}

func reply(call string) string {
	return `{"choices":[{"message":{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":` + call + `}]}}]}`
}

func TestCallsOfTools(t *testing.T) {
	for _, test := range []struct {
		name, call string
		want       func(*agentv1.ToolCall) bool
	}{
		{"shell", `{"name":"shell","arguments":"{\"command\":\"ls\"}"}`, func(c *agentv1.ToolCall) bool { return c.GetShellToolCall().GetArgs().GetCommand() == "ls" }},
		{"read", `{"name":"read","arguments":"{\"path\":\"a\"}"}`, func(c *agentv1.ToolCall) bool { return c.GetReadToolCall().GetArgs().GetPath() == "a" }},
		{"edit", `{"name":"edit","arguments":"{\"path\":\"a\",\"streamContent\":\"b\"}"}`, func(c *agentv1.ToolCall) bool {
			return c.GetEditToolCall().GetArgs().GetStreamContent() == "b"
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			step, err := next(t, 200, reply(test.call))
			calls, ok := step.(agentrun.CallStep)
			if err != nil || !ok || len(calls.Calls) != 1 || calls.Calls[0].GetToolCallId() != "c1" || !test.want(calls.Calls[0]) {
				t.Errorf("got %v, %v", step, err)
			}
		})
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		body   string
		again  bool // whether the client should come back
	}{
		{"refused", 401, "", false},
		{"too many", 429, "", true},
		{"down", 502, "", true},
		{"no JSON", 200, "<html>", false},
		{"nothing said", 200, `{"choices":[]}`, false},
		{"an unknown tool", 200, reply(`{"name":"launch","arguments":"{}"}`), false},
		{"arguments that are none", 200, reply(`{"name":"shell","arguments":"ls"}`), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			step, err := next(t, test.status, test.body)
			if err == nil || step != nil {
				t.Fatalf("got %v, %v", step, err)
			}
			if got := errors.Is(err, agentrun.ErrConnectionLost); got != test.again {
				t.Errorf("come back: %v, want %v (%v)", got, test.again, err)
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the error holds the key: %v", err)
			}
		})
	}
}
