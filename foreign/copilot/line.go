package copilot

import (
	"encoding/json"
	"regexp"
	"slices"
	"time"

	"github.com/stet-dev/stet/foreign"
)

// line is one event of a session. Agent is the subagent in which it happened.
type line struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Agent     string          `json:"agentId"`
	Timestamp time.Time       `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
}

// message is what a person or the model said.
type message struct {
	Content     string `json:"content"`
	Interaction string `json:"interactionId"`
	Source      string `json:"source"`
	Model       string `json:"model"`
	Reasoning   string `json:"reasoningText"`
	Requests    []struct {
		ID        string          `json:"toolCallId"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolRequests"`
}

// execution is the beginning or the end of a call.
type execution struct {
	ID        string          `json:"toolCallId"`
	Name      string          `json:"toolName"`
	Arguments json.RawMessage `json:"arguments"`
	Success   *bool           `json:"success"`
	Result    struct {
		Content string `json:"content"`
	} `json:"result"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
	Shell struct {
		ExitCode *int `json:"exitCode"`
	} `json:"shellExecution"`
	Edits []struct {
		Path string `json:"path"`
		Kind string `json:"kind"`
	} `json:"fileEdits"`
}

// usage counts tokens as Copilot does: the input includes cached tokens.
type usage struct {
	Usage struct {
		Model      string `json:"model"`
		Input      int64  `json:"inputTokens"`
		Output     int64  `json:"outputTokens"`
		CacheRead  int64  `json:"cacheReadTokens"`
		CacheWrite int64  `json:"cacheWriteTokens"`
		Reasoning  int64  `json:"reasoningTokens"`
	} `json:"usage"`
}

// callOf translates the call of a tool. Some releases record the arguments as a
// string of JSON.
func callOf(id, name string, input json.RawMessage) foreign.Call {
	var text string
	if json.Unmarshal(input, &text) == nil && json.Valid([]byte(text)) {
		input = json.RawMessage(text)
	}
	c := foreign.Call{ID: id, Name: name, Input: input}
	var args struct {
		Path    string `json:"path"`
		Command string `json:"command"`
		Prompt  string `json:"prompt"`
		Patch   string `json:"patch"`
		Input   string `json:"input"`
	}
	_ = json.Unmarshal(input, &args) // tools without these arguments have other ones
	switch name {
	case "bash", "powershell", "shell":
		c.Tool, c.Command = foreign.ShellTool, args.Command
	case "create", "edit", "str_replace_editor":
		c.Tool = foreign.EditTool
	case "view":
		c.Tool = foreign.ReadTool
	case "apply_patch":
		c.Tool, c.Paths = foreign.EditTool, patchPaths(args.Patch+args.Input+text)
	case "task":
		c.Tool, c.Task = foreign.TaskTool, args.Prompt
	}
	if (c.Tool == foreign.EditTool || c.Tool == foreign.ReadTool) && args.Path != "" {
		c.Paths = []string{args.Path}
	}
	return c
}

var patchFile = regexp.MustCompile(`(?m)^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\r?$`)

func patchPaths(patch string) (paths []string) {
	for _, m := range patchFile.FindAllStringSubmatch(patch, -1) {
		if !slices.Contains(paths, m[1]) {
			paths = append(paths, m[1])
		}
	}
	return paths
}

// apply adds the end of a call.
func (e execution) apply(c *foreign.Call) {
	c.ExitCode = e.Shell.ExitCode
	c.Failed = e.Success != nil && !*e.Success || c.ExitCode != nil && *c.ExitCode != 0
	if len(e.Edits) == 0 {
		return
	}
	c.Paths = nil // the files that were really changed are here
	deleted := true
	for _, edit := range e.Edits {
		c.Paths = append(c.Paths, edit.Path)
		deleted = deleted && edit.Kind == "delete"
	}
	switch {
	case c.Tool == foreign.ShellTool:
	case deleted:
		c.Tool = foreign.DeleteTool
	default:
		c.Tool = foreign.EditTool
	}
}
