package timeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/transcript"
)

// subagent is the name of the tool that hands work to a subagent.
const subagent = "subagent"

// Turn is one turn of a state.
type Turn struct {
	// Ask is the message of the user, or the command if Command is set. It is empty if
	// there is none or if it cannot be read.
	Ask     string
	Command bool
	// Exit is the exit code of the command, 0 if unknown.
	Exit int
	// Automatic means that a program wrote the message on the user's behalf.
	Automatic bool
	// Tools are the tools that were used, by name.
	Tools []Tool
	// Subagents is the number of tasks that were handed to subagents, and Models are the
	// models requested for them, sorted.
	Subagents int
	Models    []string
	// Started is zero if unknown. Spent has the duration and, for a turn of a
	// conversation, the numbers of the agent's record.
	Started time.Time
	Spent
	// Interrupted means that the agent's record says so.
	Interrupted bool
	// ContextTokens is how much of the model's context was used when the state was
	// saved, out of ContextLimit; 0 if the state does not say.
	ContextTokens, ContextLimit uint32
	// Damaged means that the message or command cannot be read; DamagedSteps is the
	// number of unreadable steps. The other fields hold what can be read.
	Damaged      bool
	DamagedSteps int
}

// Tool is a tool and how often it was called.
type Tool struct {
	Name  string
	Calls int
}

// Text returns the message, or the command after a prompt sign. It describes in a few
// words what a program wrote on the user's behalf.
func (t *Turn) Text() string {
	switch {
	case t.Command:
		return "$ " + t.Ask
	case t.Automatic:
		return transcript.AutomaticWords(t.Ask)
	}
	return t.Ask
}

// ToolWords returns the tools in words, such as "edit 3" and "shell 2".
func (t *Turn) ToolWords() []string {
	var words []string
	for _, tool := range t.Tools {
		words = append(words, fmt.Sprintf("%s %d", tool.Name, tool.Calls))
	}
	if t.DamagedSteps > 0 {
		words = append(words, fmt.Sprintf("unreadable %d", t.DamagedSteps))
	}
	return words
}

// Turn reads the turn that a checkpoint was taken in. It is empty for a checkpoint
// before a turn or outside any turn.
func (r *Reader) Turn(ctx context.Context, rec *checkpoint.Record) (*Turn, error) {
	return (&History{reader: r}).Turn(ctx, &Entry{Record: rec})
}

// TurnAt reads one turn, counted from 1, of a state. A turn that the state does not
// have is empty. Damage is not an error: people use a history to find it.
func (r *Reader) TurnAt(ctx context.Context, root blob.ID, number uint64) (*Turn, error) {
	if root.IsZero() || number < 1 {
		return &Turn{}, nil
	}
	state, err := r.conversations.HydrateRoot(ctx, root, &conversation.HydrateOptions{
		TurnFrom: int(number) - 1, TurnTo: int(number), OnlyTurns: true, Lenient: true,
	})
	if errors.Is(err, conversation.ErrDataLoss) {
		return &Turn{Damaged: true}, nil
	}
	if err != nil || len(state.Turns) == 0 {
		return &Turn{}, err
	}
	turn := read(state.Turns[0])
	if timings := state.Rest.GetTurnTimings(); len(timings) > 0 {
		turn.Duration = time.Duration(timings[0].GetDurationMs()) * time.Millisecond
		if ms := timings[0].GetTimestampMs(); ms > 0 {
			turn.Started = time.UnixMilli(int64(ms))
		}
	}
	if int(number) == state.TotalTurns { // the state was saved after this turn
		turn.ContextTokens = state.Rest.GetTokenDetails().GetUsedTokens()
		turn.ContextLimit = state.Rest.GetTokenDetails().GetMaxTokens()
	}
	return turn, nil
}

func read(in conversation.Turn) *Turn {
	t := &Turn{}
	switch {
	case !in.Structure.Loaded():
		t.Damaged = true
	case !in.ShellCommand.ID().IsZero():
		command, err := in.ShellCommand.Decode()
		t.Ask, t.Command, t.Damaged = command.GetCommand(), err == nil, err != nil
		if in.ShellOutput.Loaded() {
			if output, err := in.ShellOutput.Decode(); err == nil {
				t.Exit = int(output.GetExitCode())
			}
		}
	case !in.UserMessage.ID().IsZero():
		message, err := in.UserMessage.Decode()
		t.Ask, t.Automatic, t.Damaged = message.GetText(), message.GetIsSimulatedMsg(), err != nil
	}
	for _, item := range in.Steps {
		step, err := item.Decode()
		if err != nil {
			t.DamagedSteps++
			continue
		}
		t.call(step.GetToolCall())
	}
	slices.SortFunc(t.Tools, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(t.Models)
	return t
}

// call counts a call.
func (t *Turn) call(call *agentv1.ToolCall) {
	if call == nil {
		return
	}
	name := ToolName(call)
	if i := slices.IndexFunc(t.Tools, func(tool Tool) bool { return tool.Name == name }); i >= 0 {
		t.Tools[i].Calls++
	} else {
		t.Tools = append(t.Tools, Tool{name, 1})
	}
	if name != subagent {
		return
	}
	t.Subagents++
	if model := call.GetTaskToolCall().GetArgs().GetModel(); model != "" && !slices.Contains(t.Models, model) {
		t.Models = append(t.Models, model)
	}
}

// ToolName returns the short name of the tool that a call is for, such as "edit" or
// "read-lints". A tool of a server or of another agent keeps the name by which it was
// called.
func ToolName(call *agentv1.ToolCall) string {
	name := transcript.CallName(call)
	switch {
	case name == "":
		return "tool"
	case name == "task":
		return subagent
	case name == "mcp" && call.GetMcpToolCall().GetArgs().GetToolName() != "":
		name = strings.ToLower(call.GetMcpToolCall().GetArgs().GetToolName())
	}
	return strings.ReplaceAll(name, "_", "-")
}

// Turns counts the turns of a state.
func (r *Reader) Turns(ctx context.Context, root blob.ID) (int, error) {
	if root.IsZero() {
		return 0, nil
	}
	state, err := r.conversations.HydrateRoot(ctx, root, &conversation.HydrateOptions{TurnTo: 1, OnlyTurns: true, WithoutHeavyToolOutput: true})
	if err != nil {
		return 0, err
	}
	return max(state.TotalTurns, len(state.Turns)), nil
}
