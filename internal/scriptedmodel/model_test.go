package scriptedmodel_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/internal/scriptedmodel"
)

func TestParse(t *testing.T) {
	text := "<reminder>\nbe kind\n</reminder>\n\"make a file\n::write a.txt one two\n::edit b.txt x y => z\n::task\n::> helper\n::> ::say hi\n::say first done\"\nwords\n::unknown\nagain\n::bash ls\n"
	want := []scriptedmodel.Script{
		{Title: "make a file", Say: "first done", Steps: []scriptedmodel.Step{
			{Do: "write", Path: "a.txt", New: "one two\n"}, {Do: "edit", Path: "b.txt", Old: "x y", New: "z"},
			{Do: "task", Text: "helper\n::say hi\n"},
		}},
		{Title: "again", Say: "done", Steps: []scriptedmodel.Step{{Do: "bash", Text: "ls"}}},
	}
	if diff := cmp.Diff(want, scriptedmodel.Parse(text)); diff != "" {
		t.Error(diff)
	}
}

type object = map[string]any

// api is a protocol as an agent speaks it: request puts messages into a body.
type api struct {
	name, path string
	request    func(stream bool, messages ...message) object
}

// message is a prompt, or a call of the model.
type message struct{ prompt, call string }

func properties(names ...string) object {
	props := object{}
	for _, name := range names {
		props[name] = object{"type": "string"}
	}
	return object{"type": "object", "properties": props}
}

var apis = []api{
	{"messages", "/v1/messages?beta=true", func(stream bool, messages ...message) object {
		var list []object
		for _, m := range messages {
			if m.call != "" {
				list = append(list, object{"role": "assistant", "content": []object{{"type": "tool_use", "id": "1", "name": m.call}}},
					object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": "1", "content": "ok"}}})
				continue
			}
			list = append(list, object{"role": "user", "content": []object{{"type": "text", "text": "<system-reminder>x</system-reminder>"}, {"type": "text", "text": m.prompt}}})
		}
		return object{"model": "m", "stream": stream, "messages": list, "tools": []object{
			{"name": "Write", "input_schema": properties("file_path", "content")}, {"name": "Bash", "input_schema": properties("command")},
		}}
	}},
	{"responses", "/v1/responses", func(stream bool, messages ...message) object {
		var list []object
		for _, m := range messages {
			if m.call != "" {
				list = append(list, object{"type": "function_call", "name": m.call}, object{"type": "function_call_output", "output": "ok"})
				continue
			}
			list = append(list, object{"type": "message", "role": "user", "content": []object{{"type": "input_text", "text": m.prompt}}})
		}
		return object{"model": "m", "stream": stream, "input": list, "tools": []object{
			{"type": "custom", "name": "apply_patch"},
			{"type": "namespace", "name": "shell", "tools": []object{{"type": "function", "name": "exec_command", "parameters": properties("cmd")}}},
		}}
	}},
	{"chat", "/v1/chat/completions", func(stream bool, messages ...message) object {
		list := []object{{"role": "system", "content": "::bash no"}}
		for _, m := range messages {
			if m.call != "" {
				list = append(list, object{"role": "assistant", "content": nil, "tool_calls": []object{{"id": "1"}}}, object{"role": "tool", "content": "ok"})
				continue
			}
			list = append(list, object{"role": "user", "content": m.prompt})
		}
		return object{"model": "m", "stream": stream, "messages": list, "tools": []object{
			{"function": object{"name": "write", "parameters": properties("path", "content")}}, {"function": object{"name": "bash", "parameters": properties("command")}},
		}}
	}},
	{"gemini", "/v1beta/models/m:generateContent", func(_ bool, messages ...message) object {
		var list []object
		for _, m := range messages {
			if m.call != "" {
				list = append(list, object{"role": "model", "parts": []object{{"functionCall": object{"name": m.call}}}},
					object{"role": "user", "parts": []object{{"functionResponse": object{}}}})
				continue
			}
			list = append(list, object{"role": "user", "parts": []object{{"text": m.prompt}}})
		}
		return object{"contents": list, "tools": []object{{"functionDeclarations": []object{
			{"name": "write_file", "parametersJsonSchema": properties("file_path", "content")}, {"name": "run_shell_command", "parametersJsonSchema": properties("command")},
		}}}}
	}},
}

// ask posts a request and returns the answer as it came.
func ask(t *testing.T, url string, body object) string {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(url, "application/json", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s, %v", res.StatusCode, out, err)
	}
	return string(out)
}

func TestEveryProtocolTakesOneStepAtATime(t *testing.T) {
	const first, second = "make a file\n::write a.txt one\n::bash echo two\n::say first done", "and then\n::read a.txt\n::say second done"
	conversation := []message{{prompt: first}, {call: "x"}, {call: "y"}, {prompt: second}}
	wants := []string{"a.txt", "echo two", "first done", "second done"}
	for _, a := range apis {
		for _, stream := range []bool{false, true} {
			model := scriptedmodel.New("/workspace")
			server := httptest.NewServer(model)
			path := a.path
			if stream {
				path = strings.Replace(path, ":generate", ":streamGenerate", 1)
			}
			for i, want := range wants {
				got := ask(t, server.URL+path, a.request(stream, conversation[:i+1]...))
				if !strings.Contains(got, want) || strings.Contains(got, "data:") != stream {
					t.Errorf("%s, stream %v: request %d is answered with %s, want %q", a.name, stream, i, got, want)
				}
			}
			server.Close()
			requests := model.Requests()
			if len(requests) != len(wants) {
				t.Fatalf("%s: %d requests are kept", a.name, len(requests))
			}
			for i, r := range requests {
				want := []string{"make a file"}
				if i == 3 {
					want = append(want, "and then")
				}
				if r.API != a.name || r.Model != "m" || len(r.Tools) != 2 || !slices.Equal(r.Prompts, want) || !json.Valid(r.Body) {
					t.Errorf("%s: request %d is kept as %+v, want prompts %q", a.name, i, r, want)
				}
			}
		}
	}
}

func TestArgumentsAreNamedAsTheToolNamesThem(t *testing.T) {
	server := httptest.NewServer(scriptedmodel.New("/workspace"))
	defer server.Close()
	edits := object{"type": "object", "required": []string{"description"}, "properties": object{
		"path": object{"type": "string"}, "description": object{"type": "string"}, "force": object{"type": "boolean"},
		"edits": object{"type": "array", "items": properties("oldText", "newText")},
	}}
	got := ask(t, server.URL+"/v1/chat/completions", object{
		"messages": []object{{"role": "user", "content": "change it\n::edit a.txt one => two"}},
		"tools":    []object{{"function": object{"name": "edit", "parameters": edits}}},
	})
	var reply struct {
		Choices []struct {
			Message struct {
				Calls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
			}
		}
	}
	if err := json.Unmarshal([]byte(got), &reply); err != nil {
		t.Fatal(err)
	}
	want := `{"description":"scripted","edits":[{"newText":"two","oldText":"one"}],"path":"/workspace/a.txt"}`
	if args := reply.Choices[0].Message.Calls[0].Function.Arguments; args != want {
		t.Errorf("got %s, want %s", args, want)
	}
}

func TestARequiredFormIsKept(t *testing.T) {
	server := httptest.NewServer(scriptedmodel.New(""))
	defer server.Close()
	got := ask(t, server.URL+"/v1beta/models/m:generateContent", object{
		"contents":         []object{{"role": "user", "parts": []object{{"text": "who speaks next?"}}}},
		"generationConfig": object{"responseJsonSchema": object{"type": "object", "properties": object{"next": object{"type": "string", "enum": []string{"user", "model"}}}}},
	})
	if !strings.Contains(got, `{\"next\":\"model\"}`) {
		t.Errorf("got %s", got)
	}
}

func TestAMissingToolIsSaid(t *testing.T) {
	server := httptest.NewServer(scriptedmodel.New(""))
	defer server.Close()
	got := ask(t, server.URL+"/v1/chat/completions", object{
		"messages": []object{{"role": "user", "content": "help\n::task\n::> x"}},
		"tools":    []object{{"function": object{"name": "bash"}}},
	})
	if !strings.Contains(got, "no tool for task among bash") {
		t.Errorf("got %s", got)
	}
}

func TestTheShellWritesWhereNoOtherToolDoes(t *testing.T) {
	server := httptest.NewServer(scriptedmodel.New("/workspace"))
	defer server.Close()
	got := ask(t, server.URL+"/v1/chat/completions", object{
		"messages": []object{{"role": "user", "content": "make a file\n::write a.txt one"}},
		"tools":    []object{{"function": object{"name": "bash", "parameters": properties("command")}}},
	})
	if !strings.Contains(got, "printf %s 'one") || !strings.Contains(got, "a.txt") {
		t.Errorf("got %s", got)
	}
}

func TestASubagentIsOneThatCanDoAnything(t *testing.T) {
	server := httptest.NewServer(scriptedmodel.New("/workspace"))
	defer server.Close()
	for _, c := range []struct {
		tool object
		want string
	}{
		{object{"name": "task", "description": "kinds: explore, general-purpose", "parameters": properties("prompt", "agent_type")}, `{\"agent_type\":\"general-purpose\",\"prompt\":`},
		{object{"name": "invoke_agent", "parameters": properties("prompt", "agent_name")}, `{\"agent_name\":\"generalist\",\"prompt\":`},
		{object{"name": "spawn_agent", "parameters": object{"properties": object{
			"message": object{"type": "string"}, "items": object{"type": "array", "items": properties("path", "text")},
		}}}, `{\"message\":\"helper\\n::say hi\\n\"}`},
	} {
		got := ask(t, server.URL+"/v1/chat/completions", object{
			"messages": []object{{"role": "user", "content": "help\n::task\n::> helper\n::> ::say hi"}}, "tools": []object{{"function": c.tool}},
		})
		if !strings.Contains(got, c.want) {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
