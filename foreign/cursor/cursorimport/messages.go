package cursorimport

import (
	"cmp"
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/cursor"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// rebuild makes a state from the messages of a conversation without one: each user
// message begins a turn, and the assistant's answers, thoughts and calls are its
// steps. It returns zero if the messages are empty.
func (j *job) rebuild(ctx context.Context) (blob.ID, error) {
	b := &rebuilder{im: j.im, state: &agentv1.ConversationStateStructure{}}
	for m, err := range j.im.src.Messages(ctx, j.conv) {
		if err != nil {
			if fatal(ctx, err) {
				return blob.ID{}, err
			}
			break // reported when the messages were read
		}
		if m.Orphan || m.Raw == nil {
			continue
		}
		if err := b.add(ctx, m); err != nil {
			return blob.ID{}, err
		}
	}
	if err := b.endTurn(ctx); err != nil || len(b.state.Turns) == 0 {
		return blob.ID{}, err
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(b.state)
	if err != nil {
		return blob.ID{}, fmt.Errorf("encode state: %w", err)
	}
	root := blob.New(data)
	return root.ID, j.im.putNew(ctx, root)
}

// rebuilder makes turns, one at a time.
type rebuilder struct {
	im    *importer
	state *agentv1.ConversationStateStructure
	user  *agentv1.UserMessage
	steps []*agentv1.ConversationStep
}

func (b *rebuilder) add(ctx context.Context, m cursor.Message) error {
	if m.Role == cursor.RoleUser {
		if err := b.endTurn(ctx); err != nil {
			return err
		}
		b.user = &agentv1.UserMessage{Text: m.Text, MessageId: m.ID}
		return nil
	}
	if m.Thinking != "" {
		b.step(&agentv1.ConversationStep{Message: &agentv1.ConversationStep_ThinkingMessage{
			ThinkingMessage: &agentv1.ThinkingMessage{Text: m.Thinking}}})
	}
	if m.Text != "" {
		b.step(&agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{
			AssistantMessage: &agentv1.AssistantMessage{Text: m.Text}}})
	}
	if m.Tool != nil {
		b.step(&agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: toolCall(m.Tool)}})
	}
	return nil
}

func (b *rebuilder) step(s *agentv1.ConversationStep) { b.steps = append(b.steps, s) }

// endTurn stores the current turn, if there is one.
func (b *rebuilder) endTurn(ctx context.Context) error {
	if b.user == nil && len(b.steps) == 0 {
		return nil
	}
	turn, err := conversation.NewTurn(b.user, b.steps...)
	if err != nil {
		return err
	}
	b.user, b.steps = nil, nil
	b.state.Turns = append(b.state.Turns, turn.Structure.ID().Bytes())
	return b.im.putNew(ctx, (&conversation.State{Turns: []conversation.Turn{turn}}).Blobs()...)
}

// toolCall converts a tool call to the newer form. Tools without a lossless form
// become calls by name, with unchanged input and output.
func toolCall(use *cursor.ToolUse) *agentv1.ToolCall {
	call := &agentv1.ToolCall{}
	if use.CallID != "" {
		call.ToolCallId = &use.CallID
	}
	input, err := cursor.ParseDocument([]byte(use.Input))
	output, outputErr := cursor.ParseDocument([]byte(use.Output))
	if err == nil && (use.Output == "" || outputErr == nil) {
		switch use.Name {
		case "run_terminal_cmd", "run_terminal_command", "run_terminal_command_v2":
			call.Tool = shellCall(use, input, output)
		case "read_file", "read_file_v2":
			call.Tool = readCall(use, input, output)
		}
	}
	if call.Tool == nil {
		call.Tool = namedCall(use, input)
	}
	return call
}

func shellCall(use *cursor.ToolUse, input, output cursor.Document) *agentv1.ToolCall_ShellToolCall {
	args := &agentv1.ShellArgs{
		Command: input.Text("command"), WorkingDirectory: input.Text("cwd"), ToolCallId: use.CallID,
		IsBackground: input.Flag("is_background") || input.Flag("isBackground"),
	}
	call := &agentv1.ShellToolCall{Args: args}
	code := output.Integer("exitCodeV2")
	if _, ok := output.Number("exitCodeV2"); !ok {
		code = output.Integer("exitCode")
	}
	text := output.Text("output")
	switch {
	case use.Output == "":
	case code != 0 || use.Failed():
		call.Result = &agentv1.ShellResult{Result: &agentv1.ShellResult_Failure{Failure: &agentv1.ShellFailure{
			Command: args.Command, WorkingDirectory: args.WorkingDirectory, ExitCode: int32(code), Stdout: text}}}
	default:
		call.Result = &agentv1.ShellResult{Result: &agentv1.ShellResult_Success{Success: &agentv1.ShellSuccess{
			Command: args.Command, WorkingDirectory: args.WorkingDirectory, Stdout: text}}}
	}
	return &agentv1.ToolCall_ShellToolCall{ShellToolCall: call}
}

// pathFields are the names of the path field in different releases.
var pathFields = []string{"path", "targetFile", "target_file", "relativeWorkspacePath", "file_path", "effectiveUri"}

func pathOf(input cursor.Document) string {
	for _, field := range pathFields {
		if path := input.Text(field); path != "" {
			return path
		}
	}
	return ""
}

func readCall(use *cursor.ToolUse, input, output cursor.Document) *agentv1.ToolCall_ReadToolCall {
	call := &agentv1.ReadToolCall{Args: &agentv1.ReadToolArgs{Path: pathOf(input)}}
	switch {
	case use.Output == "":
	case use.Failed():
		call.Result = &agentv1.ReadToolResult{Result: &agentv1.ReadToolResult_Error{
			Error: &agentv1.ReadToolError{ErrorMessage: cmp.Or(output.Text("error"), use.Output)}}}
	default:
		call.Result = &agentv1.ReadToolResult{Result: &agentv1.ReadToolResult_Success{Success: &agentv1.ReadToolSuccess{
			Path: call.Args.Path, Output: &agentv1.ReadToolSuccess_Content{Content: cmp.Or(output.Text("contents"), output.Text("content"))}}}}
	}
	return &agentv1.ToolCall_ReadToolCall{ReadToolCall: call}
}

func namedCall(use *cursor.ToolUse, input cursor.Document) *agentv1.ToolCall_McpToolCall {
	call := &agentv1.McpToolCall{Args: &agentv1.McpArgs{
		Name: use.Name, ToolName: use.Name, ToolCallId: use.CallID, ProviderIdentifier: sourceName, Args: values(input, use.Input),
	}}
	switch {
	case use.Output == "" && !use.Failed():
	case use.Failed():
		call.Result = &agentv1.McpToolResult{Result: &agentv1.McpToolResult_Error{
			Error: &agentv1.McpToolError{Error: cmp.Or(use.Output, use.Status)}}}
	default:
		text := &agentv1.McpToolResultContentItem{Content: &agentv1.McpToolResultContentItem_Text{Text: &agentv1.McpTextContent{Text: use.Output}}}
		call.Result = &agentv1.McpToolResult{Result: &agentv1.McpToolResult_Success{
			Success: &agentv1.McpSuccess{Content: []*agentv1.McpToolResultContentItem{text}}}}
	}
	return &agentv1.ToolCall_McpToolCall{McpToolCall: call}
}
