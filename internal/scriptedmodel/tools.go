package scriptedmodel

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// tool is a tool that the agent offers.
type tool struct {
	name        string
	space       string // of a name that is inside another
	free        bool   // takes a text, not JSON
	description string
	schema      schema
}

// schema is as much of a JSON schema as arguments need.
type schema struct {
	Type       any               `json:"type"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Items      *schema           `json:"items"`
	Enum       []any             `json:"enum"`
}

// UnmarshalJSON takes what it understands: schemas have many forms.
func (s *schema) UnmarshalJSON(data []byte) error {
	type plain schema
	_ = json.Unmarshal(data, (*plain)(s))
	return nil
}

// call is the call of a tool.
type call struct {
	tool  tool
	input map[string]any
	text  string // of a tool that takes a text
}

// arguments returns the arguments as JSON.
func (c call) arguments() string {
	data, err := json.Marshal(c.input)
	if err != nil {
		panic(err) // only strings, lists and maps
	}
	return string(data)
}

func (e exchange) toolNames() []string {
	var out []string
	for _, t := range e.tools {
		out = append(out, t.name)
	}
	return out
}

// names are the tools for a step, as agents call them.
var names = map[string][]string{
	"write": {"Write", "write_file", "write", "create", "apply_patch"},
	"edit":  {"Edit", "replace", "edit", "apply_patch"},
	"read":  {"Read", "read_file", "read", "view"},
	"bash":  {"Bash", "run_shell_command", "bash", "exec_command", "shell_command", "shell"},
	// Servers of tools have a name of their own, and agents put it before that of the tool.
	"history": {"mcp__stet__history", "mcp_stet_history", "stet_history", "stet-history", "history"},
	"task":    {"Agent", "Task", "task", "agent", "spawn_agent", "invoke_agent"},
}

// callFor returns the call that does a step.
func (e exchange) callFor(step Step, dir string) (*call, bool) {
	for _, name := range names[step.Do] {
		i := slices.IndexFunc(e.tools, func(t tool) bool { return t.name == name })
		if i < 0 {
			continue
		}
		t := e.tools[i]
		values := step.values(t, dir)
		if t.free {
			return &call{tool: t, text: values["patch"].(string)}, true
		}
		return &call{tool: t, input: t.schema.fill(values)}, true
	}
	if step.Do == "write" {
		return e.callFor(Step{Do: "bash", Text: "printf %s '" + step.New + "' > " + step.Path}, dir)
	}
	return nil, false
}

// values returns what a step has to say, by meaning.
func (s Step) values(t tool, dir string) map[string]any {
	path := s.Path
	if path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	values := map[string]any{"patch": s.patch(), "kind": t.general(), "mode": "sync"}
	for meaning, text := range map[string]string{
		"path": path, "content": s.New, "old": s.Old, "new": s.New, "command": s.Text, "prompt": s.Text,
	} {
		if text != "" {
			values[meaning] = text
		}
	}
	return values
}

// meanings are what agents call the arguments.
var meanings = map[string]string{
	"file_path": "path", "filePath": "path", "path": "path",
	"content": "content", "file_text": "content",
	"old_string": "old", "oldString": "old", "old_str": "old", "oldText": "old",
	"new_string": "new", "newString": "new", "new_str": "new", "newText": "new",
	"command": "command", "cmd": "command",
	"prompt": "prompt", "message": "prompt",
	"input": "patch", "patchText": "patch",
	"subagent_type": "kind", "agent_type": "kind", "agent_name": "kind",
	"mode": "mode",
}

// fill returns arguments that satisfy a schema: what is known by its name, and something
// for what else is required.
func (s schema) fill(values map[string]any) map[string]any {
	out := map[string]any{}
	for name, p := range s.Properties {
		value, known := values[meanings[name]]
		switch {
		case known && p.is("array"):
			out[name] = []any{"bash", "-lc", value}
		case known:
			out[name] = value
		case p.Items != nil && p.Items.has(values):
			out[name] = []any{p.Items.fill(values)}
		case slices.Contains(s.Required, name):
			out[name] = p.least()
		}
	}
	return out
}

func (s schema) is(kind string) bool {
	if kinds, ok := s.Type.([]any); ok {
		return len(kinds) > 0 && kinds[0] == kind
	}
	text, _ := s.Type.(string)
	return strings.EqualFold(text, kind)
}

// has reports whether a known value has a place in the objects of a schema.
func (s schema) has(values map[string]any) bool {
	for name := range s.Properties {
		if _, ok := values[meanings[name]]; ok {
			return true
		}
	}
	return false
}

// least returns a value of a schema.
func (s schema) least() any {
	switch {
	case len(s.Enum) > 0:
		return s.Enum[len(s.Enum)-1]
	case s.is("object") || s.Properties != nil:
		out := map[string]any{}
		for name, p := range s.Properties {
			out[name] = p.least()
		}
		return out
	case s.is("array"):
		return []any{}
	case s.is("boolean"):
		return false
	case s.is("number") || s.is("integer"):
		return 0
	}
	return "scripted"
}

// sample returns a value of a schema as a text.
func (s schema) sample() string {
	data, err := json.Marshal(s.least())
	if err != nil {
		panic(err) // only maps, lists and plain values
	}
	return string(data)
}

// general returns the kind of subagent that can do anything, by what the tool says about
// its kinds.
func (t tool) general() string {
	said := t.description
	for _, p := range t.schema.Properties {
		for _, v := range p.Enum {
			if text, ok := v.(string); ok {
				said += " " + text
			}
		}
	}
	for _, kind := range []string{"general-purpose", "generalist"} {
		if strings.Contains(said, kind) {
			return kind
		}
	}
	if _, ok := t.schema.Properties["agent_name"]; ok {
		return "generalist" // named elsewhere
	}
	return "general"
}

// patch returns a write or an edit as a patch.
func (s Step) patch() string {
	var b strings.Builder
	b.WriteString("*** Begin Patch\n")
	if s.Old == "" {
		b.WriteString("*** Add File: " + s.Path + "\n")
	} else {
		b.WriteString("*** Update File: " + s.Path + "\n@@\n")
	}
	prefixed(&b, "-", s.Old)
	prefixed(&b, "+", s.New)
	b.WriteString("*** End Patch\n")
	return b.String()
}

func prefixed(b *strings.Builder, prefix, text string) {
	if text == "" {
		return
	}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		b.WriteString(prefix + line + "\n")
	}
}
