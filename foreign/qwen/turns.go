package qwen

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

// line has the fields that are read from a line.
type line struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
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

func decode(data []byte) (l line, err error) {
	err = jsonl.Decode(data, &l)
	return l, err
}

func (l line) at() time.Time {
	at, _ := time.Parse(time.RFC3339Nano, l.Time) // the zero time if it is not one
	return at
}

// Turns returns the turns of a session.
func (Adapter) Turns(ctx context.Context, s foreign.Session, from foreign.Mark) iter.Seq2[foreign.Turn, error] {
	return func(yield func(foreign.Turn, error) bool) { newReader(from, yield).read(ctx, s.Path, from) }
}

// reader makes turns from lines.
type reader struct {
	b     *turns.Builder
	lines *turns.Lineage
	seen  func(l line, end int64) // for cuts
}

func newReader(from foreign.Mark, yield func(foreign.Turn, error) bool) *reader {
	return &reader{b: turns.New(from, yield), lines: turns.NewLineage(from), seen: func(line, int64) {}}
}

func (r *reader) read(ctx context.Context, path string, from foreign.Mark) {
	at, leaf, err := turns.OffsetOf(from)
	if err != nil {
		r.b.Fail(err)
		return
	}
	if r.b.Note = leaf; leaf != "" {
		r.lines.Add(leaf)
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
	if l.UUID != "" && r.lines.Has(l.UUID) {
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
		r.lines.Add(l.UUID)
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
	follows, err := r.lines.Follows(l.Parent)
	if err != nil {
		r.b.Fail(err)
		return
	}
	// The subtypes are those of a timer and of the report of a background task.
	t := foreign.Turn{ID: l.UUID, Follows: follows, Prompt: strings.Join(texts, "\n"), Automatic: l.Subtype != "", Cut: l.UUID}
	if t.ID == "" {
		t.ID = "byte-" + strconv.FormatInt(at, 10)
	}
	r.b.Begin(t, at)
	r.lines.Begin(t, at)
	r.b.Seen(l.at())
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

// cut records that the conversation can continue after a line.
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
