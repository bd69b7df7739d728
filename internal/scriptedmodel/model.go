// Package scriptedmodel is a language model for tests. It promises to do what the prompt
// says, one step for each request, over the protocols that coding agents speak: Anthropic
// Messages, OpenAI Responses, OpenAI Chat Completions and Gemini, streamed and not. It
// keeps what it was shown, so that a test sees which prompts an agent still remembers.
//
//	model := scriptedmodel.New(dir)
//	server := httptest.NewServer(model)
//	// … an agent is run against server.URL with this prompt:
//	//	make a file
//	//	::write a.txt one
//	//	::bash echo two > b.txt
//	//	::say done
//	requests := model.Requests() // the last one has Prompts ["make a file"]
//
// The script is in the prompt and the progress is in the conversation, so the model
// itself has no state: agents may ask again, in parallel, or after a restart. See [Parse]
// for the steps. Which tool an agent offers for a step, and how its arguments are called,
// is found in the request.
package scriptedmodel

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Model answers requests. It is an http.Handler.
type Model struct {
	dir string

	mu       sync.Mutex
	requests []Request
}

// New returns a model for agents that work in a directory: paths of scripts are below it.
func New(dir string) *Model { return &Model{dir: dir} }

// Request is what the model was asked and what it answered.
type Request struct {
	// API is "messages", "responses", "chat" or "gemini".
	API   string
	Model string
	// Tools are the names of the tools that the agent offered.
	Tools []string
	// Prompts are the first lines of the scripts in the conversation, in order. A prompt
	// without steps is not listed.
	Prompts []string
	// Reply is the text of the answer, or the name of the tool that it calls.
	Reply string
	// Body is the request as it came.
	Body []byte
}

// Requests returns the requests until now for which the model had to answer.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// exchange is a request in the words that all protocols share.
type exchange struct {
	model    string
	messages []message
	tools    []tool
	stream   bool
	// schema is set if the answer has to be a JSON value of this form.
	schema *schema
}

// message is a message of the conversation.
type message struct {
	user  bool   // a person or the agent wrote it, not the model or a tool
	text  string // without calls and results
	calls int    // of tools
}

// answer is what the model says: a text, or the call of a tool.
type answer struct {
	text string
	call *call
}

func (a answer) name() string {
	if a.call != nil {
		return a.call.tool.name
	}
	return a.text
}

// protocol is one way to ask the model.
type protocol struct {
	name   string
	decode func(r *http.Request, body []byte) (exchange, error)
	write  func(w http.ResponseWriter, e exchange, a answer)
}

// protocolOf returns how a path is served.
func protocolOf(path string) (protocol, bool) {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return protocol{"messages", decodeMessages, writeMessages}, true
	case strings.HasSuffix(path, "/responses"):
		return protocol{"responses", decodeResponses, writeResponses}, true
	case strings.HasSuffix(path, "/chat/completions"):
		return protocol{"chat", decodeChat, writeChat}, true
	case strings.HasSuffix(path, "enerateContent"): // generateContent, streamGenerateContent
		return protocol{"gemini", decodeGemini, writeGemini}, true
	}
	return protocol{}, false
}

// ServeHTTP answers one request.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the agent is gone
	}
	p, ok := protocolOf(r.URL.Path)
	if !ok || r.Method != http.MethodPost {
		aside(w, r)
		return
	}
	e, err := p.decode(r, body)
	if err != nil {
		http.Error(w, fmt.Sprintf("scriptedmodel: %s: %v", p.name, err), http.StatusBadRequest)
		return
	}
	a := e.answer(m.dir)
	m.mu.Lock()
	m.requests = append(m.requests, Request{
		API: p.name, Model: e.model, Tools: e.toolNames(), Prompts: e.prompts(), Reply: a.name(), Body: body,
	})
	m.mu.Unlock()
	p.write(w, e, a)
}

// aside answers what agents ask besides.
func aside(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, ":countTokens"):
		writeJSON(w, map[string]any{"totalTokens": inputTokens})
	case strings.HasSuffix(r.URL.Path, "/count_tokens"):
		writeJSON(w, map[string]any{"input_tokens": inputTokens})
	case strings.HasSuffix(r.URL.Path, "/models"):
		writeJSON(w, map[string]any{"object": "list", "data": []any{}, "models": []any{}})
	case r.URL.Path == "/":
		w.WriteHeader(http.StatusOK)
	default:
		http.Error(w, `{"error":{"type":"not_found_error","message":"scriptedmodel does not serve this"}}`, http.StatusNotFound)
	}
}

// What each answer is said to have taken.
const (
	inputTokens  = 100
	outputTokens = 10
)

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the agent may be gone
}

// events writes a stream of server-sent events.
type events struct{ w http.ResponseWriter }

func startEvents(w http.ResponseWriter) events {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	return events{w}
}

// send sends a value, under a name if it has one.
func (s events) send(name string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // only maps, strings and numbers are sent
	}
	if name != "" {
		fmt.Fprintf(s.w, "event: %s\n", name)
	}
	fmt.Fprintf(s.w, "data: %s\n\n", data)
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}
