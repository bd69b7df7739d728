package agentrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// toolPart is a call or its result, in the form of the prompt and of pending calls.
type toolPart struct {
	Type   string          `json:"type"`
	ID     string          `json:"toolCallId"`
	Name   string          `json:"toolName"`
	Args   json.RawMessage `json:"args,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

const toolSuffix = "_tool_call"

// toolArm returns the message of the tool inside a call and its field.
func toolArm(call *agentv1.ToolCall) (protoreflect.Message, protoreflect.FieldDescriptor, error) {
	m := call.ProtoReflect()
	field := m.WhichOneof(m.Descriptor().Oneofs().ByName("tool"))
	if field == nil {
		return nil, nil, fmt.Errorf("unknown tool: %w", ErrUnsupported)
	}
	return m.Get(field).Message(), field, nil
}

// part returns the field "args" or "result" of a tool's message as JSON.
func part(tool protoreflect.Message, name protoreflect.Name) (json.RawMessage, error) {
	field := tool.Descriptor().Fields().ByName(name)
	if field == nil || !tool.Has(field) {
		return json.RawMessage("{}"), nil
	}
	data, err := protojson.Marshal(tool.Get(field).Message().Interface())
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", name, err)
	}
	// protojson varies its white space on purpose; hashed bytes must not vary.
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return nil, fmt.Errorf("encode %s: %w", name, err)
	}
	return compact.Bytes(), nil
}

// promptParts returns the prompt messages for a completed call.
func promptParts(call *agentv1.ToolCall) (asked, result toolPart, err error) {
	tool, field, err := toolArm(call)
	if err != nil {
		return toolPart{}, toolPart{}, err
	}
	name := strings.TrimSuffix(string(field.Name()), toolSuffix)
	asked = toolPart{Type: "tool-call", ID: call.GetToolCallId(), Name: name}
	result = toolPart{Type: "tool-result", ID: call.GetToolCallId(), Name: name}
	if asked.Args, err = part(tool, "args"); err != nil {
		return toolPart{}, toolPart{}, err
	}
	result.Result, err = part(tool, "result")
	return asked, result, err
}

// encodePending returns a call in the form of ConversationStateStructure's
// pending_tool_calls.
func encodePending(call *agentv1.ToolCall) (string, error) {
	asked, _, err := promptParts(call)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(asked)
	if err != nil {
		return "", fmt.Errorf("encode pending call: %w", err)
	}
	return string(data), nil
}

// decodePending is the inverse of encodePending. It fails with ErrUnsupported for
// calls of other programs' tools.
func decodePending(text string) (*agentv1.ToolCall, error) {
	var p toolPart
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("pending call: %w: %w", ErrUnsupported, err)
	}
	call := &agentv1.ToolCall{ToolCallId: proto.String(p.ID)}
	m := call.ProtoReflect()
	field := m.Descriptor().Fields().ByName(protoreflect.Name(p.Name + toolSuffix))
	if field == nil || p.ID == "" {
		return nil, fmt.Errorf("pending call of tool %q: %w", p.Name, ErrUnsupported)
	}
	tool := m.Mutable(field).Message()
	args := tool.Descriptor().Fields().ByName("args")
	if args == nil || args.Message() == nil {
		return nil, fmt.Errorf("pending call of tool %q: %w", p.Name, ErrUnsupported)
	}
	into := tool.Mutable(args).Message().Interface()
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(p.Args, into); err != nil {
		return nil, fmt.Errorf("pending call of tool %q: %w: %w", p.Name, ErrUnsupported, err)
	}
	return call, nil
}

// unknownOutcome returns the prompt message that stands for the result of a call that
// cannot be executed here, or false if the text of the call does not name it.
func unknownOutcome(text string) (toolPart, bool) {
	var p toolPart
	if err := json.Unmarshal([]byte(text), &p); err != nil || p.ID == "" {
		return toolPart{}, false
	}
	result, _ := json.Marshal(map[string]string{"error": ErrUnknownOutcome.Error()}) // cannot fail
	return toolPart{Type: "tool-result", ID: p.ID, Name: p.Name, Result: result}, true
}

// rawPart returns the text of a pending call as JSON, even if it is malformed.
func rawPart(text string) any {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return textOf(text)
}

// resolve sets the result of an interrupted call to the one from the client.
func resolve(call *agentv1.ToolCall, r *agentv1.InterruptedPendingToolCallResolution) {
	if shell := call.GetShellToolCall(); shell != nil && r.GetShellResult() != nil {
		shell.Result = r.GetShellResult()
	}
	if task := call.GetTaskToolCall(); task != nil && r.GetTaskResult() != nil {
		task.Result = r.GetTaskResult()
	}
}

// call executes a call and puts the result into it. A failure that the tool reports
// is also a result; an error ends the run.
func (w *worker) call(ctx context.Context, call *agentv1.ToolCall) error {
	id := call.GetToolCallId()
	switch t := call.GetTool().(type) {
	case *agentv1.ToolCall_ShellToolCall:
		return w.shell(ctx, id, t.ShellToolCall)
	case *agentv1.ToolCall_EditToolCall:
		return w.edit(ctx, id, t.EditToolCall)
	case *agentv1.ToolCall_ReadToolCall:
		return w.read(ctx, id, t.ReadToolCall)
	case *agentv1.ToolCall_DeleteToolCall:
		return w.delete(ctx, id, t.DeleteToolCall)
	case *agentv1.ToolCall_UpdateTodosToolCall:
		args := t.UpdateTodosToolCall.GetArgs()
		list, err := w.d.setTodos(ctx, args)
		t.UpdateTodosToolCall.Result = &agentv1.UpdateTodosResult{Result: &agentv1.UpdateTodosResult_Success{
			Success: &agentv1.UpdateTodosSuccess{Todos: list, TotalCount: int32(len(list)), WasMerge: args.GetMerge()},
		}}
		return err
	case *agentv1.ToolCall_TaskToolCall:
		return w.subagent(ctx, id, t.TaskToolCall)
	}
	_, field, err := toolArm(call)
	if err != nil {
		return err
	}
	return fmt.Errorf("call %s: %w", field.Name(), ErrUnsupported)
}

func (w *worker) shell(ctx context.Context, id string, t *agentv1.ShellToolCall) error {
	args := proto.CloneOf(t.GetArgs())
	args.ToolCallId = id
	msg, err := w.s.exec(ctx, &agentv1.ExecServerMessage{ExecId: w.execID(), Message: &agentv1.ExecServerMessage_ShellArgs{ShellArgs: args}})
	var thrown *thrownError
	switch {
	case errors.As(err, &thrown):
		t.Result = &agentv1.ShellResult{Result: &agentv1.ShellResult_SpawnError{SpawnError: &agentv1.ShellSpawnError{Command: args.GetCommand(), Error: thrown.text}}}
	case err != nil:
		return err
	case msg.GetShellResult() == nil:
		return protocol("the answer to shell_args is %T", msg.GetMessage())
	default:
		t.Result = msg.GetShellResult()
		if r := t.Result.GetSuccess(); r != nil {
			r.Stdout, r.Stderr = shorten(r.GetStdout()), shorten(r.GetStderr())
		}
		if r := t.Result.GetFailure(); r != nil {
			r.Stdout, r.Stderr = shorten(r.GetStdout()), shorten(r.GetStderr())
		}
	}
	return nil
}

// maxText is how much of a command's output or of a file a step holds: steps are
// blobs that must fit into a message.
const maxText = 512 << 10

// shorten keeps the beginning and the end of a text that is too long.
func shorten(text string) string {
	if len(text) <= maxText {
		return text
	}
	head, tail := text[:maxText/2], text[len(text)-maxText/2:]
	return strings.ToValidUTF8(head, "") + fmt.Sprintf("\n[… %d bytes left out …]\n", len(text)-maxText) + strings.ToValidUTF8(tail, "")
}

// readFile returns a file's text, or nil if it does not exist.
func (w *worker) readFile(ctx context.Context, execID, call, path string) (*string, *agentv1.ReadResult, error) {
	msg, err := w.s.exec(ctx, &agentv1.ExecServerMessage{ExecId: execID, Message: &agentv1.ExecServerMessage_ReadArgs{
		ReadArgs: &agentv1.ReadArgs{Path: path, ToolCallId: call},
	}})
	if err != nil {
		return nil, nil, err
	}
	result := msg.GetReadResult()
	if result == nil {
		return nil, nil, protocol("the answer to read_args is %T", msg.GetMessage())
	}
	if success := result.GetSuccess(); success != nil {
		text := success.GetContent()
		if data := success.GetData(); data != nil {
			text = string(data)
		}
		return &text, result, nil
	}
	return nil, result, nil
}

func (w *worker) read(ctx context.Context, id string, t *agentv1.ReadToolCall) error {
	path := t.GetArgs().GetPath()
	failed := func(text string) {
		t.Result = &agentv1.ReadToolResult{Result: &agentv1.ReadToolResult_Error{Error: &agentv1.ReadToolError{ErrorMessage: text}}}
	}
	text, result, err := w.readFile(ctx, w.execID(), id, path)
	var thrown *thrownError
	switch {
	case errors.As(err, &thrown):
		failed(thrown.text)
	case err != nil:
		return err
	case text == nil:
		failed("cannot read the file")
	default:
		t.Result = &agentv1.ReadToolResult{Result: &agentv1.ReadToolResult_Success{Success: &agentv1.ReadToolSuccess{
			Output:  &agentv1.ReadToolSuccess_Content{Content: shorten(strings.ToValidUTF8(*text, "\uFFFD"))},
			IsEmpty: *text == "", ExceededLimit: len(*text) > maxText,
			TotalLines: uint32(result.GetSuccess().GetTotalLines()), Path: path,
		}}}
		w.d.readPath(path)
	}
	return nil
}

// edit reads a file and writes it. Each has its own id, so that a resumed run gets
// the content before its first attempt.
func (w *worker) edit(ctx context.Context, id string, t *agentv1.EditToolCall) error {
	path, content := t.GetArgs().GetPath(), t.GetArgs().GetStreamContent()
	failed := func(text string) error {
		t.Result = &agentv1.EditResult{Result: &agentv1.EditResult_Error{Error: &agentv1.EditError{Path: path, Error: text}}}
		return nil
	}
	var thrown *thrownError
	before, _, err := w.readFile(ctx, w.execID()+"/read", id, path)
	if errors.As(err, &thrown) {
		return failed(thrown.text)
	}
	if err != nil {
		return err
	}
	msg, err := w.s.exec(ctx, &agentv1.ExecServerMessage{ExecId: w.execID() + "/write", Message: &agentv1.ExecServerMessage_WriteArgs{
		WriteArgs: &agentv1.WriteArgs{Path: path, FileText: content, ToolCallId: id},
	}})
	switch result := msg.GetWriteResult(); {
	case errors.As(err, &thrown):
		return failed(thrown.text)
	case err != nil:
		return err
	case result == nil:
		return protocol("the answer to write_args is %T", msg.GetMessage())
	case result.GetRejected() != nil:
		t.Result = &agentv1.EditResult{Result: &agentv1.EditResult_Rejected{Rejected: &agentv1.EditRejected{Path: path, Reason: result.GetRejected().GetReason()}}}
		return nil
	case result.GetSuccess() == nil:
		return failed("cannot write the file: " + result.GetError().GetError())
	}
	success := &agentv1.EditSuccess{Path: path, AfterFullFileContent: shorten(content)}
	if before != nil {
		success.BeforeFullFileContent = proto.String(shorten(strings.ToValidUTF8(*before, "\uFFFD")))
	}
	t.Result = &agentv1.EditResult{Result: &agentv1.EditResult_Success{Success: success}}
	w.setFile(path, before, &content)
	return nil
}

func (w *worker) delete(ctx context.Context, id string, t *agentv1.DeleteToolCall) error {
	path := t.GetArgs().GetPath()
	msg, err := w.s.exec(ctx, &agentv1.ExecServerMessage{ExecId: w.execID(), Message: &agentv1.ExecServerMessage_DeleteArgs{
		DeleteArgs: &agentv1.DeleteArgs{Path: path, ToolCallId: id},
	}})
	var thrown *thrownError
	switch {
	case errors.As(err, &thrown):
		t.Result = &agentv1.DeleteResult{Result: &agentv1.DeleteResult_Error{Error: &agentv1.DeleteError{Path: path, Error: thrown.text}}}
	case err != nil:
		return err
	case msg.GetDeleteResult() == nil:
		return protocol("the answer to delete_args is %T", msg.GetMessage())
	default:
		t.Result = msg.GetDeleteResult()
		if ok := t.Result.GetSuccess(); ok != nil {
			w.setFile(path, proto.String(ok.GetPrevContent()), nil)
			ok.PrevContent = shorten(ok.GetPrevContent())
		}
	}
	return nil
}

// setFile adds a file to the state. A file too large for a message is removed from
// it: no content is better than partial or old content.
func (w *worker) setFile(path string, before, after *string) {
	fits := func(content *string) bool { return content == nil || len(*content) <= w.s.maxContent() }
	_, known := w.d.state.FileStatesV2[path]
	if fits(after) && (known || fits(before)) {
		w.d.setFile(path, before, after)
		return
	}
	delete(w.d.state.FileStatesV2, path)
	w.d.dirty = true
}
