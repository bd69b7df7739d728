package scriptedmodel

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// content is a text, or a list of parts of which some are texts.
type content []part

type part struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	Thought      bool            `json:"thought"`
	FunctionCall json.RawMessage `json:"functionCall"`
}

func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = content{{Type: "text", Text: text}}
		return nil
	}
	return json.Unmarshal(data, (*[]part)(c))
}

func (c content) text() string {
	var texts []string
	for _, p := range c {
		if p.Text != "" && !p.Thought {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func (c content) count(kind string) int {
	n := 0
	for _, p := range c {
		if p.Type == kind {
			n++
		}
	}
	return n
}

func newID(prefix string) string { return prefix + strings.ReplaceAll(uuid.NewString(), "-", "") }

func decodeMessages(_ *http.Request, body []byte) (exchange, error) {
	var in struct {
		Model    string
		Stream   bool
		Messages []struct {
			Role    string
			Content content
		}
		Tools []struct {
			Name        string
			Description string
			Schema      schema `json:"input_schema"`
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return exchange{}, err
	}
	e := exchange{model: in.Model, stream: in.Stream}
	for _, m := range in.Messages {
		e.messages = append(e.messages, message{user: m.Role == "user", text: m.Content.text(), calls: m.Content.count("tool_use")})
	}
	for _, t := range in.Tools {
		e.tools = append(e.tools, tool{name: t.Name, description: t.Description, schema: t.Schema})
	}
	return e, nil
}

func writeMessages(w http.ResponseWriter, e exchange, a answer) {
	type object = map[string]any
	usage := object{"input_tokens": inputTokens, "output_tokens": outputTokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
	block, empty := object{"type": "text", "text": a.text}, object{"type": "text", "text": ""}
	delta, reason := object{"type": "text_delta", "text": a.text}, "end_turn"
	if a.call != nil {
		block = object{"type": "tool_use", "id": newID("toolu_"), "name": a.call.tool.name, "input": a.call.input}
		empty = object{"type": "tool_use", "id": block["id"], "name": a.call.tool.name, "input": object{}}
		delta, reason = object{"type": "input_json_delta", "partial_json": a.call.arguments()}, "tool_use"
	}
	reply := object{
		"id": newID("msg_"), "type": "message", "role": "assistant", "model": e.model, "content": []any{block},
		"stop_reason": reason, "stop_sequence": nil, "usage": usage,
	}
	if !e.stream {
		writeJSON(w, reply)
		return
	}
	reply["content"], reply["stop_reason"] = []any{}, nil
	s := startEvents(w)
	for _, event := range []object{
		{"type": "message_start", "message": reply},
		{"type": "content_block_start", "index": 0, "content_block": empty},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": outputTokens}},
		{"type": "message_stop"},
	} {
		s.send(event["type"].(string), event)
	}
}
