package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// turnInfo is what the log says about a turn.
type turnInfo struct {
	text  string // of the user's message, or the command
	tools string // such as "edit 3 shell 2"
}

// turnAt reads one turn, counted from 1, of a state. A state that cannot be read
// is no reason to show nothing: the log is how people find out.
func turnAt(ctx context.Context, db *stet.DB, root blob.ID, number int) (turnInfo, error) {
	if root.IsZero() || number < 1 {
		return turnInfo{}, nil
	}
	state, err := db.Conversations().HydrateRoot(ctx, root, &conversation.HydrateOptions{
		TurnFrom: number - 1, TurnTo: number, OnlyTurns: true, WithoutHeavyToolOutput: true,
	})
	if errors.Is(err, conversation.ErrDataLoss) {
		return turnInfo{text: "(cannot be read; see 'stet fsck')"}, nil
	}
	if err != nil || len(state.Turns) == 0 {
		return turnInfo{}, err
	}
	return turnSummary(state.Turns[0])
}

func turnSummary(turn conversation.Turn) (turnInfo, error) {
	if turn.ShellCommand.Loaded() {
		command, err := turn.ShellCommand.Decode()
		if err != nil {
			return turnInfo{}, err
		}
		return turnInfo{text: "$ " + command.GetCommand()}, nil
	}
	var info turnInfo
	if turn.UserMessage.Loaded() {
		message, err := turn.UserMessage.Decode()
		if err != nil {
			return turnInfo{}, err
		}
		info.text = message.GetText()
	}
	used := make(map[string]int)
	for _, item := range turn.Steps {
		if !item.Loaded() {
			continue
		}
		step, err := item.Decode()
		if err != nil {
			return turnInfo{}, err
		}
		if name := toolName(step.GetToolCall()); name != "" {
			used[name]++
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(used)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, used[name]))
	}
	info.tools = strings.Join(parts, " ")
	return info, nil
}

// toolName returns the short name of the tool that a call is for.
func toolName(call *agentv1.ToolCall) string {
	if call == nil {
		return ""
	}
	m := call.ProtoReflect()
	field := m.WhichOneof(m.Descriptor().Oneofs().ByName("tool"))
	if field == nil {
		return "tool"
	}
	name := strings.TrimSuffix(string(field.Name()), "_tool_call")
	if name == "task" {
		return "subagents"
	}
	return strings.ReplaceAll(name, "_", "-")
}
