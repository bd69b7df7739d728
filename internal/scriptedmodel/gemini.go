package scriptedmodel

import (
	"encoding/json"
	"net/http"
	"path"
	"strings"
)

func decodeGemini(r *http.Request, body []byte) (exchange, error) {
	var in struct {
		Contents []struct {
			Role  string
			Parts content
		}
		Tools []struct {
			Functions []struct {
				Name, Description string
				Parameters        *schema
				JSON              schema `json:"parametersJsonSchema"`
			} `json:"functionDeclarations"`
		}
		Config struct {
			JSON   *schema `json:"responseJsonSchema"`
			Schema *schema `json:"responseSchema"`
		} `json:"generationConfig"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return exchange{}, err
	}
	name, method, _ := strings.Cut(path.Base(r.URL.Path), ":")
	e := exchange{model: name, stream: strings.HasPrefix(method, "stream"), schema: in.Config.JSON}
	if e.schema == nil {
		e.schema = in.Config.Schema
	}
	for _, m := range in.Contents {
		calls := 0
		for _, p := range m.Parts {
			if len(p.FunctionCall) > 0 {
				calls++
			}
		}
		e.messages = append(e.messages, message{user: m.Role == "user", text: m.Parts.text(), calls: calls})
	}
	for _, t := range in.Tools {
		for _, f := range t.Functions {
			parameters := f.JSON
			if f.Parameters != nil {
				parameters = *f.Parameters
			}
			e.tools = append(e.tools, tool{name: f.Name, description: f.Description, schema: parameters})
		}
	}
	return e, nil
}

func writeGemini(w http.ResponseWriter, e exchange, a answer) {
	type object = map[string]any
	said := object{"text": a.text}
	if a.call != nil {
		said = object{"functionCall": object{"id": newID("call_"), "name": a.call.tool.name, "args": a.call.input}}
	}
	reply := object{
		"candidates":    []any{object{"content": object{"role": "model", "parts": []any{said}}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": object{"promptTokenCount": inputTokens, "candidatesTokenCount": outputTokens, "totalTokenCount": inputTokens + outputTokens},
		"modelVersion":  e.model, "responseId": newID("r"),
	}
	if !e.stream {
		writeJSON(w, reply)
		return
	}
	startEvents(w).send("", reply)
}
