package gemini

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/stet-dev/stet/foreign"
)

// record is a line of a session.
type record struct {
	RewindTo *string `json:"$rewindTo"`
	Set      *struct {
		Messages *[]json.RawMessage `json:"messages"`
	} `json:"$set"`
	SessionID string             `json:"sessionId"`
	Messages  *[]json.RawMessage `json:"messages"` // of a header
	message
}

// message is what was said, with the calls of tools that were made.
type message struct {
	ID        string          `json:"id"`
	Timestamp time.Time       `json:"timestamp"`
	Type      string          `json:"type"`
	Content   json.RawMessage `json:"content"`
	Thoughts  []thought       `json:"thoughts"`
	ToolCalls []toolCall      `json:"toolCalls"`
	Tokens    *tokens         `json:"tokens"`
	Model     string          `json:"model"`
}

type thought struct {
	Subject     string    `json:"subject"`
	Description string    `json:"description"`
	Timestamp   time.Time `json:"timestamp"`
}

type tokens struct{ Input, Output, Cached, Thoughts, Tool int64 }

func (t tokens) foreign() foreign.Usage {
	return foreign.Usage{
		Input: max(0, t.Input-t.Cached) + t.Tool, CacheRead: t.Cached, Output: t.Output, Reasoning: t.Thoughts,
	}
}

type toolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"args"`
	Result    json.RawMessage `json:"result"`
	Status    string          `json:"status"`
	Timestamp time.Time       `json:"timestamp"`
	AgentID   string          `json:"agentId"`
}

// part is a part of a content.
type part struct {
	Text             string            `json:"text"`
	Thought          bool              `json:"thought"`
	FunctionCall     *toolCall         `json:"functionCall"`
	FunctionResponse *functionResponse `json:"functionResponse"`
}

type functionResponse struct {
	ID       string          `json:"id"`
	Response json.RawMessage `json:"response"`
}

// output is what the model was shown, and whether it is an error.
func (f functionResponse) output() (text string, failed bool) {
	var r struct{ Output, Error *string }
	if json.Unmarshal(f.Response, &r) == nil {
		switch {
		case r.Output != nil:
			return *r.Output, false
		case r.Error != nil:
			return *r.Error, true
		}
	}
	return string(f.Response), false
}

// decode decodes a message. A field of an unexpected type does not hide the others.
func decode(data []byte, m *message) bool {
	if json.Unmarshal(data, m) == nil {
		return m.ID != ""
	}
	var node struct {
		ID, Type  string
		Timestamp time.Time
		Content   json.RawMessage
	}
	if json.Unmarshal(data, &node) != nil {
		return false
	}
	*m = message{ID: node.ID, Type: node.Type, Timestamp: node.Timestamp, Content: node.Content}
	return m.ID != ""
}

// parts returns the parts of a content, which may be a text, a part or a list of both.
func parts(content json.RawMessage) []part {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []part{{Text: text}}
	}
	var list []json.RawMessage
	if json.Unmarshal(content, &list) != nil {
		list = []json.RawMessage{content}
	}
	out := make([]part, 0, len(list))
	for _, raw := range list {
		var p part
		if json.Unmarshal(raw, &p) == nil {
			out = append(out, p)
		} else if json.Unmarshal(raw, &text) == nil {
			out = append(out, part{Text: text})
		}
	}
	return out
}

// prompt returns the text that begins a turn. It is false for a message that does not:
// the result of a tool, the context that the CLI writes, and a command to the CLI itself.
func (m message) prompt() (string, bool) {
	if m.Type != "user" {
		return "", false
	}
	var texts []string
	for _, p := range parts(m.Content) {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	text := strings.Join(texts, "\n")
	start := strings.TrimSpace(text)
	for _, ignored := range []string{"/", "?", "<session_context>", "<hook_context>", "This is the Gemini CLI. We are setting up the context"} {
		if strings.HasPrefix(start, ignored) {
			return "", false
		}
	}
	return text, start != ""
}

// automatic reports whether the CLI wrote a prompt: the text that replaces a compressed
// conversation.
func automatic(prompt string) bool {
	return strings.HasPrefix(strings.TrimSpace(prompt), "<state_snapshot>")
}

// call returns the call of a tool.
func (c toolCall) call() foreign.Call {
	out := foreign.Call{ID: c.ID, Name: c.Name, Input: c.Args, Subagent: c.AgentID, Ended: c.Timestamp}
	var args struct {
		FilePath     string `json:"file_path"`
		AbsolutePath string `json:"absolute_path"`
		Command      string `json:"command"`
		Prompt       string `json:"prompt"`
	}
	json.Unmarshal(c.Args, &args)
	path := args.FilePath
	if path == "" {
		path = args.AbsolutePath
	}
	switch {
	case c.Name == "run_shell_command" && args.Command != "":
		out.Tool, out.Command = foreign.ShellTool, args.Command
	case (c.Name == "write_file" || c.Name == "replace" || c.Name == "edit") && path != "":
		out.Tool, out.Paths = foreign.EditTool, []string{path}
	case c.Name == "read_file" && path != "":
		out.Tool, out.Paths = foreign.ReadTool, []string{path}
	case c.Name == "invoke_agent" && args.Prompt != "":
		out.Tool, out.Task = foreign.TaskTool, args.Prompt
	}
	for _, p := range parts(c.Result) {
		if p.FunctionResponse != nil {
			text, failed := p.FunctionResponse.output()
			out.Output, out.Answered, out.Failed = out.Output+text, true, out.Failed || failed
		}
	}
	switch c.Status {
	case "error", "cancelled":
		out.Answered, out.Failed = true, true
	case "success":
		out.Answered = true
	}
	return out
}
