package conversation_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

func TestHydrateARangeOfTurns(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	for n := range 10 {
		check(t, c.AppendTurn(ctx, newTurn(t, fmt.Sprint(n))))
		check(t, c.SetTiming(ctx, &agentv1.StepTiming{DurationMs: uint64(n)}))
		check(t, c.AppendPrompt(ctx, fmt.Append(nil, n)))
	}
	must(c.Save(ctx, nil))
	cases := []struct {
		from, to int
		want     []string
	}{
		{0, 3, []string{"0", "1", "2"}}, {8, 0, []string{"8", "9"}}, {-2, 0, []string{"8", "9"}}, {-3, -1, []string{"7", "8"}},
		{4, 4, nil}, {7, 3, nil}, {-100, 1, []string{"0"}}, {20, 30, nil},
	}
	for _, k := range cases {
		s := must(f.Hydrate(ctx, "c", &conversation.HydrateOptions{TurnFrom: k.from, TurnTo: k.to, OnlyTurns: true}))
		if got := texts(t, s); !slices.Equal(got, k.want) || s.TotalTurns != 10 || len(s.Rest.TurnTimings) != len(k.want) || len(s.Prompt) != 0 {
			t.Errorf("turns %d to %d: %q of %d, want %q", k.from, k.to, got, s.TotalTurns, k.want)
		}
		if len(k.want) > 0 && fmt.Sprint(s.FirstTurn) != k.want[0] {
			t.Errorf("turns %d to %d begin at %d", k.from, k.to, s.FirstTurn)
		}
		if err := c.SetState(ctx, s); !errors.Is(err, conversation.ErrPartial) {
			t.Errorf("a part could be saved: %v", err)
		}
	}
}

func TestHydrateTurnsNeedsNoRoot(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	for n := range 5 {
		check(t, c.AppendTurn(ctx, newTurn(t, fmt.Sprint(n), "step")))
	}
	must(c.Save(ctx, nil))
	whole := must(f.Hydrate(ctx, "c", nil))
	var ids []blob.ID
	for _, turn := range whole.Turns[2:4] {
		ids = append(ids, turn.Structure.ID())
	}
	root := map[blob.ID]bool{must(f.Head(ctx, "c")): true}
	s := conversation.New(&damagedStore{Store: f.blobs, bad: root}, f.rows, nil)
	turns := must(s.HydrateTurns(ctx, ids, 2, nil))
	if got := texts(t, &conversation.State{Turns: turns}); !slices.Equal(got, []string{"2", "step", "3", "step"}) {
		t.Errorf("got %q", got)
	}
	lost := conversation.New(&damagedStore{Store: f.blobs, bad: map[blob.ID]bool{turns[1].UserMessage.ID(): true}}, f.rows, nil)
	if _, err := lost.HydrateTurns(ctx, ids, 2, nil); !errors.Is(err, conversation.ErrDataLoss) || !strings.Contains(err.Error(), "turns[3].user_message") {
		t.Errorf("a lost message: %v", err)
	}
	turns, err := lost.HydrateTurns(ctx, ids, 2, &conversation.HydrateOptions{Lenient: true})
	if err != nil || !turns[0].UserMessage.Loaded() || turns[1].UserMessage.Loaded() {
		t.Errorf("a lost message, lenient: %v", err)
	}
}

func TestHydrateWithoutHeavyToolOutput(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	heavy := &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: &agentv1.ToolCall{
		ToolCallId: proto.String("call"),
		Tool: &agentv1.ToolCall_ReadToolCall{ReadToolCall: &agentv1.ReadToolCall{Result: &agentv1.ReadToolResult{
			Result: &agentv1.ReadToolResult_Success{Success: &agentv1.ReadToolSuccess{
				Output: &agentv1.ReadToolSuccess_Content{Content: strings.Repeat("x", 20<<10)}}}}}}}}}
	turn := must(conversation.NewTurn(user("read"), heavy, say(strings.Repeat("y", 20<<10))))
	check(t, c.AppendTurn(ctx, turn))
	must(c.Save(ctx, nil))
	s := must(f.Hydrate(ctx, "c", &conversation.HydrateOptions{WithoutHeavyToolOutput: true}))
	call := must(s.Turns[0].Steps[0].Decode()).GetToolCall()
	if got := call.GetTruncatedToolCall().GetOriginalStepBlobId(); string(got) != string(turn.Steps[0].ID().Bytes()) || call.GetToolCallId() != "call" {
		t.Errorf("the heavy call became %v", call)
	}
	if s.Turns[0].Steps[1].Len() < 20<<10 || !s.Partial() {
		t.Error("text was cut, or the state does not say that it is partial")
	}
	if s := must(f.Hydrate(ctx, "c", nil)); s.Partial() || s.Turns[0].Steps[0].Len() < 20<<10 {
		t.Error("the whole state is not whole")
	}
}

func TestHydrationNamesWhatIsLost(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	check(t, c.AppendTurn(ctx, newTurn(t, "1", "a")))
	check(t, c.AppendTurn(ctx, newTurn(t, "2", "b", "c")))
	check(t, c.SetTodos(ctx, &agentv1.TodoItem{Id: "x"}))
	must(c.Save(ctx, nil))
	turn := newTurn(t, "2", "b", "c")
	todo := must(conversation.NewItem(&agentv1.TodoItem{Id: "x"}))
	cases := map[string]blob.ID{
		"pointer":               c.Head().Root,
		"turns[1]":              turn.Structure.ID(),
		"turns[1].user_message": turn.UserMessage.ID(),
		"turns[1].steps[1]":     turn.Steps[1].ID(),
		"todos[0]":              todo.ID(),
	}
	for source, id := range cases {
		s := conversation.New(&damagedStore{Store: f.blobs, bad: map[blob.ID]bool{id: true}}, f.rows, nil)
		_, err := s.Hydrate(ctx, "c", nil)
		var he *conversation.HydrationError
		if !errors.As(err, &he) || he.Source != source || he.Conversation != "c" || !errors.Is(err, conversation.ErrDataLoss) || !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("%s: %v", source, err)
		}
	}
	check(t, f.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: keyspace.Head("c"), Value: []byte("junk")}}}))
	if _, err := f.Hydrate(ctx, "c", nil); !errors.Is(err, conversation.ErrDataLoss) {
		t.Errorf("junk pointer: %v, want ErrDataLoss", err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := f.HydrateRoot(canceled, c.Head().Root, nil); errors.Is(err, conversation.ErrDataLoss) || !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled context is no data loss: %v", err)
	}
}

func TestHydrateFromTakesTheFirstSource(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	make1 := func(text string) (blob.ID, []byte) {
		s := &conversation.State{Turns: []conversation.Turn{newTurn(t, text)}}
		raw := must(proto.Marshal(must(s.Structure())))
		b := blob.New(raw)
		check(t, f.blobs.Put(ctx, append(s.Blobs(), b)...))
		return b.ID, raw
	}
	pointer, _ := make1("pointer")
	_, text := make1("text")
	inline := &agentv1.ConversationState{Turns: []*agentv1.ConversationTurn{{Turn: &agentv1.ConversationTurn_AgentConversationTurn{
		AgentConversationTurn: &agentv1.AgentConversationTurn{UserMessage: user("inline")}}}}}
	upper := " " + strings.ToUpper(pointer.String()) + "\n"
	cases := []struct {
		name string
		src  conversation.Sources
		want string // what it says, or the source that failed
		lost bool
	}{
		{"pointer", conversation.Sources{Pointer: upper, Text: "junk", Inline: inline}, "pointer", false},
		{"hex", conversation.Sources{Text: hex.EncodeToString(text), Inline: inline}, "text", false},
		{"base64", conversation.Sources{Text: conversation.EncodeText(text)}, "text", false},
		{"inline", conversation.Sources{Inline: inline}, "inline", false},
		{"pointer to nothing", conversation.Sources{Pointer: blob.Sum([]byte("?")).String(), Inline: inline}, "pointer", true},
		{"bad pointer", conversation.Sources{Pointer: "zz", Inline: inline}, "pointer", true},
		{"bad hex", conversation.Sources{Text: "xyz", Inline: inline}, "hex", true},
		{"bad base64", conversation.Sources{Text: "~!!", Inline: inline}, "hex", true},
		{"hex of junk", conversation.Sources{Text: "ffff", Inline: inline}, "hex", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, err := f.HydrateFrom(ctx, c.src, nil)
			var he *conversation.HydrationError
			switch {
			case c.lost && (!errors.As(err, &he) || he.Source != c.want):
				t.Errorf("got %v, want data loss in %s", err, c.want)
			case !c.lost && err != nil:
				t.Error(err)
			case !c.lost && !slices.Equal(texts(t, s), []string{c.want}):
				t.Errorf("says %q, want %q", texts(t, s), c.want)
			}
		})
	}
	if _, err := f.HydrateFrom(ctx, conversation.Sources{}, nil); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("no source: %v, want ErrNotFound", err)
	}
}

func TestADamagedPresentCanBeLeft(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	saves := f.grow(t, c, "1", "2")
	s := conversation.New(&damagedStore{Store: f.blobs, bad: map[blob.ID]bool{saves[1].Root: true}}, f.rows, nil)
	c = must(s.Open(ctx, "c"))
	if err := c.AppendTurn(ctx, newTurn(t, "3")); !errors.Is(err, conversation.ErrDataLoss) {
		t.Errorf("append: %v, want ErrDataLoss", err)
	}
	must(c.Rewind(ctx, 1, nil))
	check(t, c.AppendTurn(ctx, newTurn(t, "3")))
	must(c.Save(ctx, nil))
	f.expectTexts(t, "c", "1", "3")
}

func TestHostileStructuresAreRefused(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	f.grow(t, c, "1")
	for name, raw := range map[string][]byte{
		"no UTF-8":     {0x22, 1, 0xff},
		"cut off":      {0x42, 0x20, 1},
		"many entries": []byte(strings.Repeat("\x72\x00", 200_000)),
		"long path":    must(proto.Marshal(&agentv1.ConversationStateStructure{FileStates: map[string][]byte{strings.Repeat("p", 5000): nil}})),
	} {
		if err := c.SetStructure(ctx, raw); !errors.Is(err, conversation.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	// An id of 31 bytes parses, but cannot be saved.
	check(t, c.SetStructure(ctx, append([]byte{0x42, 31}, make([]byte, 31)...)))
	if _, err := c.Save(ctx, nil); !errors.Is(err, conversation.ErrInvalid) {
		t.Errorf("id of 31 bytes: %v, want ErrInvalid", err)
	}
	c.Discard()
	f.grow(t, c, "2")
	f.expectTexts(t, "c", "1", "2")
}

// A tool can list more files than a reader parses. That step stays as it is.
func TestAStepThatCannotBeParsedDoesNotHideTheOthers(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	files := make([]string, 100_001)
	huge := &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: &agentv1.ToolCall{
		Tool: &agentv1.ToolCall_GlobToolCall{GlobToolCall: &agentv1.GlobToolCall{Result: &agentv1.GlobToolResult{
			Result: &agentv1.GlobToolResult_Success{Success: &agentv1.GlobToolSuccess{Files: files}},
		}}},
	}}}
	check(t, c.AppendTurn(ctx, must(conversation.NewTurn(user("u"), huge, say("done")))))
	must(c.Save(ctx, nil))
	s, err := f.Hydrate(ctx, "c", &conversation.HydrateOptions{WithoutHeavyToolOutput: true})
	if err != nil {
		t.Fatal(err)
	}
	if step, err := s.Turns[0].Steps[1].Decode(); err != nil || step.GetAssistantMessage().GetText() != "done" {
		t.Errorf("the other step is %v, %v", step, err)
	}
}

// A lenient reader gets everything that is there.
func TestHydrateLenient(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	turns := []conversation.Turn{newTurn(t, "1", "a", "b"), newTurn(t, "2", "c")}
	for _, turn := range turns {
		check(t, c.AppendTurn(ctx, turn))
	}
	todo := &agentv1.TodoItem{Content: "lost"}
	check(t, c.SetTodos(ctx, todo))
	must(c.Save(ctx, nil))
	check(t, c.SetFile(ctx, "a", conversation.File{Content: conversation.NewContent([]byte("file"))}))
	must(c.Save(ctx, nil))
	lost := map[blob.ID]bool{
		turns[0].Steps[1].ID(): true, turns[1].Structure.ID(): true, must(conversation.NewItem(todo)).ID(): true, blob.Sum([]byte("file")): true,
	}
	damaged := conversation.New(holes{f.blobs, lost}, f.rows, nil)
	if _, err := damaged.Hydrate(ctx, "c", nil); !errors.Is(err, conversation.ErrDataLoss) {
		t.Errorf("read with %v, want data loss", err)
	}
	s, err := damaged.Hydrate(ctx, "c", &conversation.HydrateOptions{Lenient: true})
	if err != nil {
		t.Fatal(err)
	}
	first := s.Turns[0]
	if !s.Partial() || !first.UserMessage.Loaded() || !first.Steps[0].Loaded() || first.Steps[1].Loaded() || first.Steps[1].IsNone() {
		t.Errorf("first turn %+v", first)
	}
	if s.Turns[1].Structure.Loaded() || s.Todos[0].Loaded() || s.Files["a"].Content.Loaded() {
		t.Errorf("what is lost was read: %+v", s)
	}
	if whole := must(f.Hydrate(ctx, "c", &conversation.HydrateOptions{Lenient: true})); whole.Partial() {
		t.Error("a whole state is partial")
	}
}

// holes is a store that lacks some blobs.
type holes struct {
	blob.Store
	lost map[blob.ID]bool
}

func (h holes) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if h.lost[id] {
		return nil, blob.NotFound(id)
	}
	return h.Store.Get(ctx, id)
}
