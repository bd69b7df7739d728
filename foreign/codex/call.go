package codex

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-dev/stet/foreign"
)

// callOf translates the call of a tool. Input is JSON, or a text for tools that take one.
func callOf(id, name, input string) foreign.Call {
	c := foreign.Call{ID: id, Name: name, Input: json.RawMessage(input)}
	if !json.Valid(c.Input) {
		c.Input, _ = json.Marshal(input) // a string always has a form
	}
	var args struct {
		Cmd     string          `json:"cmd"`
		Command json.RawMessage `json:"command"`
		Input   string          `json:"input"`
		Message string          `json:"message"`
		Prompt  string          `json:"prompt"`
		Path    string          `json:"path"`
		File    string          `json:"file_path"`
	}
	_ = json.Unmarshal(c.Input, &args) // tools without these arguments have other ones
	command := commandOf(args.Command)
	switch name {
	case "exec_command", "shell", "shell_command", "local_shell", "Bash", "container.exec":
		c.Tool, c.Command = foreign.ShellTool, args.Cmd+command
		if paths := patchPaths(c.Command); len(paths) > 0 && strings.Contains(c.Command, "apply_patch") {
			c.Paths = paths
		}
	case "apply_patch":
		c.Tool, c.Paths = foreign.EditTool, patchPaths(firstOf(args.Input, command, input))
	case "spawn_agent":
		c.Tool, c.Task = foreign.TaskTool, firstOf(args.Message, args.Prompt)
	case "read_file", "view_image":
		c.Tool = foreign.ReadTool
		if path := firstOf(args.Path, args.File); path != "" {
			c.Paths = []string{path}
		}
	}
	return c
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// commandOf returns a command that is recorded as a string or as a list of words,
// without the shell around it.
func commandOf(raw json.RawMessage) string {
	var plain string
	if json.Unmarshal(raw, &plain) == nil {
		return plain
	}
	var words []string
	if json.Unmarshal(raw, &words) != nil {
		return ""
	}
	if len(words) == 3 && (words[1] == "-lc" || words[1] == "-c") {
		return words[2]
	}
	return strings.Join(words, " ")
}

var patchFile = regexp.MustCompile(`(?m)^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\r?$`)

// patchPaths returns the files that a patch names.
func patchPaths(patch string) []string {
	var paths []string
	for _, m := range patchFile.FindAllStringSubmatch(patch, -1) {
		if !slices.Contains(paths, m[1]) {
			paths = append(paths, m[1])
		}
	}
	return paths
}

var exitLine = regexp.MustCompile(`(?m)^(?:Process exited with code|Exit code:) (-?\d+)$`)

// exitCode finds the exit code in an output, which has it in its first lines or, until
// 2025, is an object.
func exitCode(output string) *int {
	const most = 4 << 10
	head := output[:min(len(output), most)]
	if cut := strings.Index(head, "\nOutput:"); cut >= 0 {
		head = head[:cut]
	}
	if m := exitLine.FindStringSubmatch(head); m != nil {
		if code, err := strconv.Atoi(m[1]); err == nil {
			return &code
		}
	}
	var object struct {
		Metadata struct {
			ExitCode *int `json:"exit_code"`
		}
	}
	if strings.HasPrefix(output, "{") && json.Unmarshal([]byte(output), &object) == nil {
		return object.Metadata.ExitCode
	}
	return nil
}

// apply adds the outcome to a call.
func (o outcome) apply(c *foreign.Call) {
	if o.ExitCode != nil {
		c.ExitCode = o.ExitCode
	}
	failed := o.Status == "failed" || o.Status == "declined" || o.Success != nil && !*o.Success
	c.Failed = c.Failed || failed || c.ExitCode != nil && *c.ExitCode != 0
	if len(o.Changes) == 0 {
		return
	}
	// The files are exact here; the arguments may name them below another directory.
	c.Tool, c.Paths = foreign.DeleteTool, nil
	for _, path := range slices.Sorted(maps.Keys(o.Changes)) {
		var change struct {
			Type string  `json:"type"`
			Move *string `json:"move_path"`
		}
		_ = json.Unmarshal(o.Changes[path], &change) // the path is known without it
		if change.Type != "delete" {
			c.Tool = foreign.EditTool
		}
		c.Paths = append(c.Paths, path)
		if change.Move != nil && *change.Move != "" {
			c.Paths = append(c.Paths, *change.Move)
		}
	}
}
