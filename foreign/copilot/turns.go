package copilot

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

// Turns returns the turns of a session or of a subagent.
func (Adapter) Turns(ctx context.Context, s foreign.Session, from foreign.Mark) iter.Seq2[foreign.Turn, error] {
	return func(yield func(foreign.Turn, error) bool) {
		at, sum, err := turns.OffsetOf(from)
		if err == nil && sum != "" {
			err = jsonl.Check(s.Path, at, sum)
		}
		if err != nil {
			yield(foreign.Turn{}, err)
			return
		}
		r := newReader(s, turns.New(from, yield))
		r.b.Note = sum
		r.read(ctx, s.Path, at)
	}
}

// reader reads the events of a session, or of one of its subagents.
type reader struct {
	b     *turns.Builder
	agent string // the subagent, "" for the session itself

	end      int64 // of the last line
	done     int64 // where the turn ended, 0 if the record does not say it
	answered bool  // the last message requested no tool
}

func newReader(s foreign.Session, b *turns.Builder) *reader {
	r := &reader{b: b}
	if s.Parent != "" {
		r.agent = s.ID
	}
	return r
}

func (r *reader) read(ctx context.Context, path string, from int64) {
	r.end = from
	for raw, err := range jsonl.Lines(ctx, path, from) {
		if r.b.Stopped() {
			return
		}
		var l line
		switch {
		case err != nil:
			r.b.Fail(err)
			if raw.End > r.end {
				r.end, r.b.Note = raw.End, "" // it is not known
			}
			continue
		case json.Unmarshal(raw.Data, &l) != nil:
			r.b.Fail(unreadable(fmt.Errorf("the line at byte %d is not JSON", raw.Offset)))
		case l.Agent == r.agent:
			r.line(l, raw)
		case l.Type == "subagent.started":
			r.started(l)
		}
		r.end, r.b.Note = raw.End, raw.Sum()
	}
	if !r.b.Stopped() {
		r.b.Close(r.end)
	}
}

// started records which subagent a call started.
func (r *reader) started(l line) {
	var e execution
	if json.Unmarshal(l.Data, &e) != nil {
		return
	}
	if c := r.b.Find(e.ID); c != nil {
		c.Subagent = l.Agent
	}
}

func (r *reader) line(l line, raw jsonl.Line) {
	switch l.Type {
	case "user.message":
		r.ask(l, raw)
	case "assistant.turn_start":
		if t := r.b.Turn(); t != nil {
			t.Done, r.done = false, 0 // a hook may have requested more
		}
	case "assistant.message":
		r.message(l)
	case "assistant.turn_end":
		if r.answered {
			r.finish(l, raw)
		}
	case "abort":
		if t := r.b.Turn(); t != nil && !t.Done {
			t.Interrupted = true
			r.finish(l, raw)
		}
	case "session.shutdown":
		r.finish(l, raw)
	case "session.usage_record":
		r.count(l)
	case "tool.execution_start", "tool.execution_complete":
		r.execution(l)
	default:
		return
	}
	if t := r.b.Turn(); t != nil && !t.Done {
		r.b.Seen(l.Timestamp)
	}
}

// ask begins a turn, or adds to the prompt of a running one.
func (r *reader) ask(l line, raw jsonl.Line) {
	var m message
	if json.Unmarshal(l.Data, &m) != nil {
		return
	}
	id := m.Interaction
	if id == "" {
		id = l.ID
	}
	if t := r.b.Turn(); t != nil && t.ID == id {
		r.b.Prompt(t.Prompt + "\n\n" + m.Content)
		return
	}
	r.b.Begin(foreign.Turn{
		ID: id, Cut: id, Prompt: m.Content, Automatic: m.Source != "" && m.Source != "user" && r.agent == "", Started: l.Timestamp,
	}, raw.Offset)
	if r.agent != "" {
		r.b.Turn().Cut = "" // a subagent cannot be resumed
	}
	r.done, r.answered = 0, false
}

func (r *reader) message(l line) {
	var m message
	if json.Unmarshal(l.Data, &m) != nil || !r.b.Active() {
		return
	}
	if m.Model != "" {
		r.b.Turn().Model = m.Model
	}
	r.b.Thinking(m.Reasoning, l.Timestamp)
	r.b.Text(m.Content, l.Timestamp)
	for _, q := range m.Requests {
		c := callOf(q.ID, q.Name, q.Arguments)
		c.Started = l.Timestamp
		r.b.Call(c, l.Timestamp)
	}
	r.answered = len(m.Requests) == 0
}

// finish ends the turn. Events from there to the next prompt belong to no turn; a cut
// keeps the end of the program's run, as the original has it.
func (r *reader) finish(l line, raw jsonl.Line) {
	t := r.b.Turn()
	if t == nil {
		return
	}
	if !t.Done {
		r.b.Seen(l.Timestamp)
		r.b.Note = raw.Sum()
		r.b.Done(raw.End)
	}
	r.done = raw.End
}

func (r *reader) count(l line) {
	var u usage
	t := r.b.Turn()
	if t == nil || json.Unmarshal(l.Data, &u) != nil {
		return
	}
	n := u.Usage
	t.Usage.Add(foreign.Usage{
		Input: max(0, n.Input-n.CacheRead-n.CacheWrite), Output: n.Output, CacheRead: n.CacheRead, CacheWrite: n.CacheWrite, Reasoning: n.Reasoning,
	})
	if n.Model != "" {
		t.Model = n.Model
	}
}

func (r *reader) execution(l line) {
	var e execution
	if json.Unmarshal(l.Data, &e) != nil || !r.b.Active() {
		return
	}
	if l.Type == "tool.execution_start" {
		if c := r.b.Find(e.ID); c != nil {
			c.Started = l.Timestamp
			return
		}
		c := callOf(e.ID, e.Name, e.Arguments)
		c.Started = l.Timestamp
		r.b.Call(c, l.Timestamp)
		return
	}
	output := e.Result.Content
	if output == "" {
		output = e.Error.Message
	}
	r.b.Answer(e.ID, output, func(c *foreign.Call) {
		c.Ended = l.Timestamp
		e.apply(c)
	})
}
