package codex

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/stet-dev/stet/foreign/internal/jsonl"
)

// line is one line of a rollout.
type line struct {
	Timestamp time.Time       `json:"timestamp"`
	Ordinal   *int64          `json:"ordinal"`
	Type      string          `json:"type"`
	Payload   json.RawMessage `json:"payload"`
}

func (l line) ordinal() int64 {
	if l.Ordinal == nil {
		return -1
	}
	return *l.Ordinal
}

// item is an item of the model's conversation: the payload of a response_item.
type item struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   []content       `json:"content"`
	Summary   []content       `json:"summary"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	CallID    string          `json:"call_id"`
	Status    string          `json:"status"`
	Output    json.RawMessage `json:"output"`
	Action    json.RawMessage `json:"action"`
	Passed    struct {
		Kinds []string `json:"content_item_kinds"`
	} `json:"internal_chat_message_metadata_passthrough"`
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// event is the payload of an event_msg.
type event struct {
	Type     string          `json:"type"`
	TurnID   string          `json:"turn_id"`
	CallID   string          `json:"call_id"`
	Message  string          `json:"message"`
	Text     string          `json:"text"`
	Last     string          `json:"last_agent_message"`
	NumTurns int             `json:"num_turns"`
	Item     json.RawMessage `json:"item"`
	Info     *struct {
		Total tokens `json:"total_token_usage"`
		Last  tokens `json:"last_token_usage"`
	} `json:"info"`
	StartedMS   int64 `json:"started_at_ms"`
	CompletedMS int64 `json:"completed_at_ms"`
	outcome
}

// outcome is the end of a call according to an event.
type outcome struct {
	ExitCode *int                       `json:"exit_code"`
	Success  *bool                      `json:"success"`
	Status   string                     `json:"status"`
	Changes  map[string]json.RawMessage `json:"changes"`
}

// done is an item that Codex shows on its screen: the item of item_completed.
type done struct {
	Type      string    `json:"type"`
	ID        string    `json:"id"`
	Content   []content `json:"content"`
	Receivers []string  `json:"receiver_thread_ids"`
	Prompt    string    `json:"prompt"`
	outcome
}

// tokens counts as Codex does: the input includes cached tokens, the output includes
// reasoning.
type tokens struct {
	Input      int64 `json:"input_tokens"`
	Cached     int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_input_tokens"`
	Output     int64 `json:"output_tokens"`
	Reasoning  int64 `json:"reasoning_output_tokens"`
	Total      int64 `json:"total_tokens"`
}

// injected are the beginnings of messages that Codex wrote in the user's name.
var injected = []string{
	"<environment_context>", "<user_instructions>", "<INSTRUCTIONS>", "# AGENTS.md instructions", "<permissions instructions>",
	"<skills_instructions>", "<skill>", "<turn_aborted>", "<subagent_notification>", "<model_switch>", "<collaboration_mode>",
	"<apps_instructions>", "<plugins_instructions>", "<personality_spec>", "<environments_instructions>",
}

// prompts returns what a person wrote in a message in the user's name.
func (i item) prompts() []string {
	var out []string
	for n, c := range i.Content {
		switch {
		case n < len(i.Passed.Kinds) && !strings.HasPrefix(i.Passed.Kinds[n], "user.") && i.Passed.Kinds[n] != "unknown":
		case c.Type == "input_image":
			out = append(out, "[image]")
		case c.Text != "" && !isInjected(c.Text):
			out = append(out, c.Text)
		}
	}
	return out
}

func isInjected(text string) bool {
	text = strings.TrimSpace(text)
	for _, begin := range injected {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
}

// text returns an output as the model saw it.
func text(raw json.RawMessage) string {
	if plain, ok := jsonl.Text(raw); ok {
		return plain
	}
	var parts []content
	if json.Unmarshal(raw, &parts) == nil {
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(p.Text)
		}
		return b.String()
	}
	var object struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &object) == nil && object.Content != nil {
		return text(object.Content)
	}
	return string(raw)
}
