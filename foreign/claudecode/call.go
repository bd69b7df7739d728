package claudecode

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/stet-dev/stet/foreign"
)

var tools = map[string]foreign.Tool{
	"Bash": foreign.ShellTool, "PowerShell": foreign.ShellTool,
	"Write": foreign.EditTool, "Edit": foreign.EditTool, "MultiEdit": foreign.EditTool, "NotebookEdit": foreign.EditTool,
	"Read": foreign.ReadTool, "NotebookRead": foreign.ReadTool,
	"Agent": foreign.TaskTool, "Task": foreign.TaskTool,
}

// newCall returns the call of a tool.
func newCall(id, name string, input json.RawMessage) foreign.Call {
	c := foreign.Call{ID: id, Name: name, Tool: tools[name], Input: bytes.Clone(input)}
	var in struct {
		Command  string `json:"command"`
		Prompt   string `json:"prompt"`
		Path     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
	}
	_ = json.Unmarshal(input, &in) // fields of another type stay empty
	switch c.Tool {
	case foreign.ShellTool:
		c.Command = in.Command
	case foreign.TaskTool:
		c.Task = in.Prompt
	case foreign.EditTool, foreign.ReadTool:
		for _, path := range []string{in.Path, in.Notebook} {
			if path != "" {
				c.Paths = append(c.Paths, path)
			}
		}
	}
	if c.Tool == foreign.ShellTool && c.Command == "" || c.Tool == foreign.TaskTool && c.Task == "" ||
		c.Tool == foreign.EditTool && len(c.Paths) == 0 {
		c.Tool = foreign.OtherTool // not the tool that is known under this name
	}
	return c
}

var exitCode = regexp.MustCompile(`^(?:Error: )?Exit code (\d+)`)

// answer adds the structured result of a call.
func answer(c *foreign.Call, session string, result json.RawMessage) {
	if c.Tool == foreign.ShellTool {
		if m := exitCode.FindStringSubmatch(c.Output); c.Failed && m != nil {
			if code, err := strconv.Atoi(m[1]); err == nil {
				c.ExitCode = &code
			}
		}
	}
	if c.Tool != foreign.TaskTool {
		return
	}
	var r struct {
		Agent string `json:"agentId"`
	}
	if json.Unmarshal(result, &r) == nil && r.Agent != "" && session != "" {
		c.Subagent = subagentID(session, r.Agent)
	}
}
