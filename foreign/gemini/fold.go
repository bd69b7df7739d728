package gemini

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

// ref is the position of the latest version of a message: a line, or an element of
// the list in a line.
type ref struct {
	offset, end int64
	element     int // -1 for a line
}

// foldedTurn is a turn of which only the positions are known.
type foldedTurn struct {
	id, follows string
	begin       int64  // offset of its first line
	note, after string // the state before it and behind its prompt
	messages    []ref
	// late is where a line changes a message of it after a later turn has begun, or 0.
	late int64
}

// endOf returns where the last message of a turn ends before the next turn begins: a
// later line may still change a message.
func (f *fold) endOf(i int) (end int64) {
	for _, m := range f.turns[i].messages {
		end = max(end, m.end)
	}
	if i+1 < len(f.turns) {
		end = min(end, f.turns[i+1].begin)
	}
	return end
}

// slot is the place of a message among those of its turn.
type slot struct {
	turn *foldedTurn
	at   int
}

// fold follows the changes of a log. It keeps every turn that ever existed, and the
// current list of turns, which shows what a new turn follows.
type fold struct {
	turns []*foldedTurn
	slots map[string]slot // by message id

	current state
	cleared []string // the list that a "$set" without turns replaced
	partial bool     // reading began at a mark
	seen    bool     // there was a turn
	end     int64
}

// state is the current list of turns. Those before a mark are known only by number, digest
// and the last id.
type state struct {
	before int
	digest string
	last   string
	// dropped means that the list no longer has the turns before the mark.
	dropped bool
	line    []string // since the mark
}

func newFold(note string) (*fold, error) {
	f := &fold{slots: map[string]slot{}}
	if note == "" {
		return f, nil
	}
	parts := strings.Split(note, " ")
	n, err := strconv.Atoi(parts[0])
	if err != nil || len(parts) != 3 || n < 0 {
		return nil, fmt.Errorf("%w: note %q", foreign.ErrMark, note)
	}
	f.partial, f.seen = true, true
	if n > 0 {
		f.current = state{before: n, digest: parts[1], last: parts[2]}
	}
	return f, nil
}

// mark returns where reading continues after a turn. A line after the mark may change
// a turn before it; then the session is read from the beginning.
func (f *fold) mark(i int) foreign.Mark {
	end := f.endOf(i)
	for _, t := range f.turns[:i+1] {
		if t.late >= end {
			return turns.Offset(end, "changed")
		}
	}
	return turns.Offset(end, f.turns[i].after)
}

// note describes the current list of turns, for marks.
func (f *fold) note() string {
	if !f.seen {
		return ""
	}
	n, digest := f.current.before, f.current.digest
	if f.current.dropped {
		n, digest = 0, ""
	}
	for _, id := range f.current.line {
		digest = chain(digest, id)
	}
	if n += len(f.current.line); n == 0 {
		return "0 - -"
	}
	return fmt.Sprintf("%d %s %s", n, digest, f.last())
}

func chain(digest, id string) string {
	sum := sha256.Sum256([]byte(digest + " " + id))
	return hex.EncodeToString(sum[:8])
}

// last returns the turn that a new one follows, "" if the list is empty.
func (f *fold) last() string {
	if n := len(f.current.line); n > 0 {
		return f.current.line[n-1]
	}
	if f.current.dropped {
		return ""
	}
	return f.current.last
}

// read folds the lines of a file from an offset on. report receives the errors; read
// ends with the first one that is not foreign.ErrUnreadable.
func (f *fold) read(ctx context.Context, path string, from int64, report func(error) bool) {
	f.end = from
	for line, err := range jsonl.Lines(ctx, path, from) {
		if err == nil {
			err = f.add(line)
		}
		if err != nil {
			if len(f.current.line) == 0 && f.cleared != nil {
				f.current.line, f.cleared = f.cleared, nil // the list that follows cannot be read
			}
			if !report(err) || !foreign.Unreadable(err) {
				return
			}
		}
		f.end = max(f.end, line.End)
	}
}

func (f *fold) add(line jsonl.Line) error {
	var r record
	if err := json.Unmarshal(line.Data, &r); err != nil {
		r = record{}
		if !decode(line.Data, &r.message) {
			return fmt.Errorf("%w: the line at byte %d is not a record", foreign.ErrUnreadable, line.Offset)
		}
	}
	switch {
	case r.RewindTo != nil:
		return f.rewind(*r.RewindTo)
	case r.ID != "":
		return f.message(r.message, ref{line.Offset, line.End, -1})
	case r.Set != nil && r.Set.Messages != nil:
		return f.replace(*r.Set.Messages, line)
	case r.SessionID != "" && r.Messages != nil:
		return f.replace(*r.Messages, line)
	}
	return nil
}

// rewind drops a message and all after it. The CLI drops everything if it does not
// know the message.
func (f *fold) rewind(id string) error {
	at, known := f.slots[id]
	if !known && f.partial {
		return fmt.Errorf("%w: it is rewound to before the mark", foreign.ErrMark)
	}
	keep := 0
	if known {
		for i, turn := range f.current.line {
			if turn == at.turn.id {
				keep = i
				if id != turn { // inside the turn
					keep++
				}
			}
		}
	} else {
		f.current.dropped = true
	}
	f.current.line = f.current.line[:keep:keep]
	return nil
}

// message adds or replaces one message.
func (f *fold) message(m message, at ref) error {
	if s, ok := f.slots[m.ID]; ok {
		s.turn.messages[s.at] = at
		if s.turn != f.turns[len(f.turns)-1] {
			s.turn.late = at.offset
		}
		return nil
	}
	if prompt, ok := m.prompt(); ok {
		f.begin(m.ID, f.follows(prompt, f.last(), f.last()), at)
		return nil
	}
	if m.Type != "user" && m.Type != "gemini" || !f.seen {
		return nil // a note of the CLI, or before the first turn
	}
	s, ok := f.slots[f.last()]
	if !ok {
		if _, said := m.prompt(); !f.partial || m.Type == "user" && !said && !answers(m) {
			return nil
		}
		return fmt.Errorf("%w: a turn before the mark has grown", foreign.ErrMark)
	}
	f.attach(s.turn, m.ID, at)
	return nil
}

// answers reports whether a message has the result of a tool.
func answers(m message) bool {
	for _, p := range parts(m.Content) {
		if p.FunctionResponse != nil {
			return true
		}
	}
	return false
}

// follows returns what a new turn follows, behind previous in the list. replaced is the
// last turn of the list before this one.
func (f *fold) follows(prompt, previous, replaced string) string {
	switch {
	case automatic(prompt) && replaced != "":
		return replaced // it stands for the turns that it replaces
	case previous == "" && f.seen:
		return foreign.Beginning
	}
	return previous
}

func (f *fold) begin(id, follows string, at ref) *foldedTurn {
	t := &foldedTurn{id: id, follows: follows, begin: at.offset, note: f.note()}
	f.turns, f.seen = append(f.turns, t), true
	f.current.line = append(f.current.line, id)
	t.after = f.note()
	f.attach(t, id, at)
	return t
}

func (f *fold) attach(t *foldedTurn, id string, at ref) {
	f.slots[id] = slot{t, len(t.messages)}
	t.messages = append(t.messages, at)
}

// replace replaces the list of messages. Messages that are known keep what their own
// lines say, which is more.
func (f *fold) replace(list []json.RawMessage, line jsonl.Line) error {
	var messages []message
	var ids []string
	for _, raw := range list {
		var m message
		decode(raw, &m)
		messages = append(messages, m)
		if _, ok := m.prompt(); ok && m.ID != "" {
			ids = append(ids, m.ID)
		}
	}
	if len(ids) == 0 {
		if len(f.current.line) > 0 {
			f.cleared = f.current.line
		}
		f.current.line, f.current.dropped = nil, true
		return nil
	}
	first, err := f.match(ids)
	if err != nil {
		return err
	}
	replaced := f.last()
	f.current.dropped, f.current.line, f.cleared = first == 0, nil, nil
	f.list(messages, first, replaced, line)
	return nil
}

// match returns how many of the turns of a new list are those before the mark.
func (f *fold) match(ids []string) (int, error) {
	if f.current.before == 0 {
		return 0, nil
	}
	digest := ""
	for _, id := range ids[:min(len(ids), f.current.before)] {
		digest = chain(digest, id)
	}
	if len(ids) < f.current.before || digest != f.current.digest {
		return 0, fmt.Errorf("%w: the list of messages was replaced", foreign.ErrMark)
	}
	return f.current.before, nil
}

// list makes a list of messages the current one. The first turns of it are known.
func (f *fold) list(messages []message, known int, replaced string, line jsonl.Line) {
	var fresh *foldedTurn // the turn of this list that is new
	for i, m := range messages {
		at := ref{line.Offset, line.End, i}
		prompt, ok := m.prompt()
		switch {
		case m.ID == "":
		case ok && known > 0:
			known--
		case ok:
			if _, have := f.slots[m.ID]; have {
				fresh = nil
				f.current.line = append(f.current.line, m.ID)
			} else {
				fresh = f.begin(m.ID, f.follows(prompt, f.last(), replaced), at)
			}
		case fresh != nil:
			if _, have := f.slots[m.ID]; !have {
				f.attach(fresh, m.ID, at)
			}
		}
	}
}
