package pi

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/stet-dev/stet/foreign"
)

// entry is a line of a session: a node of its tree.
type entry struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	ParentID  string          `json:"parentId"`
	Timestamp time.Time       `json:"timestamp"`
	Message   message         `json:"message"`
	Summary   string          `json:"summary"`
	Content   json.RawMessage `json:"content"`
}

// message is what a model or a person said, or the result of a tool.
type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	// Of an assistant.
	Model      string `json:"model"`
	StopReason string `json:"stopReason"`
	Usage      usage  `json:"usage"`
	Error      string `json:"errorMessage"`
	// Of the result of a tool.
	ToolCallID string          `json:"toolCallId"`
	IsError    bool            `json:"isError"`
	Details    json.RawMessage `json:"details"`
	// Of a command that the user ran.
	Command  string `json:"command"`
	Output   string `json:"output"`
	ExitCode *int   `json:"exitCode"`
}

type usage struct {
	Input, Output, CacheRead, CacheWrite int64
	Cost                                 struct{ Total float64 }
}

func (u usage) foreign() foreign.Usage {
	out := foreign.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
	if u.Cost.Total > 0 { // pi writes 0 for models whose price it does not know
		out.CostUSD = &u.Cost.Total
	}
	return out
}

// block is a part of a message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// decode decodes a line. ok is false for one that is not an entry.
func decode(line []byte) (e entry, ok bool) {
	if json.Unmarshal(line, &e) == nil {
		return e, e.Type != ""
	}
	// A field of an unexpected type must not hide the node of the tree.
	var node struct {
		Type      string    `json:"type"`
		ID        string    `json:"id"`
		ParentID  string    `json:"parentId"`
		Timestamp time.Time `json:"timestamp"`
	}
	if json.Unmarshal(line, &node) != nil {
		return entry{}, false
	}
	return entry{Type: node.Type, ID: node.ID, ParentID: node.ParentID, Timestamp: node.Timestamp}, node.Type != ""
}

// begins reports whether an entry begins a turn: a prompt, or a text with which pi
// replaces earlier entries.
func (e entry) begins() bool {
	switch e.Type {
	case "message":
		return e.Message.Role == "user"
	case "compaction", "branch_summary":
		return true
	}
	return false
}

// blocks returns the parts of a content, which may also be a text.
func blocks(content json.RawMessage) []block {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var raw []json.RawMessage
	if json.Unmarshal(content, &raw) != nil {
		return nil
	}
	out := make([]block, 0, len(raw))
	for _, r := range raw {
		var b block
		if json.Unmarshal(r, &b) == nil {
			out = append(out, b)
		}
	}
	return out
}

// text joins the texts of a content. Images are named.
func text(content json.RawMessage) string {
	var parts []string
	for _, b := range blocks(content) {
		switch b.Type {
		case "text":
			parts = append(parts, b.Text)
		case "image":
			parts = append(parts, "[image]")
		}
	}
	return strings.Join(parts, "\n")
}

// toolCall returns the call of a tool of pi's own, or of an extension's.
func toolCall(id, tool string, input json.RawMessage) foreign.Call {
	c := foreign.Call{ID: id, Name: tool, Input: input}
	var args struct{ Path, Command string }
	if json.Unmarshal(input, &args) != nil {
		return c
	}
	switch tool {
	case "bash":
		c.Tool, c.Command = foreign.ShellTool, args.Command
	case "write", "edit":
		c.Tool = foreign.EditTool
	case "read":
		c.Tool = foreign.ReadTool
	default:
		return c
	}
	if c.Tool != foreign.ShellTool && args.Path != "" {
		c.Paths = []string{args.Path}
	}
	return c
}
