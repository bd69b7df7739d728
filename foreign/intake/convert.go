package intake

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// NewTurn converts a turn to the form in which conversations store it. The same turn
// always gives the same bytes.
func NewTurn(agent string, t foreign.Turn) (conversation.Turn, error) {
	user := &agentv1.UserMessage{Text: valid(t.Prompt), MessageId: t.ID}
	if t.Automatic {
		user.IsSimulatedMsg = proto.Bool(true)
	}
	var steps []*agentv1.ConversationStep
	for _, s := range t.Steps {
		switch {
		case s.Call != nil:
			steps = append(steps, &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: callOf(agent, s.Call)}})
		case s.Thinking != "":
			steps = append(steps, &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ThinkingMessage{
				ThinkingMessage: &agentv1.ThinkingMessage{Text: valid(s.Thinking)}}})
		case s.Text != "":
			steps = append(steps, &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{
				AssistantMessage: &agentv1.AssistantMessage{Text: valid(s.Text)}}})
		}
	}
	return conversation.NewTurn(user, steps...)
}

// callOf converts the call of a tool. Commands, reads and tasks have a form of their own;
// every other tool keeps its name, input and output.
func callOf(agent string, c *foreign.Call) *agentv1.ToolCall {
	call := &agentv1.ToolCall{}
	if c.ID != "" {
		call.ToolCallId = proto.String(valid(c.ID))
	}
	call.StartedAtMs, call.CompletedAtMs = stamp(c.Started), stamp(c.Ended)
	switch {
	case c.Tool == foreign.ShellTool:
		call.Tool = &agentv1.ToolCall_ShellToolCall{ShellToolCall: shellCall(c)}
	case c.Tool == foreign.ReadTool && len(c.Paths) == 1:
		call.Tool = &agentv1.ToolCall_ReadToolCall{ReadToolCall: readCall(c)}
	case c.Tool == foreign.TaskTool:
		call.Tool = &agentv1.ToolCall_TaskToolCall{TaskToolCall: taskCall(c)}
	default:
		call.Tool = &agentv1.ToolCall_McpToolCall{McpToolCall: namedCall(agent, c)}
	}
	return call
}

func stamp(t time.Time) *uint64 {
	if t.IsZero() || t.UnixMilli() < 0 {
		return nil
	}
	return proto.Uint64(uint64(t.UnixMilli()))
}

func shellCall(c *foreign.Call) *agentv1.ShellToolCall {
	call := &agentv1.ShellToolCall{Args: &agentv1.ShellArgs{Command: valid(c.Command), ToolCallId: valid(c.ID)}}
	code := int32(0)
	if c.ExitCode != nil {
		code = int32(*c.ExitCode)
	}
	switch {
	case !c.Answered:
	case c.Failed || code != 0:
		call.Result = &agentv1.ShellResult{Result: &agentv1.ShellResult_Failure{Failure: &agentv1.ShellFailure{
			Command: call.Args.Command, ExitCode: code, Stdout: valid(c.Output)}}}
	default:
		call.Result = &agentv1.ShellResult{Result: &agentv1.ShellResult_Success{Success: &agentv1.ShellSuccess{
			Command: call.Args.Command, Stdout: valid(c.Output)}}}
	}
	return call
}

func readCall(c *foreign.Call) *agentv1.ReadToolCall {
	call := &agentv1.ReadToolCall{Args: &agentv1.ReadToolArgs{Path: valid(c.Paths[0])}}
	switch {
	case !c.Answered:
	case c.Failed:
		call.Result = &agentv1.ReadToolResult{Result: &agentv1.ReadToolResult_Error{
			Error: &agentv1.ReadToolError{ErrorMessage: valid(c.Output)}}}
	default:
		call.Result = &agentv1.ReadToolResult{Result: &agentv1.ReadToolResult_Success{Success: &agentv1.ReadToolSuccess{
			Path: call.Args.Path, Output: &agentv1.ReadToolSuccess_Content{Content: valid(c.Output)}}}}
	}
	return call
}

func taskCall(c *foreign.Call) *agentv1.TaskToolCall {
	call := &agentv1.TaskToolCall{Args: &agentv1.TaskArgs{Description: title(c.Task), Prompt: valid(c.Task)}}
	if c.Subagent != "" {
		call.Args.AgentId = proto.String(valid(c.Subagent))
	}
	switch {
	case !c.Answered:
	case c.Failed:
		call.Result = &agentv1.TaskResult{Result: &agentv1.TaskResult_Error{Error: &agentv1.TaskError{Error: valid(c.Output)}}}
	default:
		done := &agentv1.TaskSuccess{AgentId: call.Args.AgentId}
		if c.Output != "" {
			done.ConversationSteps = []*agentv1.ConversationStep{{Message: &agentv1.ConversationStep_AssistantMessage{
				AssistantMessage: &agentv1.AssistantMessage{Text: valid(c.Output)}}}}
		}
		call.Result = &agentv1.TaskResult{Result: &agentv1.TaskResult_Success{Success: done}}
	}
	return call
}

func namedCall(agent string, c *foreign.Call) *agentv1.McpToolCall {
	call := &agentv1.McpToolCall{Args: &agentv1.McpArgs{
		Name: valid(c.Name), ToolName: valid(c.Name), ToolCallId: valid(c.ID), ProviderIdentifier: agent, Args: fields(c.Input),
	}}
	switch {
	case !c.Answered:
	case c.Failed:
		call.Result = &agentv1.McpToolResult{Result: &agentv1.McpToolResult_Error{Error: &agentv1.McpToolError{Error: valid(c.Output)}}}
	default:
		text := &agentv1.McpToolResultContentItem{Content: &agentv1.McpToolResultContentItem_Text{Text: &agentv1.McpTextContent{Text: valid(c.Output)}}}
		call.Result = &agentv1.McpToolResult{Result: &agentv1.McpToolResult_Success{
			Success: &agentv1.McpSuccess{Content: []*agentv1.McpToolResultContentItem{text}}}}
	}
	return call
}

// fields returns the fields of an input. One that is not an object becomes one field.
func fields(input json.RawMessage) map[string]*structpb.Value {
	if len(bytes.TrimSpace(input)) == 0 {
		return nil
	}
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(input, &object); err != nil {
		object = map[string]json.RawMessage{"input": input}
	}
	out := make(map[string]*structpb.Value, len(object))
	for name, raw := range object {
		if text, ok := plain(raw); ok {
			out[valid(name)] = structpb.NewStringValue(text)
			continue
		}
		value := &structpb.Value{}
		if err := protojson.Unmarshal(raw, value); err != nil {
			value = structpb.NewStringValue(valid(string(raw))) // such as a number that does not fit
		}
		out[valid(name)] = value
	}
	return out
}

// plain returns the text of a JSON string, unless the message parser may read it
// differently. Most inputs are long texts, for which that parser is slow.
func plain(raw json.RawMessage) (string, bool) {
	if !utf8.Valid(raw) || bytes.Contains(raw, []byte(`\u`)) {
		return "", false
	}
	return jsonl.Text(raw)
}

// valid makes a text UTF-8, as the stored form requires.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func detailsOf(t foreign.Turn) *conversation.TurnDetails {
	return &conversation.TurnDetails{
		Model: valid(t.Model), Started: whole(t.Started), Ended: whole(t.Ended),
		Input: t.Usage.Input, Output: t.Usage.Output, CacheRead: t.Usage.CacheRead, CacheWrite: t.Usage.CacheWrite,
		Reasoning: t.Usage.Reasoning, CostUSD: t.Usage.CostUSD, Interrupted: t.Interrupted, Automatic: t.Automatic,
		Done: t.Done, Cut: valid(t.Cut), Mark: string(t.Mark),
	}
}

// whole is a time in the precision of rows.
func whole(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.UnixMilli(max(0, t.UnixMilli()))
}
