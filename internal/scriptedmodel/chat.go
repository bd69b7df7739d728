package scriptedmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
)

func decodeChat(_ *http.Request, body []byte) (exchange, error) {
	var in struct {
		Model    string
		Stream   bool
		Messages []struct {
			Role    string
			Content content
			Calls   []json.RawMessage `json:"tool_calls"`
		}
		Tools []struct {
			Function struct {
				Name, Description string
				Parameters        schema
			}
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return exchange{}, err
	}
	e := exchange{model: in.Model, stream: in.Stream}
	for _, m := range in.Messages {
		e.messages = append(e.messages, message{user: m.Role == "user", text: m.Content.text(), calls: len(m.Calls)})
	}
	for _, t := range in.Tools {
		f := t.Function
		e.tools = append(e.tools, tool{name: f.Name, description: f.Description, schema: f.Parameters})
	}
	return e, nil
}

func writeChat(w http.ResponseWriter, e exchange, a answer) {
	type object = map[string]any
	said, reason := object{"role": "assistant", "content": a.text}, "stop"
	if a.call != nil {
		function := object{"name": a.call.tool.name, "arguments": a.call.arguments()}
		said["content"], reason = nil, "tool_calls"
		said["tool_calls"] = []any{object{"index": 0, "id": newID("call_"), "type": "function", "function": function}}
	}
	id := newID("chatcmpl-")
	usage := object{"prompt_tokens": inputTokens, "completion_tokens": outputTokens, "total_tokens": inputTokens + outputTokens}
	if !e.stream {
		choice := object{"index": 0, "message": said, "finish_reason": reason}
		writeJSON(w, object{"id": id, "object": "chat.completion", "created": 1, "model": e.model, "choices": []any{choice}, "usage": usage})
		return
	}
	s := startEvents(w)
	chunk := func(choices []any, usage any) {
		s.send("", object{"id": id, "object": "chat.completion.chunk", "created": 1, "model": e.model, "choices": choices, "usage": usage})
	}
	chunk([]any{object{"index": 0, "delta": said, "finish_reason": nil}}, nil)
	chunk([]any{object{"index": 0, "delta": object{}, "finish_reason": reason}}, nil)
	chunk([]any{}, usage)
	fmt.Fprint(w, "data: [DONE]\n\n")
}
