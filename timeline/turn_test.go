package timeline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/timeline"
)

func step(call *agentv1.ToolCall) *agentv1.ConversationStep {
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: call}}
}

func shell(command string) *agentv1.ConversationStep {
	return step(&agentv1.ToolCall{Tool: &agentv1.ToolCall_ShellToolCall{ShellToolCall: &agentv1.ShellToolCall{Args: &agentv1.ShellArgs{Command: command}}}})
}

func task(model string) *agentv1.ConversationStep {
	return step(&agentv1.ToolCall{Tool: &agentv1.ToolCall_TaskToolCall{TaskToolCall: &agentv1.TaskToolCall{Args: &agentv1.TaskArgs{Model: proto.String(model)}}}})
}

// put stores a state with one turn and returns its root.
func (f *fixture) put(turn conversation.Turn, rest *agentv1.ConversationStateStructure) blob.ID {
	f.t.Helper()
	state := &conversation.State{Turns: []conversation.Turn{turn}, Rest: rest}
	structure, err := state.Structure()
	f.must(err)
	data, err := proto.Marshal(structure)
	f.must(err)
	put := func(data []byte) blob.ID {
		b := blob.New(data)
		if !f.lost[b.ID] {
			f.must(f.memory.Put(f.t.Context(), b))
		}
		return b.ID
	}
	put(turn.Structure.Bytes())
	put(turn.UserMessage.Bytes())
	put(turn.ShellCommand.Bytes())
	for _, s := range turn.Steps {
		put(s.Bytes())
	}
	return put(data)
}

func (f *fixture) turn(root blob.ID, number uint64) *timeline.Turn {
	f.t.Helper()
	turn, err := f.TurnAt(f.t.Context(), root, number)
	f.must(err)
	return turn
}

func TestTurnsSayWhatWasDone(t *testing.T) {
	f := newFixture(t)
	lints := step(&agentv1.ToolCall{Tool: &agentv1.ToolCall_ReadLintsToolCall{ReadLintsToolCall: &agentv1.ReadLintsToolCall{}}})
	other := &agentv1.ToolCall{}
	other.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 26, protowire.BytesType), ""))
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "add retry"},
		shell("ls"), lints, shell(strings.Repeat("x", 64<<10)), task("fast"), task("slow"), task("fast"), step(other), step(&agentv1.ToolCall{}),
		&agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{}})
	f.must(err)
	root := f.put(turn, &agentv1.ConversationStateStructure{
		TurnTimings:  []*agentv1.StepTiming{{DurationMs: 1500, TimestampMs: 1_700_000_000_000}},
		TokenDetails: &agentv1.ConversationTokenDetails{UsedTokens: 12, MaxTokens: 100},
	})
	got := f.turn(root, 1)
	if want := "[exa-search 1 read-lints 1 shell 2 subagent 3 tool 1]"; fmt.Sprint(got.ToolWords()) != want {
		t.Errorf("tools %v, want %s", got.ToolWords(), want)
	}
	if got.Text() != "add retry" || got.Damaged || got.Subagents != 3 || !slices.Equal(got.Models, []string{"fast", "slow"}) {
		t.Errorf("turn %+v", got)
	}
	if got.Duration != 1500*time.Millisecond || !got.Started.Equal(time.UnixMilli(1_700_000_000_000)) || got.ContextTokens != 12 || got.ContextLimit != 100 {
		t.Errorf("turn %+v", got)
	}
	if n, err := f.Turns(t.Context(), root); n != 1 || err != nil {
		t.Errorf("%d turns, %v", n, err)
	}
	for name, empty := range map[string]*timeline.Turn{"the next": f.turn(root, 2), "no number": f.turn(root, 0), "no state": f.turn(blob.ID{}, 1)} {
		if empty.Text() != "" || empty.Tools != nil || empty.Damaged {
			t.Errorf("%s: %+v", name, empty)
		}
	}
}

func TestACommandOfTheUser(t *testing.T) {
	f := newFixture(t)
	turn, err := conversation.NewShellTurn(&agentv1.ShellCommand{Command: "make"}, nil)
	f.must(err)
	if got := f.turn(f.put(turn, nil), 1); got.Text() != "$ make" || !got.Command {
		t.Errorf("turn %+v", got)
	}
}

// What a program wrote in the place of the user is not shown as the user's words.
func TestAnAutomaticPrompt(t *testing.T) {
	f := newFixture(t)
	raw := "<task-notification>\n<status>completed</status>\n<summary>tests found</summary>\n</task-notification>"
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: raw, IsSimulatedMsg: proto.Bool(true)})
	f.must(err)
	if got := f.turn(f.put(turn, nil), 1); got.Text() != "(background task finished: tests found)" || got.Ask != raw || !got.Automatic {
		t.Errorf("turn %+v", got)
	}
}

// A checkpoint before a turn was taken in no turn.
func TestACheckpointBeforeATurnHasNone(t *testing.T) {
	f := newFixture(t)
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "add retry"})
	f.must(err)
	rec := &checkpoint.Record{Root: f.put(turn, nil), Turn: 1, Side: checkpoint.Before}
	for side, want := range map[checkpoint.Side]string{checkpoint.Before: "", checkpoint.After: "add retry", checkpoint.NoSide: "add retry"} {
		rec.Side = side
		if got, err := f.Turn(t.Context(), rec); err != nil || got.Text() != want {
			t.Errorf("%v: %+v, %v, want %q", side, got, err, want)
		}
	}
}

// Damage to one part of a turn hides no other part.
func TestDamagedTurns(t *testing.T) {
	bad := conversation.NewContent([]byte("\xff\xff"))
	whole := func() conversation.Turn {
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "add retry"}, shell("ls"), shell("pwd"))
		if err != nil {
			t.Fatal(err)
		}
		return turn
	}
	for _, c := range []struct {
		name    string
		damage  func(f *fixture, turn *conversation.Turn)
		text    string
		damaged bool
		tools   string
	}{
		{"a missing step", func(f *fixture, turn *conversation.Turn) { f.lose(turn.Steps[0].Content) }, "add retry", false, "[shell 1 unreadable 1]"},
		{"a missing message", func(f *fixture, turn *conversation.Turn) { f.lose(turn.UserMessage.Content) }, "", true, "[shell 2]"},
		{"a missing turn", func(f *fixture, turn *conversation.Turn) { f.lose(turn.Structure.Content) }, "", true, "[]"},
		{"a step that is none", func(f *fixture, turn *conversation.Turn) {
			*turn = f.withParts(turn.UserMessage.Content, bad, turn.Steps[1].Content)
		}, "add retry", false, "[shell 1 unreadable 1]"},
		{"a message that is none", func(f *fixture, turn *conversation.Turn) {
			*turn = f.withParts(bad, turn.Steps[0].Content)
		}, "", true, "[shell 1]"},
	} {
		f := newFixture(t)
		turn := whole()
		c.damage(f, &turn)
		got := f.turn(f.put(turn, nil), 1)
		if got.Text() != c.text || got.Damaged != c.damaged || fmt.Sprint(got.ToolWords()) != c.tools {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if got := newFixture(t).turn(blob.ID{1}, 1); !got.Damaged {
		t.Errorf("a missing state: %+v", got)
	}
}

// withParts makes a turn of stored parts, whatever they hold.
func (f *fixture) withParts(message conversation.Content, steps ...conversation.Content) conversation.Turn {
	f.t.Helper()
	s := &agentv1.AgentConversationTurnStructure{UserMessage: message.ID().Bytes()}
	for _, c := range append(steps, message) {
		f.must(f.memory.Put(f.t.Context(), blob.New(c.Bytes())))
	}
	for _, c := range steps {
		s.Steps = append(s.Steps, c.ID().Bytes())
	}
	item, err := conversation.NewItem(&agentv1.ConversationTurnStructure{
		Turn: &agentv1.ConversationTurnStructure_AgentConversationTurn{AgentConversationTurn: s},
	})
	f.must(err)
	return conversation.Turn{Structure: item}
}

// lose keeps put from storing a part.
func (f *fixture) lose(c conversation.Content) {
	if f.lost == nil {
		f.lost = make(map[blob.ID]bool)
	}
	f.lost[c.ID()] = true
}
