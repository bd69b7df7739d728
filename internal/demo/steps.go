package demo

import (
	"strings"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// steps returns the agent's work for the transcript; old holds the previous content of
// the files.
func (s scene) steps(old map[string]string) []*agentv1.ConversationStep {
	var steps []*agentv1.ConversationStep
	if s.think != "" {
		steps = append(steps, &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ThinkingMessage{
			ThinkingMessage: &agentv1.ThinkingMessage{Text: s.think},
		}})
	}
	if s.sub != nil {
		steps = append(steps, callStep(s.sub.call()))
	}
	if s.fails != "" {
		steps = append(steps, callStep(failedShell(s.fails)))
	}
	for _, name := range sortedKeys(s.files) {
		var before *string
		if text, ok := old[name]; ok {
			before = &text
		}
		steps = append(steps, callStep(editCall(name, before, s.files[name])))
	}
	for _, command := range s.runs {
		steps = append(steps, callStep(shellCall(command, printed(command))))
	}
	return append(steps, &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{
		AssistantMessage: &agentv1.AssistantMessage{Text: s.say},
	}})
}

// printed returns the output of a command that the agent did not really run.
func printed(command string) string {
	switch tool, _, _ := strings.Cut(command, " "); tool {
	case "go":
		return "ok  \tshop/checkout\t0.004s\n"
	case "pytest":
		return "............\n12 passed in 0.31s\n"
	case "rg":
		return "prices/list.go:14:\trows, err := db.Query(ids)\nprices/list.go:21:\t\terr = db.QueryRow(price, id).Scan(&cents)\n"
	}
	return ""
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

func failedShell(command string) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_ShellToolCall{ShellToolCall: &agentv1.ShellToolCall{
		Args: &agentv1.ShellArgs{Command: command},
		Result: &agentv1.ShellResult{Result: &agentv1.ShellResult_Failure{
			Failure: &agentv1.ShellFailure{Command: command, ExitCode: 1, Stderr: "exit status 1\n"},
		}},
	}}}
}

func (h *helper) call() *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_TaskToolCall{TaskToolCall: &agentv1.TaskToolCall{
		Args: &agentv1.TaskArgs{Description: h.ask, Prompt: h.ask, AgentId: &h.id},
		Result: &agentv1.TaskResult{Result: &agentv1.TaskResult_Success{
			Success: &agentv1.TaskSuccess{AgentId: &h.id},
		}},
	}}}
}
