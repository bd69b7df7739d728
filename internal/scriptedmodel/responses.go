package scriptedmodel

import (
	"encoding/json"
	"net/http"
	"strings"
)

// item is an element of the input: a message, a call, a result, or more tools.
type item struct {
	Type    string
	Role    string
	Content content
	Tools   []offered
}

// offered is a tool, or a space of tools.
type offered struct {
	Type        string
	Name        string
	Description string
	Parameters  schema
	Tools       []offered
}

func decodeResponses(_ *http.Request, body []byte) (exchange, error) {
	var in struct {
		Model  string
		Stream bool
		Input  json.RawMessage
		Tools  []offered
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return exchange{}, err
	}
	e := exchange{model: in.Model, stream: in.Stream}
	e.offer("", in.Tools)
	var prompt string
	if json.Unmarshal(in.Input, &prompt) == nil {
		e.messages = []message{{user: true, text: prompt}}
		return e, nil
	}
	var items []item
	if err := json.Unmarshal(in.Input, &items); err != nil {
		return exchange{}, err
	}
	for _, it := range items {
		m := message{user: it.Role == "user", text: it.Content.text()}
		if strings.HasSuffix(it.Type, "_call") {
			m.calls = 1
		}
		e.messages = append(e.messages, m)
		e.offer("", it.Tools)
	}
	return e, nil
}

// offer adds tools.
func (e *exchange) offer(space string, tools []offered) {
	for _, t := range tools {
		if t.Type == "namespace" {
			e.offer(t.Name, t.Tools)
			continue
		}
		e.tools = append(e.tools, tool{
			name: t.Name, space: space, free: t.Type == "custom", description: t.Description, schema: t.Parameters,
		})
	}
}

func writeResponses(w http.ResponseWriter, e exchange, a answer) {
	type object = map[string]any
	usage := object{
		"input_tokens": inputTokens, "input_tokens_details": object{"cached_tokens": 0},
		"output_tokens": outputTokens, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": inputTokens + outputTokens,
	}
	out := a.item()
	reply := object{"id": newID("resp_"), "object": "response", "created_at": 1, "model": e.model, "status": "completed", "output": []any{out}, "usage": usage}
	if !e.stream {
		writeJSON(w, reply)
		return
	}
	s, n := startEvents(w), 0
	send := func(name string, event object) {
		event["type"], event["sequence_number"] = name, n
		s.send(name, event)
		n++
	}
	send("response.created", object{"response": object{"id": reply["id"], "object": "response", "created_at": 1, "model": e.model, "status": "in_progress", "output": []any{}}})
	place := func(more object) object {
		more["item_id"], more["output_index"] = out["id"], 0
		return more
	}
	begun := object{"type": out["type"], "id": out["id"], "status": "in_progress"}
	switch out["type"] {
	case "message":
		begun["role"], begun["content"] = "assistant", []any{}
		send("response.output_item.added", object{"output_index": 0, "item": begun})
		send("response.content_part.added", place(object{"content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": []any{}}}))
		send("response.output_text.delta", place(object{"content_index": 0, "delta": a.text}))
		send("response.output_text.done", place(object{"content_index": 0, "text": a.text}))
		send("response.content_part.done", place(object{"content_index": 0, "part": out["content"].([]any)[0]}))
	case "function_call":
		begun["call_id"], begun["name"], begun["arguments"] = out["call_id"], out["name"], ""
		send("response.output_item.added", object{"output_index": 0, "item": begun})
		send("response.function_call_arguments.delta", place(object{"delta": out["arguments"]}))
		send("response.function_call_arguments.done", place(object{"arguments": out["arguments"]}))
	default:
		begun["call_id"], begun["name"], begun["input"] = out["call_id"], out["name"], ""
		send("response.output_item.added", object{"output_index": 0, "item": begun})
	}
	send("response.output_item.done", object{"output_index": 0, "item": out})
	send("response.completed", object{"response": reply})
}

// item is the answer as an element of the output.
func (a answer) item() map[string]any {
	if a.call == nil {
		said := map[string]any{"type": "output_text", "text": a.text, "annotations": []any{}}
		return map[string]any{"type": "message", "id": newID("msg_"), "role": "assistant", "status": "completed", "content": []any{said}}
	}
	out := map[string]any{"call_id": newID("call_"), "name": a.call.tool.name, "status": "completed"}
	if a.call.tool.space != "" {
		out["namespace"] = a.call.tool.space
	}
	if a.call.tool.free {
		out["type"], out["id"], out["input"] = "custom_tool_call", newID("ctc_"), a.call.text
		return out
	}
	out["type"], out["id"], out["arguments"] = "function_call", newID("fc_"), a.call.arguments()
	return out
}
