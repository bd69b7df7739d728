package transcript_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/transcript"
)

func TestGolden(t *testing.T) {
	f := newFixture(t)
	id := f.sample(t)
	for _, format := range transcript.Formats() {
		golden(t, "sample."+string(format), f.written(t, id, format, nil))
	}
}

func TestMessages(t *testing.T) {
	f := newFixture(t)
	var got []string
	for _, m := range f.messages(t, f.sample(t), nil) {
		s := fmt.Sprintf("%d %s %s %s", m.Turn, m.Role, m.Kind, m.ID)
		if m.Tool != nil {
			s += fmt.Sprintf(" %s:%s", m.Tool.Name, m.Tool.Status)
		}
		if m.Subagent != "" {
			s += " @" + m.Subagent
		}
		got = append(got, s)
	}
	want := []string{
		"0 system summary summary",
		"1 user text m1",
		"1 assistant thinking turn-1-1",
		"1 assistant text turn-1-2",
		"1 assistant tool_call turn-1-3 Read:success",
		"1 assistant tool_call turn-1-4 Edit:success",
		"1 assistant tool_call turn-1-5 Edit:success",
		"1 assistant tool_call call-go test ./... Shell:error",
		"1 assistant text turn-1-7",
		"2 user text m2",
		"2 assistant tool_call turn-2-1 ask:success",
		"2 assistant tool_call turn-2-2 SendMessage:success",
		"2 assistant tool_call turn-2-3 Tool900:pending",
		"2 assistant tool_call turn-2-4 Task:success",
		"1 user text turn-1 @agent-a",
		"1 assistant text turn-1-1 @agent-a",
		"2 assistant tool_call turn-2-5 Task:success",
		"2 assistant text turn-2-1 @agent-b",
		"3 user shell turn-3 Shell:success",
	}
	if !slices.Equal(got, want) {
		t.Errorf("messages are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSpans(t *testing.T) {
	f := newFixture(t)
	var turns []conversation.Turn
	for i := range 600 { // more than two pages
		turns = append(turns, turn(t, user(fmt.Sprint("question ", i+1)), say(fmt.Sprint("answer ", i+1))))
	}
	f.save(t, "long", turns...)
	for _, tt := range []struct{ from, to, first, last, n int }{
		{0, 0, 1, 600, 1200}, {-10, 0, 591, 600, 20}, {5, 7, 6, 7, 4}, {255, 257, 256, 257, 4},
		{600, 0, 0, 0, 0}, {7, 5, 0, 0, 0}, {0, -599, 1, 1, 2}, {-9999, 1, 1, 1, 2},
	} {
		got := f.messages(t, "long", &transcript.Options{TurnFrom: tt.from, TurnTo: tt.to})
		if len(got) != tt.n {
			t.Errorf("turns %d to %d give %d messages, want %d", tt.from, tt.to, len(got), tt.n)
			continue
		}
		if tt.n > 0 && (got[0].Turn != tt.first || got[len(got)-1].Turn != tt.last || got[0].Text != fmt.Sprint("question ", tt.first)) {
			t.Errorf("turns %d to %d begin with %+v and end with %+v", tt.from, tt.to, got[0], got[len(got)-1])
		}
	}
	tr, err := f.reader.Conversation(t.Context(), "long")
	check(t, err)
	n := 0
	for range tr.Messages(t.Context(), nil) {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("a reader who stops got %d messages, want 3", n)
	}
}

func TestStateInPart(t *testing.T) {
	f := newFixture(t)
	f.save(t, "c", turn(t, user("one")), turn(t, user("two")), turn(t, user("three")))
	s, err := f.Hydrate(t.Context(), "c", &conversation.HydrateOptions{TurnFrom: 1, TurnTo: 2})
	check(t, err)
	tr := transcript.New(nil, nil).State(s)
	for m, err := range tr.Messages(t.Context(), nil) {
		check(t, err)
		if m.Turn != 2 || m.Text != "two" {
			t.Errorf("got turn %d %q, want turn 2 %q", m.Turn, m.Text, "two")
		}
	}
	if _, err := tr.Digest(); !errors.Is(err, conversation.ErrPartial) {
		t.Errorf("digest of a part: %v, want ErrPartial", err)
	}
}

func TestOldTurnsComeFirst(t *testing.T) {
	f := newFixture(t)
	c, err := f.Create(t.Context(), conversation.Info{ID: "old"})
	check(t, err)
	u := must(conversation.NewItem(user("from long ago")))
	old := must(conversation.NewItem(&agentv1.AgentConversationTurnStructure{UserMessage: u.ID().Bytes()}))
	check(t, c.SetState(t.Context(), &conversation.State{
		OldTurns: []conversation.Turn{{Old: old, UserMessage: u}},
		Turns:    []conversation.Turn{turn(t, user("from today"))}, TotalTurns: 1,
	}))
	_, err = c.Save(t.Context(), nil)
	check(t, err)
	got := f.messages(t, "old", nil)
	if len(got) != 2 || got[0].Text != "from long ago" || got[0].Turn != 1 || got[1].Text != "from today" || got[1].Turn != 2 {
		t.Errorf("messages are %+v", got)
	}
}

func TestBlobsBehindMessages(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	text, content := blob.New([]byte("a \xff text of its own")), blob.New([]byte("read from elsewhere"))
	hidden := blob.New(must(proto.Marshal(shellCall("make", "built\n", 0))))
	check(t, f.blobs.Put(ctx, text, content, hidden))
	read := readCall("big.txt", "")
	read.GetToolCall().GetReadToolCall().GetResult().GetSuccess().Output = &agentv1.ReadToolSuccess_ContentBlobId{ContentBlobId: content.ID.Bytes()}
	cut := call(&agentv1.ToolCall{Tool: &agentv1.ToolCall_TruncatedToolCall{TruncatedToolCall: &agentv1.TruncatedToolCall{OriginalStepBlobId: hidden.ID.Bytes()}}})
	f.save(t, "c", turn(t, &agentv1.UserMessage{TextBlobId: text.ID.Bytes()}, read, cut))
	got := f.messages(t, "c", nil)
	if len(got) != 3 {
		t.Fatalf("got %d messages, want 3", len(got))
	}
	if want := "a \ufffd text of its own"; got[0].Text != want {
		t.Errorf("text is %q, want %q", got[0].Text, want)
	}
	if got[1].Tool.Output != "read from elsewhere" {
		t.Errorf("output of the read is %q", got[1].Tool.Output)
	}
	if got[2].Tool.Name != "Shell" || got[2].Tool.Output != "built\n" {
		t.Errorf("the truncated call is %+v", got[2].Tool)
	}
}

// failing is a store that has lost some blobs.
type failing struct {
	blob.Store
	lost map[blob.ID]bool
}

func (f failing) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if f.lost[id] {
		return nil, fmt.Errorf("blob %s: %w", id.Short(), blob.ErrNotFound)
	}
	return f.Store.Get(ctx, id)
}

func TestDamage(t *testing.T) {
	f := newFixture(t)
	bad := turn(t, user("two"), say("lost"))
	c := f.save(t, "c", turn(t, user("one"), say("a")), bad, turn(t, user("three"), say("b")))
	blobs := failing{f.blobs, map[blob.ID]bool{bad.Steps[0].ID(): true}}
	reader := transcript.New(conversation.New(blobs, nil, nil), blobs)
	tr, err := reader.At(t.Context(), c.Head().Root)
	check(t, err)
	var last error
	for _, err := range tr.Messages(t.Context(), nil) {
		last = err
	}
	if !errors.Is(last, conversation.ErrDataLoss) {
		t.Errorf("reading a damaged conversation gave %v, want ErrDataLoss", last)
	}
	var got []string
	for m, err := range tr.Messages(t.Context(), &transcript.Options{Lenient: true}) {
		check(t, err)
		got = append(got, fmt.Sprintf("%d %s", m.Turn, m.Kind))
	}
	want := []string{"1 text", "1 text", "2 error", "3 text", "3 text"}
	if !slices.Equal(got, want) {
		t.Errorf("lenient reading gave %q, want %q", got, want)
	}
}

func TestHeavyOutput(t *testing.T) {
	f := newFixture(t)
	f.save(t, "c", turn(t, user("x"), shellCall("yes", strings.Repeat("y\n", 20_000), 0), shellCall("no", "n\n", 0)))
	got := f.messages(t, "c", &transcript.Options{WithoutHeavyOutput: true})
	if tool := got[1].Tool; tool.Output != "" || tool.Omitted != 40_000 || tool.Name != "Shell" {
		t.Errorf("heavy call: output %d bytes, omitted %d", len(tool.Output), tool.Omitted)
	}
	if got[2].Tool.Output != "n\n" {
		t.Errorf("light call lost its output: %+v", got[2].Tool)
	}
	if md := f.written(t, "c", transcript.Markdown, &transcript.Options{WithoutHeavyOutput: true}); !strings.Contains(md, "40000 bytes left out") {
		t.Errorf("the document does not tell what was left out:\n%s", md)
	}
}

func TestSubagentsByRoot(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	inner := f.save(t, "inner", turn(t, user("inside"), say("deep")))
	c, err := f.Create(ctx, conversation.Info{ID: "outer"})
	check(t, err)
	check(t, c.SetState(ctx, &conversation.State{
		Turns: []conversation.Turn{turn(t, user("start"), taskCall("sub/../x", say("shown with its state instead")))}, TotalTurns: 1,
		SubagentRefs: map[string]blob.ID{"sub/../x": inner.Head().Root, "other": inner.Head().Root},
	}))
	_, err = c.Save(ctx, nil)
	check(t, err)
	var got []string
	for _, m := range f.messages(t, "outer", nil) {
		got = append(got, m.Subagent+":"+m.Text)
	}
	want := []string{":start", ":", "sub/../x:inside", "sub/../x:deep", "other:inside", "other:deep"}
	if !slices.Equal(got, want) {
		t.Errorf("messages are %q, want %q", got, want)
	}
	got = nil
	for _, m := range f.messages(t, "outer", &transcript.Options{WithoutSubagents: true}) {
		got = append(got, m.Subagent+":"+m.Text)
	}
	if want := []string{":start", ":", "sub/../x:shown with its state instead"}; !slices.Equal(got, want) {
		t.Errorf("without subagents messages are %q, want %q", got, want)
	}
}

func TestJSONIsReadBack(t *testing.T) {
	f := newFixture(t)
	id := f.sample(t)
	var doc struct {
		Schema       string
		Conversation struct{ ID, Root string }
		Messages     []transcript.Message
	}
	check(t, json.Unmarshal([]byte(f.written(t, id, transcript.JSON, nil)), &doc))
	if doc.Schema != transcript.Schema || doc.Conversation.ID != id || len(doc.Conversation.Root) != 64 {
		t.Errorf("head is %q %+v", doc.Schema, doc.Conversation)
	}
	want, got := must(json.Marshal(f.messages(t, id, nil))), must(json.Marshal(doc.Messages))
	if string(got) != string(want) {
		t.Errorf("messages read back are\n%s\nwant\n%s", got, want)
	}
}

func TestEmptyAndMissing(t *testing.T) {
	f := newFixture(t)
	_, err := f.Create(t.Context(), conversation.Info{ID: "empty"})
	check(t, err)
	for _, format := range transcript.Formats() {
		if out := f.written(t, "empty", format, nil); format != transcript.JSONL && out == "" {
			t.Errorf("an empty conversation as %s is nothing at all", format)
		}
	}
	if _, err := f.reader.Conversation(t.Context(), "none"); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("a conversation that is not there: %v, want ErrNotFound", err)
	}
	if _, err := transcript.ParseFormat("docx"); err == nil {
		t.Error("docx passed as a format")
	}
}
