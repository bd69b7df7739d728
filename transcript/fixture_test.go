package transcript_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/transcript"
)

var update = flag.Bool("update", false, "write the golden files")

// fixture is a store over memory whose clock ticks by a second.
type fixture struct {
	*conversation.Store
	blobs  blob.Store
	reader *transcript.Reader
	clock  time.Time
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	mem := memblob.New()
	f := &fixture{blobs: blob.Checked(mem), clock: time.UnixMilli(1_700_000_000_000)}
	f.Store = conversation.New(f.blobs, memkv.New(mem), &conversation.Options{Now: func() time.Time {
		f.clock = f.clock.Add(time.Second)
		return f.clock
	}})
	f.reader = transcript.New(f.Store, f.blobs)
	return f
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func say(text string) *agentv1.ConversationStep {
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: text}}}
}

func think(text string) *agentv1.ConversationStep {
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ThinkingMessage{ThinkingMessage: &agentv1.ThinkingMessage{Text: text}}}
}

func call(c *agentv1.ToolCall) *agentv1.ConversationStep {
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: c}}
}

func user(text string) *agentv1.UserMessage { return &agentv1.UserMessage{Text: text} }

func shellCall(command, stdout string, exit int32) *agentv1.ConversationStep {
	return call(&agentv1.ToolCall{
		ToolCallId: proto.String("call-" + command), StartedAtMs: proto.Uint64(1_700_000_100_000),
		Tool: &agentv1.ToolCall_ShellToolCall{ShellToolCall: &agentv1.ShellToolCall{
			Args: &agentv1.ShellArgs{Command: command, WorkingDirectory: "/w", ToolCallId: "noise"},
			Result: &agentv1.ShellResult{Result: &agentv1.ShellResult_Success{
				Success: &agentv1.ShellSuccess{Command: command, Stdout: stdout, ExitCode: exit},
			}},
		}},
	})
}

func readCall(path, content string) *agentv1.ConversationStep {
	return call(&agentv1.ToolCall{Tool: &agentv1.ToolCall_ReadToolCall{ReadToolCall: &agentv1.ReadToolCall{
		Args: &agentv1.ReadToolArgs{Path: path},
		Result: &agentv1.ReadToolResult{Result: &agentv1.ReadToolResult_Success{
			Success: &agentv1.ReadToolSuccess{Output: &agentv1.ReadToolSuccess_Content{Content: content}},
		}},
	}}})
}

func editCall(path string, before *string, after string) *agentv1.ConversationStep {
	return call(&agentv1.ToolCall{Tool: &agentv1.ToolCall_EditToolCall{EditToolCall: &agentv1.EditToolCall{
		Args: &agentv1.EditArgs{Path: path},
		Result: &agentv1.EditResult{Result: &agentv1.EditResult_Success{
			Success: &agentv1.EditSuccess{Path: path, BeforeFullFileContent: before, AfterFullFileContent: after},
		}},
	}}})
}

func mcpCall(tool string, args map[string]any, text string) *agentv1.ConversationStep {
	values := make(map[string]*structpb.Value)
	for k, v := range args {
		values[k] = must(structpb.NewValue(v))
	}
	return call(&agentv1.ToolCall{Tool: &agentv1.ToolCall_McpToolCall{McpToolCall: &agentv1.McpToolCall{
		Args: &agentv1.McpArgs{Name: "server-" + tool, ToolName: tool, Args: values},
		Result: &agentv1.McpToolResult{Result: &agentv1.McpToolResult_Success{Success: &agentv1.McpSuccess{
			Content: []*agentv1.McpToolResultContentItem{{Content: &agentv1.McpToolResultContentItem_Text{Text: &agentv1.McpTextContent{Text: text}}}},
		}}},
	}}})
}

// unknownCall is a call of a tool that the definitions do not have.
func unknownCall(num protowire.Number, arg, result string) *agentv1.ConversationStep {
	body := protowire.AppendTag(nil, 1, protowire.BytesType)
	body = protowire.AppendBytes(body, appendString(nil, 3, arg))
	if result != "" {
		body = protowire.AppendTag(body, 2, protowire.BytesType)
		body = protowire.AppendBytes(body, protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), appendString(nil, 1, result)))
	}
	c := &agentv1.ToolCall{}
	c.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), body))
	return call(c)
}

func appendString(b []byte, num protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
}

func taskCall(agent string, steps ...*agentv1.ConversationStep) *agentv1.ConversationStep {
	return call(&agentv1.ToolCall{Tool: &agentv1.ToolCall_TaskToolCall{TaskToolCall: &agentv1.TaskToolCall{
		Args: &agentv1.TaskArgs{Description: "look around", Prompt: "find the tests"},
		Result: &agentv1.TaskResult{Result: &agentv1.TaskResult_Success{
			Success: &agentv1.TaskSuccess{AgentId: proto.String(agent), ConversationSteps: steps},
		}},
	}}})
}

func turn(t testing.TB, u *agentv1.UserMessage, steps ...*agentv1.ConversationStep) conversation.Turn {
	t.Helper()
	turn, err := conversation.NewTurn(u, steps...)
	check(t, err)
	return turn
}

// sample saves a conversation that has one of everything.
func (f *fixture) sample(t testing.TB) string {
	t.Helper()
	ctx := t.Context()
	c, err := f.Create(ctx, conversation.Info{ID: "sample", Title: "add *retry* to <checkout>", Workspace: "/w/shop", Agent: "demo"})
	check(t, err)
	before := "package shop\n\nfunc Pay() error {\n\treturn post()\n}\n"
	turns := []conversation.Turn{
		turn(t, &agentv1.UserMessage{Text: "add retry to checkout", MessageId: "m1"},
			think("The call is made once.\nIt should be made three times."),
			say("I will read the file first."),
			readCall("checkout/pay.go", before),
			editCall("checkout/pay.go", &before, "package shop\n\nfunc Pay() error {\n\treturn retry(3, post)\n}\n"),
			editCall("checkout/retry.go", nil, "package shop\n"),
			shellCall("go test ./...", "FAIL\tshop\n", 1),
			say("Done, with **one** test failing:\n\n```go\nfunc TestPay(t *testing.T) {}\n```"),
		),
		turn(t, &agentv1.UserMessage{Text: "also ask the others", MessageId: "m2"},
			mcpCall("ask", map[string]any{"who": "others", "n": 2.0}, "they agree"),
			unknownCall(55, "hello there", "delivered"),
			unknownCall(900, "from the future", ""),
			taskCall("agent-a"),
			taskCall("agent-b", say("inline step of b")),
		),
		must(conversation.NewShellTurn(&agentv1.ShellCommand{Command: "git status"}, &agentv1.ShellOutput{Stdout: "clean\n"})),
	}
	sub := &conversation.State{Turns: []conversation.Turn{turn(t, user("find the tests"), say("there are three"))}, TotalTurns: 1}
	check(t, c.SetState(ctx, &conversation.State{
		Turns: turns, TotalTurns: len(turns),
		Subagents: map[string]conversation.Subagent{"agent-a": {State: sub}},
		Summary:   must(conversation.NewItem(&agentv1.ConversationSummary{Summary: "Earlier, nothing happened."})),
		Rest:      &agentv1.ConversationStateStructure{TurnTimings: []*agentv1.StepTiming{{TimestampMs: 1_700_000_050_000}}},
	}))
	_, err = c.Save(ctx, nil)
	check(t, err)
	return c.ID()
}

// save makes a conversation of turns.
func (f *fixture) save(t testing.TB, id string, turns ...conversation.Turn) *conversation.Conversation {
	t.Helper()
	c, err := f.Create(t.Context(), conversation.Info{ID: id, Title: id})
	check(t, err)
	for _, x := range turns {
		check(t, c.AppendTurn(t.Context(), x))
	}
	_, err = c.Save(t.Context(), nil)
	check(t, err)
	return c
}

func (f *fixture) messages(t testing.TB, id string, opts *transcript.Options) []transcript.Message {
	t.Helper()
	tr, err := f.reader.Conversation(t.Context(), id)
	check(t, err)
	var all []transcript.Message
	for m, err := range tr.Messages(t.Context(), opts) {
		check(t, err)
		all = append(all, m)
	}
	return all
}

func (f *fixture) written(t testing.TB, id string, format transcript.Format, opts *transcript.Options) string {
	t.Helper()
	tr, err := f.reader.Conversation(t.Context(), id)
	check(t, err)
	var b bytes.Buffer
	check(t, transcript.Write(t.Context(), &b, tr, format, opts))
	return b.String()
}

// golden compares with a file of testdata.
func golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		check(t, os.MkdirAll("testdata", 0o755))
		check(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	check(t, err)
	if got != string(want) {
		t.Errorf("%s differs from what is written now:\n%s", name, got)
	}
}
