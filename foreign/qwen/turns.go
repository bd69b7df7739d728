package qwen

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

// line is what is read of a line.
type line struct {
	Type    string `json:"type"`
	UUID    string `json:"uuid"`
	Parent  string `json:"parentUuid"`
	Session string `json:"sessionId"`
	Dir     string `json:"cwd"`
	Time    string `json:"timestamp"`
	Model   string `json:"model"`
	Message struct {
		Parts []part `json:"parts"`
	} `json:"message"`
	Usage struct {
		Prompt   int64 `json:"promptTokenCount"`
		Output   int64 `json:"candidatesTokenCount"`
		Thoughts int64 `json:"thoughtsTokenCount"`
		Cached   int64 `json:"cachedContentTokenCount"`
	} `json:"usageMetadata"`
	ForkedFrom struct {
		Session string `json:"sessionId"`
	} `json:"forkedFrom"`
	Result struct {
		Status string `json:"status"`
	} `json:"toolCallResult"`
}

// part is a part of a message.
type part struct {
	Text    string `json:"text"`
	Thought bool   `json:"thought"`
	Call    *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Response *struct {
		ID       string          `json:"id"`
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
}

// decode decodes a line. A field of another type than expected is left empty.
func decode(data []byte) (line, error) {
	var l line
	err := json.Unmarshal(data, &l)
	if _, ok := err.(*json.UnmarshalTypeError); ok && data[0] == '{' {
		err = nil
	}
	return l, err
}

func (l line) at() time.Time {
	at, err := time.Parse(time.RFC3339Nano, l.Time)
	if err != nil {
		return time.Time{}
	}
	return at
}

// Turns returns the turns of a session.
func (Adapter) Turns(ctx context.Context, s foreign.Session, from foreign.Mark) iter.Seq2[foreign.Turn, error] {
	return func(yield func(foreign.Turn, error) bool) { newReader(from, yield).read(ctx, s.Path, from) }
}

// reader makes turns from lines. It keeps to which turn each line belongs.
type reader struct {
	b       *turns.Builder
	resumed bool
	seed    maphash.Seed
	known   map[uint64]int32 // hash of a uuid: index in ids, -1 before the first
	ids     []string

	begun func(t foreign.Turn, at int64) // for cuts
	seen  func(l line, end int64)
}

func newReader(from foreign.Mark, yield func(foreign.Turn, error) bool) *reader {
	return &reader{b: turns.New(from, yield), resumed: from != "", seed: maphash.MakeSeed(), known: map[uint64]int32{},
		begun: func(foreign.Turn, int64) {}, seen: func(line, int64) {}}
}

func (r *reader) read(ctx context.Context, path string, from foreign.Mark) {
	at, leaf, err := turns.OffsetOf(from)
	if err != nil {
		r.b.Fail(err)
		return
	}
	if r.b.Note = leaf; leaf != "" {
		r.known[maphash.String(r.seed, leaf)] = -1
	}
	end := at
	for l, err := range jsonl.Lines(ctx, path, at) {
		if err != nil {
			r.b.Fail(err)
		} else {
			r.line(l)
		}
		if r.b.Stopped() {
			return
		}
		end = max(end, l.End)
	}
	r.b.Close(end)
}

func (r *reader) line(raw jsonl.Line) {
	l, err := decode(raw.Data)
	if err != nil {
		r.b.Fail(fmt.Errorf("%w: the line at byte %d: %v", foreign.ErrUnreadable, raw.Offset, err))
		return
	}
	hash := maphash.String(r.seed, l.UUID)
	if _, ok := r.known[hash]; ok && l.UUID != "" {
		return // copied once more
	}
	switch l.Type {
	case "user":
		r.user(l, raw.Offset)
	case "assistant":
		r.assistant(l)
	case "tool_result":
		r.result(l)
	}
	if l.UUID != "" && !r.b.Stopped() {
		r.known[hash] = int32(len(r.ids) - 1)
		r.b.Note = l.UUID
	}
	r.seen(l, raw.End)
}

func (r *reader) user(l line, at int64) {
	var texts []string
	for _, p := range l.Message.Parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	follows, err := r.follows(l)
	if err != nil {
		r.b.Fail(err)
		return
	}
	t := foreign.Turn{ID: l.UUID, Follows: follows, Prompt: strings.Join(texts, "\n"), Cut: l.UUID}
	if t.ID == "" {
		t.ID = "byte-" + strconv.FormatInt(at, 10)
	}
	r.b.Begin(t, at)
	r.ids = append(r.ids, t.ID)
	r.b.Seen(l.at())
	r.begun(t, at)
}

// follows returns which turn a prompt continues.
func (r *reader) follows(l line) (string, error) {
	last := int32(len(r.ids) - 1)
	turn, ok := r.known[maphash.String(r.seed, l.Parent)]
	switch {
	case l.Parent == "" && last < 0 && !r.resumed:
		return "", nil
	case l.Parent == "":
		return foreign.Beginning, nil
	case ok && turn == last:
		return "", nil
	case ok && turn >= 0:
		return r.ids[turn], nil
	case r.resumed:
		return "", fmt.Errorf("%w: a prompt continues a turn before the mark", foreign.ErrMark)
	case ok:
		return foreign.Beginning, nil
	}
	return "", nil // the line that it continues is lost
}

func (r *reader) assistant(l line) {
	if !r.b.Active() {
		return
	}
	at, t, calls, said := l.at(), r.b.Turn(), 0, false
	for _, p := range l.Message.Parts {
		switch {
		case p.Call != nil:
			call := newCall(p.Call.ID, p.Call.Name, p.Call.Args)
			call.Started = at
			r.b.Call(call, at)
			calls++
		case p.Thought:
			r.b.Thinking(p.Text, at)
		case p.Text != "":
			r.b.Text(p.Text, at)
			said = true
		}
	}
	t.Done = said && calls == 0
	if l.Model != "" {
		t.Model = l.Model
	}
	t.Usage.Add(foreign.Usage{Input: max(0, l.Usage.Prompt-l.Usage.Cached), CacheRead: l.Usage.Cached, Output: l.Usage.Output, Reasoning: l.Usage.Thoughts})
	r.cut(l, at)
}

// cut notes that the conversation can continue behind a line.
func (r *reader) cut(l line, at time.Time) {
	if l.UUID != "" {
		r.b.Turn().Cut = l.UUID
	}
	r.b.Seen(at)
}

var exitCode = regexp.MustCompile(`(?m)^Exit Code: (\d+)$`)

func (r *reader) result(l line) {
	at := l.at()
	for _, p := range l.Message.Parts {
		if p.Response == nil {
			continue
		}
		output, failed := outputOf(p.Response.Response)
		if !r.b.Answer(p.Response.ID, output, func(c *foreign.Call) {
			c.Failed = failed || l.Result.Status == "error" || l.Result.Status == "cancelled"
			if c.Ended = at; at.Before(c.Started) {
				c.Ended = c.Started
			}
			if m := exitCode.FindStringSubmatch(output); c.Tool == foreign.ShellTool && m != nil {
				if code, err := strconv.Atoi(m[1]); err == nil {
					c.ExitCode = &code
				}
			}
		}) {
			continue
		}
		r.b.Turn().Done = false
		r.cut(l, at)
	}
}

// outputOf returns what a tool answered.
func outputOf(response json.RawMessage) (output string, failed bool) {
	var r struct {
		Output json.RawMessage `json:"output"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(response, &r) != nil {
		return string(response), false
	}
	raw := r.Output
	if len(r.Error) > 0 {
		raw, failed = r.Error, true
	}
	if len(raw) == 0 {
		return string(response), failed
	}
	if json.Unmarshal(raw, &output) != nil {
		output = string(raw)
	}
	return output, failed
}

var tools = map[string]foreign.Tool{
	"run_shell_command": foreign.ShellTool,
	"write_file":        foreign.EditTool, "edit": foreign.EditTool, "replace": foreign.EditTool,
	"read_file": foreign.ReadTool,
	"agent":     foreign.TaskTool, "task": foreign.TaskTool,
}

// newCall returns the call of a tool.
func newCall(id, name string, input json.RawMessage) foreign.Call {
	c := foreign.Call{ID: id, Name: name, Tool: tools[name], Input: bytes.Clone(input)}
	var in struct {
		Command  string `json:"command"`
		Prompt   string `json:"prompt"`
		Path     string `json:"file_path"`
		Absolute string `json:"absolute_path"`
	}
	_ = json.Unmarshal(input, &in) // fields of another type stay empty
	known := true
	switch c.Tool {
	case foreign.ShellTool:
		c.Command, known = in.Command, in.Command != ""
	case foreign.TaskTool:
		c.Task, known = in.Prompt, in.Prompt != ""
	case foreign.EditTool, foreign.ReadTool:
		for _, path := range []string{in.Path, in.Absolute} {
			if path != "" {
				c.Paths = append(c.Paths, path)
			}
		}
		known = len(c.Paths) > 0
	}
	if !known {
		c.Tool = foreign.OtherTool
	}
	return c
}
