// Package openai is an agent that gets its next step from any endpoint with the chat
// completions protocol of OpenAI.
//
//	agent := &openai.Agent{URL: "http://127.0.0.1:11434/v1", Model: "qwen3"}
//	mux.Handle(agentv1connect.NewAgentServiceHandler(agentrun.NewService(agentrun.ServeOptions{Agent: agent})))
//
// It keeps everything in the state of the conversation, so a run can continue after
// any interruption. The key is sent only to the endpoint. The client that runs the
// agent executes the tools.
package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Agent requests every step from an endpoint. It is safe for concurrent use.
type Agent struct {
	// URL is the address of the endpoint, without /chat/completions.
	URL string
	// Key, if set, is sent as a bearer token.
	Key string
	// Model is the requested model.
	Model string
	// MaxTokens is the size of the model's context, if known, for the token details of
	// states.
	MaxTokens uint32
	// Client sends the requests; nil means http.DefaultClient.
	Client *http.Client
}

var _ agentrun.Agent = (*Agent)(nil)

// Next implements agentrun.Agent.
func (m *Agent) Next(ctx context.Context, t *agentrun.Turn) (agentrun.Step, error) {
	if n := len(t.Steps); n > 0 && t.Steps[n-1].GetAssistantMessage() != nil {
		return agentrun.Done{}, nil // it has answered
	}
	messages := []chatMessage{{Role: "system", Content: "You are a careful programmer. Use the tools, then answer briefly."}}
	for _, id := range t.State.GetRootPromptMessagesJson() {
		msg, err := promptMessage(ctx, t.Blobs, id)
		if err != nil {
			return nil, err
		}
		messages = append(messages, msg)
	}
	reply, err := m.ask(ctx, messages)
	if err != nil {
		return nil, err
	}
	if len(reply.ToolCalls) == 0 {
		return m.counted(agentrun.SayStep{Text: reply.Content}, reply), nil
	}
	step := agentrun.CallStep{Text: reply.Content}
	for _, c := range reply.ToolCalls {
		call, err := toolCall(c)
		if err != nil {
			return nil, err
		}
		step.Calls = append(step.Calls, call)
	}
	return m.counted(step, reply), nil
}

// counted adds the tokens of a reply to the step made of it.
func (m *Agent) counted(step agentrun.Step, reply chatReply) agentrun.Step {
	if reply.tokens == 0 {
		return step
	}
	return agentrun.CountedStep{Step: step, Tokens: &agentv1.ConversationTokenDetails{UsedTokens: reply.tokens, MaxTokens: m.MaxTokens}}
}

// The messages of the protocol, as far as needed.
type chatMessage struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// promptMessage reads a message of the state's prompt.
func promptMessage(ctx context.Context, blobs blob.Store, field []byte) (chatMessage, error) {
	id, err := blob.IDFromBytes(field)
	if err != nil {
		return chatMessage{}, err
	}
	data, err := blobs.Get(ctx, id)
	if err != nil {
		return chatMessage{}, fmt.Errorf("read prompt: %w", err)
	}
	var in struct {
		Role    string
		Content []struct {
			Type, Text           string
			ToolCallID, ToolName string
			Args, Result         json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return chatMessage{}, fmt.Errorf("read prompt: %w", err)
	}
	out := chatMessage{Role: in.Role}
	for _, part := range in.Content {
		switch part.Type {
		case "text":
			out.Content += part.Text
		case "tool-call":
			c := chatCall{ID: part.ToolCallID, Type: "function"}
			c.Function.Name, c.Function.Arguments = part.ToolName, string(part.Args)
			out.ToolCalls = append(out.ToolCalls, c)
		case "tool-result":
			out.ToolCallID, out.Content = part.ToolCallID, string(part.Result)
		}
	}
	return out, nil
}

// tools are the tools that the model may call. Their names and arguments are those of
// the calls in the state, so the prompt can be sent unchanged.
var tools = json.RawMessage(`[
 {"type":"function","function":{"name":"shell","description":"Run a command.","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}},
 {"type":"function","function":{"name":"read","description":"Read a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}},
 {"type":"function","function":{"name":"edit","description":"Write a whole file.","parameters":{"type":"object","properties":{"path":{"type":"string"},"streamContent":{"type":"string"}},"required":["path","streamContent"]}}}
]`)

// toolCall translates a call of the model.
func toolCall(c chatCall) (*agentv1.ToolCall, error) {
	var args struct{ Command, Path, StreamContent string }
	if err := json.Unmarshal([]byte(c.Function.Arguments), &args); err != nil {
		return nil, &agentrun.Failure{Text: "the model called a tool with arguments that are not JSON"}
	}
	var call *agentv1.ToolCall
	switch c.Function.Name {
	case "shell":
		call = agentrun.Shell(args.Command)
	case "edit":
		call = agentrun.Edit(args.Path, args.StreamContent)
	case "read":
		call = &agentv1.ToolCall{Tool: &agentv1.ToolCall_ReadToolCall{ReadToolCall: &agentv1.ReadToolCall{Args: &agentv1.ReadToolArgs{Path: args.Path}}}}
	default:
		return nil, &agentrun.Failure{Text: "the model called an unknown tool"}
	}
	if c.ID != "" {
		call.ToolCallId = proto.String(c.ID)
	}
	return call, nil
}

// maxReply limits the answer of an endpoint.
const maxReply = 4 << 20

// chatReply is an answer of the model and the tokens of the whole context, 0 if the
// endpoint does not count them.
type chatReply struct {
	chatMessage
	tokens uint32
}

func (m *Agent) ask(ctx context.Context, messages []chatMessage) (chatReply, error) {
	body, err := json.Marshal(map[string]any{"model": m.Model, "messages": messages, "tools": tools})
	if err != nil {
		return chatReply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(m.URL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return chatReply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if m.Key != "" {
		req.Header.Set("Authorization", "Bearer "+m.Key)
	}
	client := m.Client
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(req)
	if err != nil {
		// The client waits a moment and resumes.
		return chatReply{}, fmt.Errorf("ask the model: %w: %w", agentrun.ErrConnectionLost, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	switch {
	case err != nil:
		return chatReply{}, fmt.Errorf("ask the model: %w: %w", agentrun.ErrConnectionLost, err)
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500:
		return chatReply{}, fmt.Errorf("ask the model: %w: status %d", agentrun.ErrConnectionLost, res.StatusCode)
	case res.StatusCode != http.StatusOK:
		return chatReply{}, &agentrun.Failure{Text: fmt.Sprintf("the model's endpoint refused: status %d", res.StatusCode)}
	}
	var reply struct {
		Choices []struct{ Message chatMessage }
		Usage   struct {
			TotalTokens uint32 `json:"total_tokens"`
		}
	}
	if err := json.Unmarshal(data, &reply); err != nil || len(reply.Choices) == 0 {
		return chatReply{}, &agentrun.Failure{Text: "the model's endpoint gave no answer"}
	}
	return chatReply{reply.Choices[0].Message, reply.Usage.TotalTokens}, nil
}
