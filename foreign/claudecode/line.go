package claudecode

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
)

// line has the fields that are read from a line.
type line struct {
	Type             string          `json:"type"`
	Subtype          string          `json:"subtype"`
	UUID             string          `json:"uuid"`
	Parent           string          `json:"parentUuid"`
	LogicalParent    string          `json:"logicalParentUuid"`
	PromptID         string          `json:"promptId"`
	PromptSource     string          `json:"promptSource"`
	Session          string          `json:"sessionId"`
	Dir              string          `json:"cwd"`
	Time             string          `json:"timestamp"`
	Sidechain        bool            `json:"isSidechain"`
	Meta             bool            `json:"isMeta"`
	CompactSummary   bool            `json:"isCompactSummary"`
	Message          message         `json:"message"`
	ToolUseResult    json.RawMessage `json:"toolUseResult"`
	Summary          string          `json:"summary"`
	CustomTitle      string          `json:"customTitle"`
	AITitle          string          `json:"aiTitle"`
	TotalCostUSD     *float64        `json:"totalCostUSD"`
	IsAPIErrorAnswer bool            `json:"isApiErrorMessage"`
}

func decode(data []byte) (l line, err error) {
	err = jsonl.Decode(data, &l)
	return l, err
}

func (l line) at() time.Time {
	at, _ := time.Parse(time.RFC3339Nano, l.Time) // the zero time if it is not one
	return at
}

// message is a message of the model's API.
type message struct {
	ID         string          `json:"id"`
	Model      string          `json:"model"`
	Content    json.RawMessage `json:"content"`
	StopReason string          `json:"stop_reason"`
	Usage      struct {
		Input      int64 `json:"input_tokens"`
		Output     int64 `json:"output_tokens"`
		CacheRead  int64 `json:"cache_read_input_tokens"`
		CacheWrite int64 `json:"cache_creation_input_tokens"`
		Details    struct {
			Thinking int64 `json:"thinking_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

func (m message) usage() foreign.Usage {
	u := m.Usage
	return foreign.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Reasoning: u.Details.Thinking}
}

// block is a part of a message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// blocks returns the parts of a message. A text is one part.
func blocks(content json.RawMessage) []block {
	if text, ok := jsonl.Text(content); ok {
		return []block{{Type: "text", Text: text}}
	}
	var out []block
	_ = json.Unmarshal(content, &out) // what is not understood stays empty
	return out
}

// text joins the texts of a content; other parts are named.
func text(content json.RawMessage) string {
	if text, ok := jsonl.Text(content); ok {
		return text
	}
	var parts []string
	for _, b := range blocks(content) {
		switch {
		case b.Type == "text":
			parts = append(parts, b.Text)
		case b.Type != "" && b.Type != "tool_result":
			parts = append(parts, "["+b.Type+"]")
		}
	}
	return strings.Join(parts, "\n")
}
