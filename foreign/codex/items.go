package codex

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
)

// item reads an item of the model's conversation.
func (r *reader) item(payload json.RawMessage, at time.Time, raw jsonl.Line) {
	var i item
	if json.Unmarshal(payload, &i) != nil {
		return
	}
	switch i.Type {
	case "message":
		r.message(i, at, raw)
	case "reasoning":
		parts := i.Content
		if len(parts) == 0 {
			parts = i.Summary
		}
		for _, p := range parts {
			r.think(p.Text, at, fromItem)
		}
	case "function_call":
		r.call(callOf(i.CallID, i.Name, i.Arguments), at)
	case "custom_tool_call":
		r.call(callOf(i.CallID, i.Name, i.Input), at)
	case "local_shell_call":
		r.call(callOf(firstOf(i.CallID, i.ID), "local_shell", string(i.Action)), at)
	case "web_search_call":
		c := callOf(firstOf(i.CallID, i.ID), "web_search", string(i.Action))
		c.Answered = i.Status == "completed"
		r.call(c, at)
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output", "mcp_tool_call_output":
		output := text(i.Output)
		r.b.Answer(i.CallID, output, func(c *foreign.Call) {
			if c.Ended.IsZero() {
				c.Ended = at
			}
			var o outcome
			if c.Tool == foreign.ShellTool || c.Tool == foreign.EditTool {
				o.ExitCode = exitCode(output)
			}
			if c.Tool == foreign.TaskTool && c.Subagent == "" {
				c.Subagent = spawned(output)
			}
			if bytes.HasPrefix(i.Output, []byte("{")) {
				_ = json.Unmarshal(i.Output, &o) // it may say whether it succeeded
			}
			o.apply(c)
		})
	}
}

// spawned returns the session that an answer to spawn_agent names.
func spawned(output string) string {
	var answer struct {
		ID string `json:"agent_id"`
	}
	_ = json.Unmarshal([]byte(output), &answer) // an answer of another form names none
	return answer.ID
}

func (r *reader) message(i item, at time.Time, raw jsonl.Line) {
	switch i.Role {
	case "user":
		for _, text := range i.prompts() {
			r.ask(text, i.ID, fromItem, at, raw)
		}
	case "assistant":
		for _, c := range i.Content {
			r.say(c.Text, at, fromItem)
		}
	}
}

// ask adds what a person wrote. In a record without the beginnings of turns, it
// begins one.
func (r *reader) ask(text, id string, source int, at time.Time, raw jsonl.Line) {
	t := r.b.Turn()
	if t == nil || t.Done || r.implicit && len(t.Steps) > 0 {
		if t != nil && source == fromEvent && !r.fresh("ask", text, source) {
			return // the event of a message that is already known
		}
		r.begin(firstOf(id, "byte-"+strconv.FormatInt(raw.Offset, 10)), at, raw.Offset)
		r.implicit = true
	}
	if r.fresh("ask", text, source) {
		r.prompt(text)
	}
}

func (r *reader) say(text string, at time.Time, source int) {
	if text != "" && r.b.Active() && r.fresh("say", text, source) {
		r.b.Text(text, at)
	}
}

func (r *reader) think(text string, at time.Time, source int) {
	if text != "" && r.b.Active() && r.fresh("think", text, source) {
		r.b.Thinking(text, at)
	}
}

func (r *reader) call(c foreign.Call, at time.Time) {
	c.Started = at
	r.b.Call(c, at)
}

// event reads what Codex showed on its screen.
func (r *reader) event(e event, at time.Time, raw jsonl.Line) {
	switch e.Type {
	case "task_started", "turn_started":
		r.begin(firstOf(e.TurnID, "byte-"+strconv.FormatInt(raw.Offset, 10)), at, raw.Offset)
	case "task_complete", "turn_complete", "turn_aborted":
		r.finish(e, at, raw)
	case "thread_rolled_back":
		r.rollBack(e.NumTurns)
	case "user_message":
		if !isInjected(e.Message) {
			r.ask(e.Message, "", fromEvent, at, raw)
		}
	case "agent_message":
		r.say(e.Message, at, fromEvent)
	case "agent_reasoning", "agent_reasoning_raw_content":
		r.think(e.Text, at, fromEvent)
	case "token_count":
		if e.Info != nil {
			r.count(e.Info.Last, e.Info.Total.Total)
		}
	case "exec_command_end", "patch_apply_end":
		if c := r.b.Find(e.CallID); c != nil {
			e.outcome.apply(c)
		}
	case "item_completed":
		r.completed(e, at, raw)
	}
}

// finish ends the turn that an event names.
func (r *reader) finish(e event, at time.Time, raw jsonl.Line) {
	t := r.b.Turn()
	if t == nil || t.Done || e.TurnID != "" && t.ID != e.TurnID && !r.implicit {
		return
	}
	if e.Type == "turn_aborted" {
		t.Interrupted = true
	} else if !slices.ContainsFunc(t.Steps, func(s foreign.Step) bool { return s.Text != "" }) {
		r.b.Text(e.Last, at)
	}
	r.b.Seen(at)
	r.end, r.sum, r.done = raw.End, raw.Sum(), raw.End
	r.note()
	r.b.Done(raw.End)
}

// completed reads an item on the screen.
func (r *reader) completed(e event, at time.Time, raw jsonl.Line) {
	var d done
	if json.Unmarshal(e.Item, &d) != nil {
		return
	}
	switch d.Type {
	case "UserMessage":
		for _, c := range d.Content {
			if c.Text != "" && !isInjected(c.Text) {
				r.ask(c.Text, d.ID, fromEvent, at, raw)
			}
		}
		return
	case "AgentMessage":
		for _, c := range d.Content {
			r.say(c.Text, at, fromEvent)
		}
		return
	}
	c := r.b.Find(d.ID)
	if c == nil {
		return
	}
	d.outcome.apply(c)
	if e.StartedMS > 0 {
		c.Started = time.UnixMilli(e.StartedMS).UTC()
	}
	if e.CompletedMS > 0 {
		c.Ended = time.UnixMilli(e.CompletedMS).UTC()
	}
	if c.Tool == foreign.TaskTool && len(d.Receivers) > 0 {
		c.Subagent = d.Receivers[0]
	}
}
