package gemini

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

// Turns folds the log and then reads each message at its latest place.
func (*Adapter) Turns(ctx context.Context, s foreign.Session, from foreign.Mark) iter.Seq2[foreign.Turn, error] {
	return func(yield func(foreign.Turn, error) bool) {
		at, note, err := turns.OffsetOf(from)
		if err != nil {
			yield(foreign.Turn{}, err)
			return
		}
		f, err := newFold(note)
		if err != nil {
			yield(foreign.Turn{}, err)
			return
		}
		// The mark of a turn is after its last message, whatever the CLI wrote between that
		// and the next turn.
		next := 0
		b := turns.New(from, func(t foreign.Turn, err error) bool {
			if err == nil {
				if t.Done {
					t.Mark = f.mark(next)
				}
				next++
			}
			return yield(t, err)
		})
		f.read(ctx, s.Path, at, func(err error) bool {
			b.Fail(err)
			return !b.Stopped()
		})
		if b.Stopped() || len(f.turns) == 0 {
			return
		}
		file, err := os.Open(s.Path)
		if err != nil {
			b.Fail(unreadable(err))
			return
		}
		defer file.Close()
		r := reader{b: b, file: file, session: s, resumed: f.partial}
		for i, t := range f.turns {
			if ctx.Err() != nil {
				b.Fail(ctx.Err())
			}
			if r.turn(i, t); b.Stopped() {
				return
			}
		}
		b.Close(f.end)
	}
}

// reader builds turns from the places of their messages.
type reader struct {
	b       *turns.Builder
	file    *os.File
	session foreign.Session
	resumed bool

	// The list that was read last, and where it stands.
	listAt int64
	list   []json.RawMessage
}

func (r *reader) turn(i int, t *foldedTurn) {
	for k, at := range t.messages {
		m, err := r.message(at)
		if k == 0 {
			prompt, _ := m.prompt()
			out := foreign.Turn{ID: t.id, Follows: t.follows, Prompt: prompt, Automatic: automatic(prompt), Cut: t.id, Started: m.Timestamp}
			if r.session.Parent != "" { // the CLI cannot resume a subagent
				out.Cut, out.Automatic = "", i > 0 || r.resumed
			}
			r.b.Note = t.note
			r.b.Begin(out, t.begin)
		}
		if err != nil {
			r.b.Fail(err)
			continue
		}
		r.b.Seen(m.Timestamp)
		r.add(m)
	}
}

// message reads a message at its place.
func (r *reader) message(at ref) (m message, err error) {
	data, err := r.data(at)
	if err == nil && !decode(data, &m) {
		err = fmt.Errorf("%w: the message at byte %d has changed", foreign.ErrUnreadable, at.offset)
	}
	return m, err
}

func (r *reader) data(at ref) ([]byte, error) {
	if at.element >= 0 && r.list != nil && r.listAt == at.offset {
		return r.list[at.element], nil
	}
	data, err := io.ReadAll(io.NewSectionReader(r.file, at.offset, at.end-at.offset))
	if err != nil {
		return nil, unreadable(err)
	}
	if at.element < 0 {
		return data, nil
	}
	var rec record
	if err := json.Unmarshal(data, &rec); err != nil {
		return nil, unreadable(err)
	}
	r.listAt, r.list = at.offset, nil
	switch {
	case rec.Set != nil && rec.Set.Messages != nil:
		r.list = *rec.Set.Messages
	case rec.Messages != nil:
		r.list = *rec.Messages
	}
	if at.element >= len(r.list) {
		return nil, fmt.Errorf("%w: the list at byte %d has changed", foreign.ErrUnreadable, at.offset)
	}
	return r.list[at.element], nil
}

// add adds a message to the current turn.
func (r *reader) add(m message) {
	t := r.b.Turn()
	if t == nil {
		return
	}
	if m.Type == "user" {
		r.results(m)
		t.Done = false
		return
	}
	for _, th := range m.Thoughts {
		text := th.Subject
		if th.Description != "" {
			text += "\n" + th.Description
		}
		r.b.Thinking(text, th.Timestamp)
	}
	said, called := false, len(m.ToolCalls) > 0
	for _, p := range parts(m.Content) {
		switch {
		case p.FunctionCall != nil:
			called = true
			if r.b.Find(p.FunctionCall.ID) == nil {
				r.b.Call(p.FunctionCall.call(), m.Timestamp)
			}
		case p.Thought:
			r.b.Thinking(p.Text, m.Timestamp)
		case p.Text != "":
			said = true
			r.b.Text(p.Text, m.Timestamp)
		}
	}
	for _, c := range m.ToolCalls {
		call := c.call()
		call.Started = m.Timestamp
		if call.Ended.Before(call.Started) {
			call.Ended = call.Started
		}
		r.b.Call(call, m.Timestamp)
		r.b.Seen(c.Timestamp)
	}
	if m.Model != "" {
		t.Model = m.Model
	}
	if m.Tokens != nil {
		t.Usage.Add(m.Tokens.foreign())
	}
	t.Done = said && !called
}

// results adds results of tools that the calls do not have yet.
func (r *reader) results(m message) {
	for _, p := range parts(m.Content) {
		if p.FunctionResponse == nil {
			continue
		}
		if c := r.b.Find(p.FunctionResponse.ID); c != nil && !c.Answered {
			text, failed := p.FunctionResponse.output()
			r.b.Answer(c.ID, text, func(c *foreign.Call) { c.Failed, c.Ended = failed, m.Timestamp })
		}
	}
}
