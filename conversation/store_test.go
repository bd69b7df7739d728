package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

// fixture is a store over memory whose clock ticks by a second.
type fixture struct {
	*conversation.Store
	mem   *memblob.Store
	blobs blob.Store
	rows  *memkv.Store
	clock time.Time
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{mem: memblob.New(), clock: time.UnixMilli(1_700_000_000_000)}
	f.blobs = blob.Checked(f.mem)
	f.rows = memkv.New(f.mem)
	f.Store = conversation.New(f.blobs, f.rows, f.options())
	return f
}

// options make each look at the clock a second later than the one before.
func (f *fixture) options() *conversation.Options {
	return &conversation.Options{Now: func() time.Time {
		f.clock = f.clock.Add(time.Second)
		return f.clock
	}}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func say(text string) *agentv1.ConversationStep {
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: text}}}
}

func user(text string) *agentv1.UserMessage {
	return &agentv1.UserMessage{Text: text, MessageId: "m-" + text}
}

func newTurn(t testing.TB, text string, steps ...string) conversation.Turn {
	t.Helper()
	var said []*agentv1.ConversationStep
	for _, s := range steps {
		said = append(said, say(s))
	}
	turn, err := conversation.NewTurn(user(text), said...)
	check(t, err)
	return turn
}

// texts returns what was said in a state.
func texts(t testing.TB, s *conversation.State) []string {
	t.Helper()
	var out []string
	for _, turn := range s.Turns {
		u, err := turn.UserMessage.Decode()
		check(t, err)
		out = append(out, u.Text)
		for _, step := range turn.Steps {
			m, err := step.Decode()
			check(t, err)
			out = append(out, m.GetAssistantMessage().GetText())
		}
	}
	return out
}

func (f *fixture) expectTexts(t testing.TB, id string, want ...string) {
	t.Helper()
	s, err := f.Hydrate(context.Background(), id, nil)
	check(t, err)
	if got := texts(t, s); !slices.Equal(got, want) {
		t.Errorf("state says %q, want %q", got, want)
	}
}

func TestSaveAndHydrate(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c, err := f.Create(ctx, conversation.Info{Title: "first", Workspace: "/w", Agent: "a", Labels: map[string]string{"k": "v"}})
	check(t, err)
	f.expectTexts(t, c.ID())

	check(t, c.AppendTurn(ctx, newTurn(t, "hello", "hi", "there")))
	check(t, c.SetTodos(ctx, &agentv1.TodoItem{Id: "1", Content: "do"}))
	check(t, c.SetFile(ctx, "a.go", conversation.File{Content: conversation.NewContent([]byte("package a"))}))
	check(t, c.AppendPrompt(ctx, []byte(`{"role":"user"}`)))
	check(t, c.SetTiming(ctx, &agentv1.StepTiming{DurationMs: 5}))
	check(t, c.Update(ctx, func(s *agentv1.ConversationStateStructure) error {
		s.Mode = agentv1.AgentMode_AGENT_MODE_ASK.Enum()
		return nil
	}))
	first, err := c.Save(ctx, &conversation.SaveOptions{MessageID: "m1", Author: "me"})
	check(t, err)
	check(t, c.AppendStep(ctx, say("more")))
	check(t, c.AppendTurn(ctx, newTurn(t, "again")))
	second, err := c.Save(ctx, nil)
	check(t, err)
	if first.Seq != 1 || second.Seq != 2 || second.Parent != 1 || second.Turns != 2 {
		t.Errorf("saves %+v, %+v", first, second)
	}
	f.expectTexts(t, c.ID(), "hello", "hi", "there", "more", "again")

	old, err := f.HydrateRoot(ctx, first.Root, nil)
	check(t, err)
	if got := texts(t, old); !slices.Equal(got, []string{"hello", "hi", "there"}) {
		t.Errorf("first save says %q", got)
	}
	s := must(f.Hydrate(ctx, c.ID(), nil))
	if len(s.Todos) != 1 || string(s.Files["a.go"].Content.Bytes()) != "package a" || len(s.Prompt) != 1 ||
		s.Rest.GetMode() != agentv1.AgentMode_AGENT_MODE_ASK || s.Rest.TurnTimings[0].DurationMs != 5 {
		t.Errorf("state lost something: %+v", s)
	}
	if head := must(f.MessageHead(ctx, c.ID(), "m1")); head != first.Root {
		t.Errorf("message points at %s, want %s", head.Short(), first.Root.Short())
	}
	row := must(f.rows.Get(ctx, keyspace.Head(c.ID())))
	if string(row.Value) != second.Root.String() {
		t.Errorf("head row holds %q, want hex of the root", row.Value)
	}
	info := must(f.Get(ctx, c.ID()))
	if info.Title != "first" || info.Turns != 2 || info.Save != 2 || info.Root != second.Root || !info.Updated.Equal(second.Time) {
		t.Errorf("info %+v", info)
	}
	if again := must(c.Save(ctx, nil)); again != second {
		t.Errorf("a save without changes made %+v", again)
	}
}

func TestReopenedHandleContinuesTheSameBytes(t *testing.T) {
	ctx := context.Background()
	one, many := newFixture(t), newFixture(t)
	a := must(one.Create(ctx, conversation.Info{ID: "c"}))
	must(many.Create(ctx, conversation.Info{ID: "c"}))
	for n := range 20 {
		b := must(many.Open(ctx, "c"))
		for _, c := range []*conversation.Conversation{a, b} {
			check(t, c.AppendTurn(ctx, newTurn(t, fmt.Sprint(n))))
			check(t, c.SetFile(ctx, fmt.Sprint("f", n%3), conversation.File{Content: conversation.NewContent(fmt.Append(nil, n))}))
			check(t, c.AppendStep(ctx, say("ok")))
			check(t, c.SetTodos(ctx, &agentv1.TodoItem{Id: fmt.Sprint(n)}))
		}
		x, y := must(a.Save(ctx, nil)), must(b.Save(ctx, nil))
		if x.Root != y.Root {
			t.Fatalf("save %d: one handle made %s, a new one %s", n, x.Root.Short(), y.Root.Short())
		}
	}
}

func TestStaleWriterCannotSave(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	old := must(f.Create(ctx, conversation.Info{ID: "c"}))
	check(t, old.AppendTurn(ctx, newTurn(t, "old")))
	now := must(f.Open(ctx, "c"))
	if now.Epoch() != old.Epoch()+1 {
		t.Errorf("epochs %d, %d", old.Epoch(), now.Epoch())
	}
	if _, err := old.Save(ctx, nil); !errors.Is(err, conversation.ErrStale) {
		t.Errorf("stale save: %v, want ErrStale", err)
	}
	check(t, now.AppendTurn(ctx, newTurn(t, "new")))
	must(now.Save(ctx, nil))
	if _, err := old.Rewind(ctx, 1, nil); !errors.Is(err, conversation.ErrStale) {
		t.Errorf("stale rewind: %v, want ErrStale", err)
	}
	f.expectTexts(t, "c", "new")
}

func TestSetTitleDoesNotDisturbAWriter(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c", Title: "before"}))
	check(t, c.AppendTurn(ctx, newTurn(t, "x")))
	check(t, f.SetTitle(ctx, "c", "after"))
	check(t, f.SetLabel(ctx, "c", "k", "v"))
	must(c.Save(ctx, nil))
	if info := must(f.Get(ctx, "c")); info.Title != "after" || info.Labels["k"] != "v" {
		t.Errorf("title %q, labels %v", info.Title, info.Labels)
	}
}

func TestListIsNewestFirstInPages(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	var want []string
	for n := range 25 {
		c := must(f.Create(ctx, conversation.Info{ID: fmt.Sprintf("c:%02d", n), Agent: []string{"a", "b"}[n%2]}))
		want = append([]string{c.ID()}, want...)
	}
	c := must(f.Open(ctx, "c:03"))
	check(t, c.AppendTurn(ctx, newTurn(t, "x")))
	must(c.Save(ctx, nil))
	want = append([]string{"c:03"}, slices.DeleteFunc(want, func(s string) bool { return s == "c:03" })...)

	all := func(opts conversation.ListOptions) (ids []string) {
		for {
			page := must(f.List(ctx, &opts))
			for _, info := range page.Conversations {
				ids = append(ids, info.ID)
			}
			if page.Next == "" {
				return ids
			}
			opts.Cursor = page.Next
		}
	}
	for _, limit := range []int{1, 7, 25, 100} {
		if got := all(conversation.ListOptions{Limit: limit}); !slices.Equal(got, want) {
			t.Errorf("pages of %d: %q, want %q", limit, got, want)
		}
	}
	if got := all(conversation.ListOptions{Limit: 5, Agent: "b"}); len(got) != 12 {
		t.Errorf("agent b has %d conversations, want 12", len(got))
	}
	if _, err := f.List(ctx, &conversation.ListOptions{Cursor: "nonsense"}); !errors.Is(err, conversation.ErrInvalid) {
		t.Errorf("cursor: %v, want ErrInvalid", err)
	}
}

func TestDeleteLeavesNoRowAndNoNeighbourOut(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	for _, id := range []string{"c", "c:d", "c%", "cc"} {
		c := must(f.Create(ctx, conversation.Info{ID: id}))
		check(t, c.AppendTurn(ctx, newTurn(t, id)))
		must(c.Save(ctx, &conversation.SaveOptions{MessageID: "m"}))
		must(f.Pin(ctx, "pin "+id, id, 1))
	}
	count := func() (n int) {
		for range f.rows.Scan(ctx, kv.Range{}, kv.ScanOptions{}) {
			n++
		}
		return n
	}
	before := count()
	writer := must(f.Open(ctx, "c"))
	check(t, f.Delete(ctx, "c", nil))
	if n := before - count(); n != 6 {
		t.Errorf("%d rows went, want 6", n)
	}
	check(t, writer.AppendTurn(ctx, newTurn(t, "x")))
	if _, err := writer.Save(ctx, nil); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("save after delete: %v, want ErrNotFound", err)
	}
	for _, id := range []string{"c:d", "c%", "cc"} {
		f.expectTexts(t, id, id)
	}
	if err := f.Delete(ctx, "c", nil); !errors.Is(err, conversation.ErrNotFound) {
		t.Errorf("second delete: %v, want ErrNotFound", err)
	}
}

// Records hold UTF-8 only. A workspace with another path has a name of its own.
func TestWorkspacesThatAreNotText(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	for id, path := range map[string]string{"e9": "/w\xe9", "e8": "/w\xe8", "text": "/w%E9"} {
		if got := must(f.Create(ctx, conversation.Info{ID: id, Workspace: path, Agent: "x"})).Info().Workspace; got != conversation.WorkspaceName(path) {
			t.Errorf("%q is stored as %q", path, got)
		}
		for _, agent := range []string{"", "x"} {
			for _, workspace := range []string{path, conversation.WorkspaceName(path)} {
				page := must(f.List(ctx, &conversation.ListOptions{Workspace: workspace, Agent: agent}))
				if len(page.Conversations) != 1 || page.Conversations[0].ID != id {
					t.Errorf("the list of %q has %+v", workspace, page.Conversations)
				}
			}
		}
	}
	for path, want := range map[string]string{"/w": "/w", "": "", "/café %41": "/café %41", "/a b/w\xe9": "file:///a%20b/w%E9"} {
		if got := conversation.WorkspaceName(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

func TestCreateRefusesBadAndTakenIDs(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	must(f.Create(ctx, conversation.Info{ID: "taken"}))
	cases := map[string]error{
		"taken": conversation.ErrExists, "a\x00b": conversation.ErrInvalid, "a\nb": conversation.ErrInvalid,
		string(make([]byte, 300)): conversation.ErrInvalid, "\xff": conversation.ErrInvalid,
	}
	for id, want := range cases {
		if _, err := f.Create(ctx, conversation.Info{ID: id}); !errors.Is(err, want) {
			t.Errorf("create %q: %v, want %v", id, err, want)
		}
	}
	if a, b := must(f.Create(ctx, conversation.Info{})), must(f.Create(ctx, conversation.Info{})); a.ID() == b.ID() || a.ID() == "" {
		t.Errorf("made ids %q and %q", a.ID(), b.ID())
	}
}

func TestUnknownFieldsSurviveEveryKindOfSave(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	raw := must(proto.Marshal(&agentv1.ConversationStateStructure{ReadPaths: []string{"a"}}))
	raw = append(raw, 0xfa, 0x3e, 3, 'n', 'e', 'w') // field 1007
	check(t, c.SetStructure(ctx, raw))
	must(c.Save(ctx, nil))
	check(t, c.AppendTurn(ctx, newTurn(t, "x")))
	check(t, c.Update(ctx, func(s *agentv1.ConversationStateStructure) error { s.SelfSummaryCount = 7; return nil }))
	must(c.Save(ctx, nil))
	s := must(f.Hydrate(ctx, "c", nil))
	check(t, c.SetState(ctx, s))
	must(c.Save(ctx, nil))
	s = must(f.Hydrate(ctx, "c", nil))
	if got := string(s.Rest.ProtoReflect().GetUnknown()); got != "\xfa\x3e\x03new" || s.Rest.SelfSummaryCount != 7 || s.Rest.ReadPaths[0] != "a" {
		t.Errorf("unknown %q, rest %v", got, s.Rest)
	}
}

func TestOnlyTheFinalFormsAreStored(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	check(t, c.AppendTurn(ctx, newTurn(t, "same")))
	check(t, c.AppendTurn(ctx, newTurn(t, "same")))
	check(t, c.AppendStep(ctx, say("but not quite")))
	check(t, c.SetTodos(ctx, &agentv1.TodoItem{Id: "soon replaced"}))
	check(t, c.SetTodos(ctx, &agentv1.TodoItem{Id: "1"}))
	must(c.Save(ctx, nil))
	f.expectTexts(t, "c", "same", "same", "but not quite")
	// Two forms of the turn, the message, the step, the to-do, the root.
	if n := f.count(t); n != 6 {
		t.Errorf("%d blobs are stored, want 6", n)
	}
	check(t, c.AppendStep(ctx, say("more")))
	must(c.Save(ctx, nil))
	c = must(f.Open(ctx, "c"))
	check(t, c.AppendStep(ctx, say("and more"), say("still")))
	check(t, c.AppendStep(ctx, say("end")))
	must(c.Save(ctx, nil))
	f.expectTexts(t, "c", "same", "same", "but not quite", "more", "and more", "still", "end")
}
