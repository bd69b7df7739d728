package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// unknown gives bytes of a field that no release has.
func unknown(t *rapid.T, name string) []byte {
	if !rapid.Bool().Draw(t, name+" has unknown") {
		return nil
	}
	return protowire.AppendString(protowire.AppendTag(nil, 3000, protowire.BytesType), rapid.String().Draw(t, name+" unknown"))
}

func genTurns(t *rapid.T, depth int) []conversation.Turn {
	var out []conversation.Turn
	for range rapid.IntRange(0, 6-2*depth).Draw(t, "turns") {
		if rapid.IntRange(0, 3).Draw(t, "turn kind") == 0 {
			out = append(out, must(conversation.NewShellTurn(&agentv1.ShellCommand{Command: rapid.String().Draw(t, "command")},
				&agentv1.ShellOutput{Stdout: rapid.String().Draw(t, "stdout"), ExitCode: 1})))
			continue
		}
		u := user(rapid.String().Draw(t, "text"))
		u.ProtoReflect().SetUnknown(unknown(t, "message"))
		var steps []*agentv1.ConversationStep
		for range rapid.IntRange(0, 4).Draw(t, "steps") {
			steps = append(steps, say(rapid.String().Draw(t, "said")))
		}
		out = append(out, must(conversation.NewTurn(u, steps...)))
	}
	return out
}

func genState(t *rapid.T, depth int) *conversation.State {
	s := &conversation.State{Turns: genTurns(t, depth), Rest: &agentv1.ConversationStateStructure{
		PendingToolCalls: rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "pending"),
		ReadPaths:        rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "read paths"),
		SelfSummaryCount: rapid.Uint32().Draw(t, "summaries"),
		SubagentThreads:  rapid.MapOfN(rapid.String(), rapid.String(), 0, 2).Draw(t, "threads"),
		TokenDetails:     &agentv1.ConversationTokenDetails{UsedTokens: rapid.Uint32().Draw(t, "tokens")},
	}}
	for range s.Turns {
		s.Rest.TurnTimings = append(s.Rest.TurnTimings, &agentv1.StepTiming{DurationMs: rapid.Uint64().Draw(t, "duration")})
	}
	s.Rest.ProtoReflect().SetUnknown(unknown(t, "state"))
	for range rapid.IntRange(0, 3).Draw(t, "prompts") {
		s.Prompt = append(s.Prompt, conversation.NewContent([]byte(rapid.String().Draw(t, "prompt"))))
	}
	for range rapid.IntRange(0, 3).Draw(t, "todos") {
		s.Todos = append(s.Todos, must(conversation.NewItem(&agentv1.TodoItem{Id: rapid.String().Draw(t, "todo")})))
	}
	if rapid.Bool().Draw(t, "has summary") {
		s.Summary = must(conversation.NewItem(&agentv1.ConversationSummary{Summary: rapid.String().Draw(t, "summary")}))
		s.Plan = must(conversation.NewItem(&agentv1.ConversationPlan{}))
		archive := must(conversation.NewItem(&agentv1.ConversationSummaryArchive{Summary: rapid.String().Draw(t, "archive")}))
		s.Archives = append(s.Archives, archive)
	}
	genFiles(t, s)
	if depth < 2 && rapid.Bool().Draw(t, "has subagent") {
		s.Subagents = map[string]conversation.Subagent{"sub": {
			State: genState(t, depth+1),
			Rest:  &agentv1.SubagentPersistedState{CreatedTimestampMs: 7},
		}}
	}
	return s
}

func genFiles(t *rapid.T, s *conversation.State) {
	content := func(name string) conversation.Content {
		if rapid.Bool().Draw(t, name+" is none") {
			return conversation.Content{}
		}
		return conversation.NewContent(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, name))
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "files") {
		if s.Files == nil {
			s.Files = map[string]conversation.File{}
		}
		s.Files[fmt.Sprint("f", i)] = conversation.File{Content: content("content"), Initial: content("initial")}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "old files") {
		if s.FileStates == nil {
			s.FileStates = map[string]conversation.Item[*agentv1.FileState]{}
		}
		s.FileStates[fmt.Sprint("old", i)] = must(conversation.NewItem(&agentv1.FileState{Content: proto.String(rapid.String().Draw(t, "text"))}))
	}
}

func equalStates(t *rapid.T, got, want *conversation.State) {
	t.Helper()
	a, b := must(got.Structure()), must(want.Structure())
	if diff := cmp.Diff(b, a, protocmp.Transform()); diff != "" {
		t.Fatalf("states differ (-want +got):\n%s", diff)
	}
}

func TestStatesSurviveStoringInWholeAndInPieces(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(rt *rapid.T) {
		f := newFixture(t)
		c := must(f.Create(ctx, conversation.Info{ID: "c"}))
		for range rapid.IntRange(1, 4).Draw(rt, "saves") {
			want := genState(rt, 0)
			if rapid.Bool().Draw(rt, "continue") { // a state that goes on from the last one
				last := must(f.Hydrate(ctx, "c", nil))
				want.Turns = append(last.Turns, want.Turns...)
				want.Prompt = append(last.Prompt, want.Prompt...)
				want.Rest.TurnTimings = append(last.Rest.TurnTimings, want.Rest.TurnTimings...)
			}
			check(t, c.SetState(ctx, want))
			if rapid.Bool().Draw(rt, "reopen before saving") {
				c = must(f.Open(ctx, "c"))
				check(t, c.SetState(ctx, want))
			}
			saved := must(c.Save(ctx, nil))
			equalStates(rt, must(f.Hydrate(ctx, "c", nil)), want)
			if int(saved.Turns) != len(want.Turns) {
				rt.Fatalf("save counts %d turns of %d", saved.Turns, len(want.Turns))
			}
			c.Discard()
		}
		for s, err := range f.History(ctx, "c", nil) {
			check(t, err)
			must(f.HydrateRoot(ctx, s.Root, nil))
		}
	})
}

func TestStructuresRoundTripThroughState(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(rt *rapid.T) {
		f := newFixture(t)
		want := genState(rt, 0)
		structure := must(want.Structure())
		raw := must(proto.Marshal(structure)) // in the order of another writer
		root := blob.New(raw)
		check(t, f.blobs.Put(ctx, append(want.Blobs(), root)...))
		state := must(f.HydrateRoot(ctx, root.ID, nil))
		equalStates(rt, state, want)

		c := must(f.Create(ctx, conversation.Info{ID: "c"}))
		check(t, c.SetRoot(ctx, root.ID))
		if s := must(c.Save(ctx, nil)); s.Root != root.ID {
			rt.Fatalf("saved %s, want the root as it was", s.Root.Short())
		}
		check(t, c.AppendTurn(ctx, newTurn(t, "next")))
		must(c.Save(ctx, nil))
		want.Turns = append(want.Turns, newTurn(t, "next"))
		equalStates(rt, must(f.Hydrate(ctx, "c", nil)), want)
	})
}

func TestInlineRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		state := genState(rt, 2)
		inline, lost, err := state.Inline()
		check(t, err)
		again, lost2, err := conversation.FromInline(inline)
		check(t, err)
		if len(lost2) > 0 {
			rt.Fatalf("the stored form cannot say %q", lost2)
		}
		inline2, _, err := again.Inline()
		check(t, err)
		if diff := cmp.Diff(inline, inline2, protocmp.Transform()); diff != "" {
			rt.Fatalf("inline states differ:\n%s", diff)
		}
		// What is neither reported as lost nor a file of the newer form must be
		// the same in the stored form.
		if len(lost) == 0 && len(state.Files) == 0 {
			equalStates(rt, again, state)
		}
	})
}

func TestInlineNamesWhatItCannotSay(t *testing.T) {
	s := &conversation.State{
		Turns: []conversation.Turn{newTurn(t, "x")},
		Files: map[string]conversation.File{
			"bin": {Content: conversation.NewContent([]byte{0xff})},
			"txt": {Content: conversation.NewContent([]byte("text"))},
		},
		Subagents:    map[string]conversation.Subagent{"s": {}},
		SubagentRefs: map[string]blob.ID{"r": blob.Sum(nil)},
		Rest:         &agentv1.ConversationStateStructure{ReadPaths: []string{"a"}, Mode: agentv1.AgentMode_AGENT_MODE_ASK.Enum()},
	}
	inline, lost, err := s.Inline()
	check(t, err)
	want := []string{`file_states_v2["bin"]: not text`, "mode", "read_paths", "subagent_state_refs", "subagent_states"}
	if diff := cmp.Diff(want, lost); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
	if inline.FileStates["txt"].GetContent() != "text" || len(inline.Turns) != 1 {
		t.Errorf("inline %v", inline)
	}
}

// Fields of a newer release in the record of a file survive reading and saving a state,
// also inside subagents.
func TestUnknownFieldsOfFilesSurvive(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	content := blob.New([]byte("text"))
	check(t, f.blobs.Put(ctx, content))
	file := func(number protowire.Number) map[string]*agentv1.FileStateStructure {
		s := &agentv1.FileStateStructure{Content: content.ID.Bytes()}
		s.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), 7))
		return map[string]*agentv1.FileStateStructure{"a.go": s}
	}
	inner := &agentv1.ConversationStateStructure{FileStatesV2: file(100)}
	middle := &agentv1.ConversationStateStructure{
		FileStatesV2:   file(101),
		SubagentStates: map[string]*agentv1.SubagentPersistedState{"inner": {ConversationState: inner}},
	}
	want := &agentv1.ConversationStateStructure{
		FileStatesV2:   file(102),
		SubagentStates: map[string]*agentv1.SubagentPersistedState{"middle": {ConversationState: middle, CreatedTimestampMs: 1}},
	}
	c := must(f.Create(ctx, conversation.Info{ID: "c"}))
	check(t, c.SetStructure(ctx, must(proto.Marshal(want))))
	must(c.Save(ctx, nil))

	state := must(f.Hydrate(ctx, "c", nil))
	copied := must(f.Create(ctx, conversation.Info{ID: "copy"}))
	check(t, copied.SetState(ctx, state))
	saved := must(copied.Save(ctx, nil))
	got := new(agentv1.ConversationStateStructure)
	check(t, proto.Unmarshal(must(f.blobs.Get(ctx, saved.Root)), got))
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("after reading and saving (-want +got):\n%s", diff)
	}
	check(t, copied.SetFile(ctx, "a.go", conversation.File{Content: conversation.NewContent([]byte("more"))}))
	saved = must(copied.Save(ctx, nil))
	check(t, proto.Unmarshal(must(f.blobs.Get(ctx, saved.Root)), got))
	if len(got.FileStatesV2["a.go"].ProtoReflect().GetUnknown()) == 0 {
		t.Error("recording a new content lost the unknown field")
	}
}

// What a reader takes for damage must not be saved.
func TestEntriesWithoutAnIDAreRefused(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	user := must(conversation.NewItem(user("u")))
	turn := must(conversation.NewItem(&agentv1.ConversationTurnStructure{Turn: &agentv1.ConversationTurnStructure_AgentConversationTurn{
		AgentConversationTurn: &agentv1.AgentConversationTurnStructure{UserMessage: user.ID().Bytes(), Steps: [][]byte{nil}},
	}}))
	check(t, f.blobs.Put(ctx, blob.New(user.Bytes()), blob.New(turn.Bytes())))
	for name, s := range map[string]*agentv1.ConversationStateStructure{
		"turn":     {Turns: [][]byte{nil}},
		"step":     {Turns: [][]byte{turn.ID().Bytes()}},
		"todo":     {Todos: [][]byte{nil}},
		"prompt":   {RootPromptMessagesJson: [][]byte{nil}},
		"archive":  {SummaryArchives: [][]byte{nil}},
		"subagent": {SubagentStateRefs: map[string][]byte{"s": nil}},
	} {
		c := must(f.Create(ctx, conversation.Info{ID: name}))
		check(t, c.SetStructure(ctx, must(proto.Marshal(s))))
		if _, err := c.Save(ctx, nil); !errors.Is(err, conversation.ErrInvalid) {
			_, lost := f.Hydrate(ctx, name, nil)
			t.Errorf("%s: saved with %v, read with %v", name, err, lost)
		}
		must(c.Save(ctx, &conversation.SaveOptions{Lenient: true}))
	}
	if r := must(f.Check(ctx, nil)); len(r.Damage) != 6 {
		t.Errorf("damage %+v, want six states or turns", r.Damage)
	}
}
