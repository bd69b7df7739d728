package conversation

import (
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// lighten replaces heavy tool calls by truncated ones.
func lighten(s *State) error {
	for _, turns := range [][]Turn{s.OldTurns, s.Turns} {
		for i := range turns {
			for j, step := range turns[i].Steps {
				if step.Len() <= heavyStep {
					continue
				}
				light, ok, err := truncate(step)
				if err != nil {
					return err
				}
				if ok {
					turns[i].Steps[j] = light
					s.partial = true
				}
			}
		}
	}
	return nil
}

// truncate returns a step that names the given one instead of holding its output.
// Only tool calls are truncated, never text.
func truncate(step Item[*agentv1.ConversationStep]) (Item[*agentv1.ConversationStep], bool, error) {
	m, err := step.Decode()
	if err != nil {
		return step, false, nil // reading the step reports the error; the others are readable
	}
	call := m.GetToolCall()
	if call == nil || call.GetTruncatedToolCall() != nil {
		return step, false, nil
	}
	light, err := NewItem(&agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: &agentv1.ToolCall{
		Tool: &agentv1.ToolCall_TruncatedToolCall{TruncatedToolCall: &agentv1.TruncatedToolCall{
			OriginalStepBlobId: step.id.Bytes(),
			Args:               &agentv1.TruncatedToolCallArgs{},
			Result: &agentv1.TruncatedToolCallResult{Result: &agentv1.TruncatedToolCallResult_Success{
				Success: &agentv1.TruncatedToolCallSuccess{},
			}},
		}},
		ToolCallId:    call.ToolCallId,
		StartedAtMs:   call.StartedAtMs,
		CompletedAtMs: call.CompletedAtMs,
	}}})
	return light, err == nil, err
}
