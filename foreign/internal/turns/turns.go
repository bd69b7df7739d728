// Package turns builds the turns of a session from a record that is read piece by
// piece. It promises that a turn takes bounded memory for any record, and it is the
// one place for the rules that all agents share: which turn an answer belongs to,
// where reading continues, what is cut.
package turns

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stet-dev/stet/foreign"
)

// Limits of what a turn keeps. The raw record has everything.
const (
	maxText = 1 << 20  // of one text, output or input
	maxTurn = 16 << 20 // of all texts of a turn
)

// Builder collects one turn at a time and yields it when it is complete. After the
// consumer has stopped, or after an error, it ignores further input: readers check
// Stopped once for each line.
type Builder struct {
	// Note is what a reader needs in addition to the offset to continue reading, such as
	// the id of the last line. It becomes part of the marks. Readers change it after
	// they have called Begin for a line.
	Note string

	yield   func(foreign.Turn, error) bool
	resumed bool // reading began at a mark
	turn    *foreign.Turn
	begin   foreign.Mark // where turn begins
	done    foreign.Mark // where turn ended, as Done said; "" if more came or nothing said it
	calls   map[string]*foreign.Call
	size    int
	last    string // id of the previous turn
	stopped bool
}

// New returns a builder. from is the mark at which reading begins.
func New(from foreign.Mark, yield func(foreign.Turn, error) bool) *Builder {
	return &Builder{yield: yield, resumed: from != ""}
}

// Stopped reports whether the consumer has stopped.
func (b *Builder) Stopped() bool { return b.stopped }

// Fail reports an error. One that is not foreign.ErrUnreadable is the last.
func (b *Builder) Fail(err error) {
	if b.stopped {
		return
	}
	if !b.yield(foreign.Turn{}, err) || !foreign.Unreadable(err) {
		b.stopped = true
	}
}

// Begin ends the turn before and begins another one, whose first line is at an offset. If
// Follows is empty, it follows the turn before.
func (b *Builder) Begin(t foreign.Turn, at int64) {
	b.end(at)
	if t.Follows == "" {
		t.Follows = b.last
	}
	b.size, b.begin, b.done, b.calls = 0, Offset(at, b.Note), "", map[string]*foreign.Call{}
	t.Prompt = b.keep(t.Prompt)
	b.turn = &t
}

// Done records that the record shows the end of the turn, in a line that ends at an
// offset. Lines from there to the next turn belong to no turn, so reading always
// continues there. Note must be that of the line.
func (b *Builder) Done(end int64) {
	if b.turn != nil {
		b.turn.Done, b.done = true, Offset(end, b.Note)
	}
}

// Prompt replaces the prompt of the current turn.
func (b *Builder) Prompt(text string) {
	if b.turn != nil {
		b.turn.Prompt = b.keep(text)
	}
}

// Turn returns the current turn for changes, nil before the first.
func (b *Builder) Turn() *foreign.Turn { return b.turn }

// Active reports whether there is a turn that content can belong to. Content before
// the first turn of a record is not part of any; content right after a mark belongs
// to a turn before it, so the session must be read from the beginning.
func (b *Builder) Active() bool {
	if b.turn == nil && b.resumed && !b.stopped {
		b.Fail(fmt.Errorf("%w: a turn before the mark has grown", foreign.ErrMark))
	}
	b.done = "" // the turn goes on
	return b.turn != nil && !b.stopped
}

// Text adds what the agent said.
func (b *Builder) Text(text string, at time.Time) {
	if text != "" && b.Active() {
		b.add(foreign.Step{Text: b.keep(text), At: at})
	}
}

// Thinking adds what the agent thought.
func (b *Builder) Thinking(text string, at time.Time) {
	if text != "" && b.Active() {
		b.add(foreign.Step{Thinking: b.keep(text), At: at})
	}
}

// Call adds the call of a tool. A call with a known id replaces the earlier one.
func (b *Builder) Call(c foreign.Call, at time.Time) {
	if !b.Active() {
		return
	}
	c.Command, c.Task, c.Output = b.keep(c.Command), b.keep(c.Task), b.keep(c.Output)
	if b.size += len(c.Input); len(c.Input) > maxText || b.size > maxTurn {
		c.Input = []byte(strconv.Quote(fmt.Sprintf("%d bytes, not kept here", len(c.Input))))
	}
	if have := b.calls[c.ID]; c.ID != "" && have != nil {
		*have = c
		return
	}
	call := &c
	b.calls[c.ID] = call
	b.add(foreign.Step{Call: call, At: at})
}

// Answer changes a call of this turn when its result is known. It reports whether the
// turn has such a call.
func (b *Builder) Answer(id string, output string, change func(*foreign.Call)) bool {
	if !b.Active() {
		return false
	}
	call := b.calls[id]
	if call == nil {
		return false
	}
	call.Output, call.Answered = b.keep(output), true
	if change != nil {
		change(call)
	}
	return true
}

// Find returns a call of this turn, or nil.
func (b *Builder) Find(id string) *foreign.Call { return b.calls[id] }

// Seen records a time at which the turn was still running.
func (b *Builder) Seen(at time.Time) {
	if b.turn == nil || at.IsZero() {
		return
	}
	if b.turn.Started.IsZero() {
		b.turn.Started = at
	}
	if at.After(b.turn.Ended) {
		b.turn.Ended = at
	}
}

// Close ends the last turn at the end of the record. A turn of which the record has only
// the beginning, and neither prompt nor answer, is left for the next reading.
func (b *Builder) Close(end int64) {
	if b.turn == nil {
		return
	}
	if !b.turn.Done && b.turn.Prompt == "" && len(b.turn.Steps) == 0 {
		b.turn = nil
		return
	}
	if !b.turn.Done {
		b.finish(b.begin)
		return
	}
	b.finish(Offset(end, b.Note))
}

// end yields a turn that another one follows.
func (b *Builder) end(at int64) {
	if b.turn != nil {
		b.turn.Done = true
		b.finish(Offset(at, b.Note))
	}
}

func (b *Builder) finish(mark foreign.Mark) {
	t := b.turn
	t.Mark = mark
	if b.done != "" {
		t.Mark = b.done
	}
	b.last, b.turn = t.ID, nil
	if !b.stopped && !b.yield(*t, nil) {
		b.stopped = true
	}
}

func (b *Builder) add(s foreign.Step) { b.turn.Steps = append(b.turn.Steps, s) }

// keep cuts a text to the size that a turn may hold.
func (b *Builder) keep(text string) string {
	room := min(maxText, max(0, maxTurn-b.size))
	if len(text) > room {
		cut := room
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + fmt.Sprintf("\n[… %d bytes more in the original record]", len(text)-cut)
	}
	b.size += len(text)
	return text
}

// Offset returns the mark of an offset with a note.
func Offset(at int64, note string) foreign.Mark {
	if note != "" {
		note = " " + note
	}
	return foreign.Mark(strconv.FormatInt(at, 10) + note)
}

// OffsetOf returns the offset and the note of a mark; "" is offset 0.
func OffsetOf(m foreign.Mark) (at int64, note string, err error) {
	if m == "" {
		return 0, "", nil
	}
	number, note, _ := strings.Cut(string(m), " ")
	at, err = strconv.ParseInt(number, 10, 64)
	if err != nil || at < 0 {
		return 0, "", fmt.Errorf("%w: %q is not an offset", foreign.ErrMark, m)
	}
	return at, note, nil
}
