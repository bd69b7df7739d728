package opencode

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

// message is the data of a message.
type message struct {
	Role    string
	ModelID string
	Cost    float64
	Finish  string
	Time    struct{ Created, Completed int64 }
	Tokens  struct {
		Input, Output, Reasoning int64
		Cache                    struct{ Read, Write int64 }
	}
	Error *struct{ Name string }
}

// part is the data of a part of a message.
type part struct {
	Type      string
	Text      string
	Synthetic bool
	Ignored   bool
	Tool      string
	CallID    string
	Time      struct{ Start, End int64 }
	State     struct {
		Status   string
		Input    json.RawMessage
		Output   string
		Error    string
		Metadata struct {
			Exit      *int
			SessionID string
		}
		Time struct{ Start, End int64 }
	}
}

// Turns reads the turns of a session. A mark is "after ID COUNT": behind the turn ID with
// COUNT messages, or "at ID".
func (*Adapter) Turns(ctx context.Context, s foreign.Session, from foreign.Mark) iter.Seq2[foreign.Turn, error] {
	return func(yield func(foreign.Turn, error) bool) {
		d, err := openDatabase(s.Path)
		if err != nil {
			yield(foreign.Turn{}, err)
			return
		}
		defer d.close()
		index, err := readIndex(ctx, d, s.ID)
		first := 0
		if err == nil {
			first, err = find(index, from)
		}
		if err != nil {
			yield(foreign.Turn{}, err)
			return
		}
		r := reader{session: s}
		for i, t := range index[first:] {
			rows, err := readRows(ctx, d, t)
			if err != nil {
				if !yield(foreign.Turn{}, err) || !foreign.Unreadable(err) {
					return
				}
				continue
			}
			follows := ""
			if first+i > 0 {
				follows = index[first+i-1].id
			}
			if !r.turn(t, rows, follows, first+i+1 < len(index), yield) {
				return
			}
		}
	}
}

// find returns where reading begins.
func find(index []*turnIndex, from foreign.Mark) (int, error) {
	if from == "" {
		return 0, nil
	}
	words := strings.Fields(string(from))
	for i, t := range index {
		switch {
		case len(words) == 2 && words[0] == "at" && words[1] == t.id:
			return i, nil
		case len(words) == 3 && words[0] == "after" && words[1] == t.id && words[2] == strconv.Itoa(len(t.messages)):
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("%w: %q is not in the session", foreign.ErrMark, from)
}

// reader builds turns from rows.
type reader struct {
	session foreign.Session
	b       *turns.Builder
}

// turn yields one turn and reports whether more are wanted.
func (r *reader) turn(t *turnIndex, rows []row, follows string, more bool, yield func(foreign.Turn, error) bool) bool {
	going := true
	r.b = turns.New("", func(out foreign.Turn, err error) bool {
		if err == nil {
			if out.Done = out.Done || more; out.Done {
				out.Mark = foreign.Mark("after " + t.id + " " + strconv.Itoa(len(t.messages)))
			} else {
				out.Mark = foreign.Mark("at " + t.id)
			}
		}
		going = yield(out, err)
		return going
	})
	out := foreign.Turn{ID: t.id, Follows: follows, Cut: t.id, Started: when(rows[0].created)}
	if r.session.Parent != "" { // a person continues only what a person began
		out.Cut = ""
	}
	out.Prompt, out.Automatic = prompt(rows, t.id)
	r.b.Begin(out, 0)
	for _, row := range rows {
		if row.data == nil {
			r.b.Fail(fmt.Errorf("%w: %s %s has %d bytes", foreign.ErrUnreadable, row.table, row.id, row.size))
		} else if err := r.add(row, t.id); err != nil {
			r.b.Fail(fmt.Errorf("%w: %s %s: %w", foreign.ErrUnreadable, row.table, row.id, err))
		}
		if r.b.Stopped() {
			return false
		}
	}
	r.b.Close(0)
	return going
}

// prompt returns the prompt of a user message. OpenCode adds parts of its own to it,
// and whole messages when it continues by itself.
func prompt(rows []row, id string) (text string, automatic bool) {
	var said, synthetic []string
	for _, r := range rows {
		var p part
		if r.table != "part" || r.message != id || json.Unmarshal(r.data, &p) != nil {
			continue
		}
		switch {
		case p.Type == "compaction":
			automatic = true
		case p.Type != "text" || p.Text == "" || p.Ignored:
		case p.Synthetic:
			synthetic = append(synthetic, p.Text)
		default:
			said = append(said, p.Text)
		}
	}
	if len(said) > 0 {
		return strings.Join(said, "\n"), automatic
	}
	return strings.Join(synthetic, "\n"), automatic || len(synthetic) > 0
}

func (r *reader) add(row row, user string) error {
	if row.table == "message" {
		var m message
		if err := json.Unmarshal(row.data, &m); err != nil {
			return err
		}
		r.message(m, row)
		return nil
	}
	if row.message == user {
		return nil
	}
	var p part
	if err := json.Unmarshal(row.data, &p); err != nil {
		return err
	}
	at := when(max(p.Time.Start, p.State.Time.Start))
	if at.IsZero() {
		at = when(row.created)
	}
	switch p.Type {
	case "text":
		r.b.Text(p.Text, at)
	case "reasoning":
		r.b.Thinking(p.Text, at)
	case "tool":
		r.b.Call(p.call(), at)
	}
	r.b.Seen(when(max(p.Time.End, p.State.Time.End)))
	return nil
}

func (r *reader) message(m message, row row) {
	t := r.b.Turn()
	r.b.Seen(when(row.created))
	if m.Role != "assistant" {
		return
	}
	r.b.Seen(when(m.Time.Completed))
	if m.ModelID != "" {
		t.Model = m.ModelID
	}
	use := foreign.Usage{
		Input: m.Tokens.Input, Output: m.Tokens.Output, Reasoning: m.Tokens.Reasoning,
		CacheRead: m.Tokens.Cache.Read, CacheWrite: m.Tokens.Cache.Write,
	}
	if m.Cost > 0 { // 0 stands for models without a price, too
		use.CostUSD = &m.Cost
	}
	t.Usage.Add(use)
	t.Interrupted = m.Error != nil && m.Error.Name == "MessageAbortedError"
	t.Done = m.Time.Completed > 0 && (m.Error != nil || m.Finish != "" && m.Finish != "tool-calls")
}

// call returns the call of a tool.
func (p part) call() foreign.Call {
	c := toolCall(p.CallID, p.Tool, p.State.Input)
	c.Output, c.ExitCode = p.State.Output, p.State.Metadata.Exit
	c.Started, c.Ended = when(p.State.Time.Start), when(p.State.Time.End)
	if c.Tool == foreign.TaskTool {
		c.Subagent = p.State.Metadata.SessionID
	}
	switch p.State.Status {
	case "completed":
		c.Answered = true
		c.Failed = c.ExitCode != nil && *c.ExitCode != 0
	case "error":
		c.Answered, c.Failed, c.Output = true, true, p.State.Error
	}
	if c.Ended.Before(c.Started) {
		c.Ended = time.Time{}
		if c.Answered {
			c.Ended = c.Started
		}
	}
	return c
}

func toolCall(id, tool string, input json.RawMessage) foreign.Call {
	c := foreign.Call{ID: id, Name: tool, Input: input}
	var args struct{ FilePath, Command, Prompt string }
	json.Unmarshal(input, &args)
	switch {
	case tool == "bash" && args.Command != "":
		c.Tool, c.Command = foreign.ShellTool, args.Command
	case (tool == "write" || tool == "edit" || tool == "multiedit") && args.FilePath != "":
		c.Tool, c.Paths = foreign.EditTool, []string{args.FilePath}
	case tool == "read" && args.FilePath != "":
		c.Tool, c.Paths = foreign.ReadTool, []string{args.FilePath}
	case tool == "task" && args.Prompt != "":
		c.Tool, c.Task = foreign.TaskTool, args.Prompt
	}
	return c
}
