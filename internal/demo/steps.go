package demo

import (
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// steps returns the work of an agent that runs elsewhere; old holds the previous content of
// the files.
func (s scene) steps(old map[string]string) []*agentv1.ConversationStep {
	var steps []*agentv1.ConversationStep
	if s.think != "" {
		steps = append(steps, &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ThinkingMessage{
			ThinkingMessage: &agentv1.ThinkingMessage{Text: s.think},
		}})
	}
	for _, name := range sortedKeys(s.files) {
		var before *string
		if text, ok := old[name]; ok {
			before = &text
		}
		steps = append(steps, callStep(editCall(name, before, s.files[name])))
	}
	for _, r := range s.runs {
		steps = append(steps, callStep(shellCall(r.command, r.output)))
	}
	return append(steps, &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{
		AssistantMessage: &agentv1.AssistantMessage{Text: s.say},
	}})
}

func callStep(call *agentv1.ToolCall) *agentv1.ConversationStep {
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: call}}
}

func editCall(name string, before *string, after string) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_EditToolCall{EditToolCall: &agentv1.EditToolCall{
		Args: &agentv1.EditArgs{Path: name},
		Result: &agentv1.EditResult{Result: &agentv1.EditResult_Success{
			Success: &agentv1.EditSuccess{Path: name, BeforeFullFileContent: before, AfterFullFileContent: after},
		}},
	}}}
}

func shellCall(command, output string) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_ShellToolCall{ShellToolCall: &agentv1.ShellToolCall{
		Args: &agentv1.ShellArgs{Command: command},
		Result: &agentv1.ShellResult{Result: &agentv1.ShellResult_Success{
			Success: &agentv1.ShellSuccess{Command: command, Stdout: output},
		}},
	}}}
}
