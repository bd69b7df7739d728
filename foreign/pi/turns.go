package pi

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

// Turns returns the turns of all branches, in the order of the file.
func (*Adapter) Turns(ctx context.Context, s foreign.Session, from foreign.Mark) iter.Seq2[foreign.Turn, error] {
	return func(yield func(foreign.Turn, error) bool) {
		at, note, err := turns.OffsetOf(from)
		if err != nil {
			yield(foreign.Turn{}, err)
			return
		}
		r := newReader(turns.New(from, yield), note)
		end := at
		for line, err := range jsonl.Lines(ctx, s.Path, at) {
			if err != nil {
				r.fail(err)
			} else if e, ok := decode(line.Data); ok {
				r.entry(e, line.Offset)
			} else {
				r.fail(fmt.Errorf("%w: the line at byte %d is not an entry", foreign.ErrUnreadable, line.Offset))
			}
			if r.b.Stopped() {
				return
			}
			end = max(end, line.End)
		}
		r.b.Close(end)
	}
}

// reader builds turns from the entries of a session.
//
// The note of its marks is the entry before the mark in the tree, and the turn of
// that entry: it is enough to read what follows a mark unless a branch begins further
// up.
type reader struct {
	b *turns.Builder
	// owner is the turn of each entry: "" before the first turn, foreign.Beginning before
	// a later turn that begins the conversation again.
	owner map[string]string
	last  string // the owner of the previous entry
	// partial means that entries before a mark are not in owner, and damaged that a line
	// could not be read.
	partial, damaged bool
}

func newReader(b *turns.Builder, note string) *reader {
	r := &reader{b: b, owner: map[string]string{}}
	if note != "" {
		entry, turn, _ := strings.Cut(note, " ")
		r.owner[entry], r.last, r.partial = turn, turn, true
		b.Note = note
	}
	return r
}

// fail reports a line that cannot be read.
func (r *reader) fail(err error) {
	r.damaged = true
	r.b.Fail(err)
}

// entry adds one line.
func (r *reader) entry(e entry, at int64) {
	if e.ID == "" || e.Type == "session" {
		return
	}
	owner, ok := r.parent(e)
	if !ok {
		r.b.Fail(fmt.Errorf("%w: an entry continues one before the mark", foreign.ErrMark))
		return
	}
	if t, ok := r.begins(e, owner); ok {
		t.Follows = owner
		// Entries after this offset continue the parent of the entry, even if that is not
		// the entry before it in the file.
		r.b.Note = note(e.ParentID, owner)
		r.b.Begin(t, at)
		owner = e.ID
	}
	r.owner[e.ID], r.last, r.b.Note = owner, owner, note(e.ID, owner)
	r.add(e, owner)
}

func note(entry, turn string) string {
	if turn == "" {
		return entry
	}
	return entry + " " + turn
}

// parent returns the turn that an entry continues. It is false for an entry before the
// mark.
func (r *reader) parent(e entry) (string, bool) {
	owner, known := r.owner[e.ParentID]
	switch {
	case known:
		return owner, true
	case e.ParentID == "" && r.last == "":
		return "", true
	case e.ParentID == "":
		return foreign.Beginning, true
	case r.partial && !r.damaged:
		return "", false
	}
	return r.last, true // the parent is a line that could not be read
}

// begins reports whether an entry begins a turn, and which.
func (r *reader) begins(e entry, owner string) (foreign.Turn, bool) {
	t := foreign.Turn{ID: e.ID, Started: e.Timestamp}
	current := r.b.Turn()
	switch {
	case e.Type == "compaction" || e.Type == "branch_summary":
		t.Prompt, t.Automatic, t.Done = e.Summary, true, true
	case e.Type == "message" && e.Message.Role == "user":
		t.Prompt = text(e.Message.Content)
	case e.Type == "custom_message" && current != nil && current.ID == owner && current.Done:
		// An extension speaks for the user. Inside a turn it only adds to the context.
		t.Prompt, t.Automatic = text(e.Content), true
	case e.Type == "message" && owner != "" && owner != foreign.Beginning && current != nil && current.ID != owner:
		// The conversation continues inside an earlier turn, which is complete for the
		// caller.
		t.Automatic = true
	default:
		return t, false
	}
	return t, true
}

// add adds the content of an entry to the current turn.
func (r *reader) add(e entry, owner string) {
	if t := r.b.Turn(); t != nil && t.ID == owner {
		t.Cut = e.ID
	}
	if e.Type != "message" || owner == "" || owner == foreign.Beginning || !r.b.Active() {
		return
	}
	t := r.b.Turn()
	r.b.Seen(e.Timestamp)
	switch m := e.Message; m.Role {
	case "assistant":
		r.assistant(e, t)
	case "toolResult":
		t.Done = false
		r.b.Answer(m.ToolCallID, text(m.Content), func(c *foreign.Call) {
			c.Failed, c.Ended = m.IsError, e.Timestamp
		})
	case "bashExecution":
		r.b.Call(foreign.Call{
			ID: e.ID, Name: "!", Tool: foreign.ShellTool, Command: m.Command, Output: m.Output, Answered: true,
			ExitCode: m.ExitCode, Failed: m.ExitCode != nil && *m.ExitCode != 0, Ended: e.Timestamp,
		}, e.Timestamp)
	}
}

func (r *reader) assistant(e entry, t *foreign.Turn) {
	m := e.Message
	for _, b := range blocks(m.Content) {
		switch b.Type {
		case "text":
			r.b.Text(b.Text, e.Timestamp)
		case "thinking":
			r.b.Thinking(b.Thinking, e.Timestamp)
		case "toolCall":
			c := toolCall(b.ID, b.Name, b.Arguments)
			c.Started = e.Timestamp
			r.b.Call(c, e.Timestamp)
		}
	}
	if m.Model != "" {
		t.Model = m.Model
	}
	t.Usage.Add(m.Usage.foreign())
	t.Interrupted = m.StopReason == "aborted"
	// After an error pi may try again in the same turn.
	t.Done = m.StopReason == "stop" || m.StopReason == "length" || m.StopReason == "aborted"
}
