package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation/graph"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
)

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func id(n int) []byte { return blob.Sum(fmt.Appendf(nil, "blob %d", n)).Bytes() }

func field(num protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), content)
}

func descriptor(t *testing.T, name string) protoreflect.MessageDescriptor {
	t.Helper()
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		t.Fatalf("table names %s: %v", name, err)
	}
	return d.(protoreflect.MessageDescriptor)
}

// The aiserver package is only needed for its descriptors here.
var _ = (*aiserverv1.CloudAgentState)(nil)

func TestTableAgreesWithTheMessages(t *testing.T) {
	for _, e := range graph.Edges() {
		fd := descriptor(t, e.Message).Fields().ByNumber(e.Field)
		switch {
		case fd == nil:
			t.Errorf("%s has no field %d", e.Message, e.Field)
			continue
		case string(fd.Name()) != e.Name:
			t.Errorf("%s field %d is %s, table says %s", e.Message, e.Field, fd.Name(), e.Name)
		case fd.IsMap() != e.Map:
			t.Errorf("%s.%s: map is %v", e.Message, e.Name, fd.IsMap())
		}
		if fd.IsMap() {
			fd = fd.MapValue()
		}
		if e.Into == "" && fd.Kind() != protoreflect.BytesKind {
			t.Errorf("%s.%s is %s, want bytes", e.Message, e.Name, fd.Kind())
		}
		if e.Into != "" && (fd.Message() == nil || string(fd.Message().FullName()) != e.Into) {
			t.Errorf("%s.%s does not embed %s", e.Message, e.Name, e.Into)
		}
	}
}

// Every field of the reachable messages that is called a blob id, and every
// embedded message that has such fields, must be in the table.
func TestTableForgetsNoBlobID(t *testing.T) {
	type key struct {
		message string
		field   protowire.Number
	}
	have := map[key]bool{}
	holders := map[string]bool{}
	for _, e := range graph.Edges() {
		have[key{e.Message, e.Field}] = true
		holders[e.Message] = true
	}
	for message := range holders {
		fields := descriptor(t, message).Fields()
		for i := range fields.Len() {
			fd := fields.Get(i)
			target := fd
			if fd.IsMap() {
				target = fd.MapValue()
			}
			needed := target.Kind() == protoreflect.BytesKind && strings.Contains(string(fd.Name()), "blob_id") ||
				target.Message() != nil && holders[string(target.Message().FullName())]
			if needed && !have[key{message, fd.Number()}] {
				t.Errorf("%s.%s is not in the table", message, fd.Name())
			}
		}
	}
}

func TestRefsFollowsEveryKindOfEdge(t *testing.T) {
	inner := &agentv1.ConversationStateStructure{Turns: [][]byte{id(20)}}
	state := &agentv1.ConversationStateStructure{
		RootPromptMessagesJson: [][]byte{id(1), id(2)},
		TurnsOld:               [][]byte{id(3)},
		Todos:                  [][]byte{id(4)},
		Summary:                id(5),
		Plan:                   id(6),
		Turns:                  [][]byte{id(7)},
		SummaryArchive:         id(8),
		SummaryArchives:        [][]byte{id(9)},
		FileStates:             map[string][]byte{"a": id(10)},
		FileStatesV2:           map[string]*agentv1.FileStateStructure{"b": {Content: id(11), InitialContent: id(12)}},
		SubagentStates:         map[string]*agentv1.SubagentPersistedState{"s": {ConversationState: inner}},
		SubagentStateRefs:      map[string][]byte{"t": id(13)},
	}
	want := map[string]graph.Kind{}
	for n, k := range map[int]graph.Kind{
		1: graph.Prompt, 2: graph.Prompt, 3: graph.AgentTurn, 4: graph.Todo, 5: graph.Summary, 6: graph.Plan, 7: graph.Turn,
		8: graph.Archive, 9: graph.Archive, 10: graph.FileState, 11: graph.Bytes, 12: graph.Bytes, 13: graph.State, 20: graph.Turn,
	} {
		want[string(id(n))] = k
	}
	refs, err := graph.Refs(graph.State, marshal(t, state))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range refs {
		if k, ok := want[string(r.ID.Bytes())]; !ok || k != r.Kind {
			t.Errorf("%s: found %s %s, want kind %s", r.Field, r.Kind, r.ID.Short(), k)
		}
		delete(want, string(r.ID.Bytes()))
	}
	if len(want) > 0 {
		t.Errorf("%d references were not found", len(want))
	}
	if i := slices.IndexFunc(refs, func(r graph.Ref) bool { return r.Field == "subagent_states.conversation_state.turns" }); i < 0 {
		t.Error("the nested turn has no path")
	}
}

func TestRefsOfArchivesMessagesAndSteps(t *testing.T) {
	read := &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: &agentv1.ToolCall{
		Tool: &agentv1.ToolCall_ReadToolCall{ReadToolCall: &agentv1.ReadToolCall{Result: &agentv1.ReadToolResult{
			Result: &agentv1.ReadToolResult_Success{Success: &agentv1.ReadToolSuccess{
				Output: &agentv1.ReadToolSuccess_ContentBlobId{ContentBlobId: id(1)}}}}}}}}}
	task := &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: &agentv1.ToolCall{
		Tool: &agentv1.ToolCall_TaskToolCall{TaskToolCall: &agentv1.TaskToolCall{Result: &agentv1.TaskResult{
			Result: &agentv1.TaskResult_Success{Success: &agentv1.TaskSuccess{ConversationSteps: []*agentv1.ConversationStep{read}}}}}}}}}
	short := &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: &agentv1.ToolCall{
		Tool: &agentv1.ToolCall_TruncatedToolCall{TruncatedToolCall: &agentv1.TruncatedToolCall{OriginalStepBlobId: id(1)}}}}}
	image := &agentv1.SelectedContext{SelectedImages: []*agentv1.SelectedImage{{DataOrBlobId: &agentv1.SelectedImage_BlobId{BlobId: id(3)}}}}
	cases := []struct {
		name string
		kind graph.Kind
		msg  proto.Message
		want []string
	}{
		{"archive", graph.Archive, &agentv1.ConversationSummaryArchive{SummarizedMessages: [][]byte{id(1)}, SummaryMessage: id(2)},
			[]string{"summarized_messages", "summary_message"}},
		{"message", graph.UserMessage, &agentv1.UserMessage{ConversationStateBlobId: id(1), TextBlobId: id(2), RichTextBlobId: id(4), SelectedContext: image},
			[]string{"selected_context.selected_images.blob_id", "conversation_state_blob_id", "text_blob_id", "rich_text_blob_id"}},
		{"read", graph.Step, read, []string{"tool_call.read_tool_call.result.success.content_blob_id"}},
		{"task", graph.Step, task, []string{"tool_call.task_tool_call.result.success.conversation_steps.tool_call.read_tool_call.result.success.content_blob_id"}},
		{"truncated", graph.Step, short, []string{"tool_call.truncated_tool_call.original_step_blob_id"}},
		{"leaf", graph.Todo, &agentv1.TodoItem{Id: "x"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			refs, err := graph.Refs(c.kind, marshal(t, c.msg))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range refs {
				got = append(got, r.Field)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("fields %q, want %q", got, c.want)
			}
		})
	}
}

func TestRefsReportsMalformedBytesAndKeepsTheRest(t *testing.T) {
	cases := []struct {
		name string
		data []byte
		refs int
		bad  bool
	}{
		{"no id", field(6, nil), 0, false},
		{"no id in a list", append(field(8, nil), field(8, id(1))...), 1, true},
		{"31 bytes", append(field(8, make([]byte, 31)), field(8, id(1))...), 1, true},
		{"33 bytes", append(field(8, id(1)), field(8, make([]byte, 33))...), 1, true},
		{"cut off", append(field(8, id(1)), 0x42, 0x20, 0x01), 1, true},
		{"unknown fields", append(field(900, id(1)), field(8, id(2))...), 1, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			refs, err := graph.Refs(graph.State, c.data)
			if len(refs) != c.refs || errors.Is(err, graph.ErrMalformed) != c.bad {
				t.Errorf("%d refs, %v; want %d, malformed %v", len(refs), err, c.refs, c.bad)
			}
		})
	}
}

func TestRefsLimitsNesting(t *testing.T) {
	data := field(8, id(1))
	for range graph.MaxNested {
		data = field(16, field(2, field(1, data)))
	}
	if refs, err := graph.Refs(graph.State, data); err != nil || len(refs) != 1 {
		t.Errorf("%d nested: %d refs, %v", graph.MaxNested, len(refs), err)
	}
	data = field(16, field(2, field(1, data)))
	data = append(data, field(8, id(2))...) // a reference after it still counts
	if refs, err := graph.Refs(graph.State, data); !errors.Is(err, graph.ErrMalformed) || !errors.Is(err, graph.ErrTooDeep) || len(refs) != 1 {
		t.Errorf("one more: %d refs, %v, want 1 and ErrTooDeep", len(refs), err)
	}
}

func TestWalkVisitsEachBlobOnceAndReportsWhatIsMissing(t *testing.T) {
	ctx := context.Background()
	blobs := memblob.New()
	put := func(m proto.Message) blob.Blob {
		b := blob.New(marshal(t, m))
		if err := blobs.Put(ctx, b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	var turns [][]byte
	var roots []graph.Root
	for n := range 300 {
		user := put(&agentv1.UserMessage{Text: fmt.Sprint("turn ", n)})
		turn := put(&agentv1.ConversationTurnStructure{Turn: &agentv1.ConversationTurnStructure_AgentConversationTurn{
			AgentConversationTurn: &agentv1.AgentConversationTurnStructure{UserMessage: user.ID.Bytes(), Steps: [][]byte{id(n % 7)}}}})
		turns = append(turns, turn.ID.Bytes())
		roots = append(roots, graph.Root{Kind: graph.State, ID: put(&agentv1.ConversationStateStructure{Turns: turns}).ID})
	}
	seen := map[blob.ID]int{}
	missing := 0
	err := graph.Walk(ctx, blobs, graph.Roots(roots...), nil, func(n graph.Node) error {
		seen[n.ID]++
		if errors.Is(n.Err, blob.ErrNotFound) {
			missing++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != 300*3+7 || missing != 7 {
		t.Errorf("visited %d blobs, %d missing; want %d and 7", len(seen), missing, 300*3+7)
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%s was visited %d times", id.Short(), times)
		}
	}
}

func TestWalkEndsWithTheErrorOfVisitRootsAndContext(t *testing.T) {
	blobs := memblob.New()
	b := blob.New(marshal(t, &agentv1.ConversationStateStructure{Turns: [][]byte{id(1), id(2)}}))
	if err := blobs.Put(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	root := graph.Root{Kind: graph.State, ID: b.ID}
	if err := graph.Walk(context.Background(), blobs, graph.Roots(root), nil, func(graph.Node) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("visit's error: got %v", err)
	}
	bad := func(yield func(graph.Root, error) bool) {
		if yield(root, nil) {
			yield(graph.Root{}, stop)
		}
	}
	nothing := func(graph.Node) error { return nil }
	if err := graph.Walk(context.Background(), blobs, bad, nil, nothing); !errors.Is(err, stop) {
		t.Errorf("roots' error: got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := graph.Walk(ctx, blobs, graph.Roots(root), nil, nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("context: got %v", err)
	}
}

func FuzzRefs(f *testing.F) {
	f.Add(uint8(graph.State), field(8, id(1)))
	f.Add(uint8(graph.UserMessage), field(3, field(1, field(1, id(1)))))
	f.Add(uint8(graph.CloudState), field(1, field(16, field(2, field(1, field(8, id(2)))))))
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		refs, _ := graph.Refs(graph.Kind(kind), data)
		if len(refs) > len(data)/blob.IDSize {
			t.Errorf("%d references in %d bytes", len(refs), len(data))
		}
	})
}
