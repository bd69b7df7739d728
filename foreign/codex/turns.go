package codex

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

// Turns returns the turns of a session, including those that it shares with the
// session that it was forked from.
func (Adapter) Turns(ctx context.Context, s foreign.Session, from foreign.Mark) iter.Seq2[foreign.Turn, error] {
	return func(yield func(foreign.Turn, error) bool) {
		parts, err := libraryOf(s.Path).pieces(ctx, s)
		if err != nil && (!yield(foreign.Turn{}, err) || !foreign.Unreadable(err)) {
			return
		}
		parts, at, err := seek(parts, from)
		if err != nil {
			yield(foreign.Turn{}, err)
			return
		}
		r := &reader{b: turns.New(from, yield), total: at.total, whole: from == ""}
		r.read(ctx, parts, at)
	}
}

// place is a decoded mark.
type place struct {
	offset int64
	total  int64  // tokens of the session until there
	sum    string // of the line before
}

// seek returns the parts from a mark on.
func seek(parts []piece, from foreign.Mark) ([]piece, place, error) {
	offset, note, err := turns.OffsetOf(from)
	if err != nil || from == "" {
		return parts, place{}, err
	}
	words := strings.Fields(note)
	if len(words) != 3 {
		return nil, place{}, fmt.Errorf("%w: %q", foreign.ErrMark, from)
	}
	total, err := strconv.ParseInt(words[1], 36, 64)
	if err != nil {
		return nil, place{}, fmt.Errorf("%w: %q", foreign.ErrMark, from)
	}
	for i, p := range parts {
		if p.name() != words[0] {
			continue
		}
		if words[2] != "-" {
			if err := jsonl.Check(p.path, offset, words[2]); err != nil {
				return nil, place{}, err
			}
		}
		return parts[i:], place{offset: offset, total: total, sum: words[2]}, nil
	}
	return nil, place{}, fmt.Errorf("%w: %s is not part of the session", foreign.ErrMark, words[0])
}

// reader reads rollouts.
type reader struct {
	b     *turns.Builder
	total int64 // tokens of the session that were counted
	whole bool  // reading began at the beginning

	name string // of the file
	end  int64  // of the last line
	sum  string // of the last line
	done int64  // end of the line that ended the turn, 0 if none did

	implicit bool     // the turn began with a prompt: the record has no beginnings
	path     []string // turns that lead here, as far as they were read
	follows  string   // what the next turn follows, "" for the one before
	seen     map[[32]byte]*[2]int
}

// read reads parts of a session one after another.
func (r *reader) read(ctx context.Context, parts []piece, at place) {
	for i, p := range parts {
		r.name, r.end, r.sum = p.name(), at.offset, firstOf(at.sum, "-")
		r.note()
		if p.rewound && at.offset == 0 {
			r.follows = firstOf(lastTurn(ctx, p.before), foreign.Beginning)
			r.path = nil
		}
		if !r.piece(ctx, p, at.offset) {
			return
		}
		if t := r.b.Turn(); t != nil && i < len(parts)-1 {
			t.Done = true // the session continued elsewhere
		}
		r.b.Close(r.end)
		at = place{}
	}
}

// piece reads one file. It reports whether the next may be read.
func (r *reader) piece(ctx context.Context, p piece, from int64) bool {
	for raw, err := range jsonl.Lines(ctx, p.path, from) {
		if r.b.Stopped() {
			return false
		}
		if err != nil {
			r.b.Fail(err)
			if r.b.Stopped() {
				return false
			}
			if raw.End > r.end {
				r.end, r.sum = raw.End, "-"
				r.note()
			}
			continue
		}
		var l line
		if json.Unmarshal(raw.Data, &l) != nil {
			r.b.Fail(unreadable(fmt.Errorf("%s: the line at byte %d is not JSON", r.name, raw.Offset)))
		} else if l.ordinal() >= p.end {
			break
		} else {
			r.line(l, raw)
		}
		r.end, r.sum = raw.End, raw.Sum()
		r.note()
	}
	return !r.b.Stopped()
}

// note records what a mark needs.
func (r *reader) note() {
	r.b.Note = r.name + " " + strconv.FormatInt(r.total, 36) + " " + r.sum
}

func (r *reader) line(l line, raw jsonl.Line) {
	switch l.Type {
	case "response_item":
		r.item(l.Payload, l.Timestamp, raw)
	case "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "local_shell_call":
		r.item(raw.Data, l.Timestamp, raw) // before September 2025 items stood alone
	case "event_msg":
		var e event
		if json.Unmarshal(l.Payload, &e) == nil {
			r.event(e, l.Timestamp, raw)
		}
	case "turn_context":
		var c struct {
			Model string `json:"model"`
		}
		if t := r.b.Turn(); t != nil && !t.Done && json.Unmarshal(l.Payload, &c) == nil && c.Model != "" {
			t.Model = c.Model
		}
	case "token_usage_record":
		var u struct {
			Usage tokens `json:"usage"`
			Total tokens `json:"thread_token_usage"`
		}
		if json.Unmarshal(l.Payload, &u) == nil {
			r.count(u.Usage, u.Total.Total)
		}
	case "compacted":
		var c struct {
			Message string `json:"message"`
		}
		if t := r.b.Turn(); t != nil && t.Prompt == "" && len(t.Steps) == 0 && json.Unmarshal(l.Payload, &c) == nil {
			r.prompt(c.Message)
			t.Automatic = true
		}
	}
	if t := r.b.Turn(); t != nil && !t.Done {
		r.b.Seen(l.Timestamp)
	}
}

// begin begins a turn.
func (r *reader) begin(id string, at time.Time, offset int64) {
	t := foreign.Turn{ID: id, Cut: id, Follows: r.follows, Started: at}
	if last := r.b.Turn(); last != nil {
		t.Model = last.Model // until the record says otherwise
	}
	r.b.Begin(t, offset)
	r.path = append(r.path, id)
	r.follows, r.done, r.implicit, r.seen = "", 0, false, map[[32]byte]*[2]int{}
}

// rollBack goes back by some turns, as codex did until it wrote segments.
func (r *reader) rollBack(n int) {
	if n > len(r.path) || n == len(r.path) && !r.whole {
		r.b.Fail(fmt.Errorf("%w: %d turns before the mark were taken back", foreign.ErrMark, n))
		return
	}
	r.path = r.path[:len(r.path)-n]
	r.follows = foreign.Beginning
	if len(r.path) > 0 {
		r.follows = r.path[len(r.path)-1]
	}
}

// prompt adds a part of the prompt to the turn.
func (r *reader) prompt(text string) {
	t := r.b.Turn()
	if t.Prompt != "" && text != "" {
		text = t.Prompt + "\n\n" + text
	}
	if text != "" {
		r.b.Prompt(text)
	}
}

// Sources of a text.
const (
	fromItem = iota
	fromEvent
)

// fresh reports whether a text is new. Both sources record most texts: a text that
// one source has twice was said twice.
func (r *reader) fresh(kind, text string, source int) bool {
	key := sha256.Sum256([]byte(kind + strings.TrimSpace(text)))
	n := r.seen[key]
	if n == nil {
		n = &[2]int{}
		r.seen[key] = n
	}
	n[source]++
	return n[source] > n[1-source]
}

// count adds tokens to the turn. The same count may be recorded several times: the total
// of the session shows it.
func (r *reader) count(u tokens, total int64) {
	if total == r.total || total == 0 {
		return
	}
	r.total = total
	if t := r.b.Turn(); t != nil {
		t.Usage.Add(foreign.Usage{
			Input: max(0, u.Input-u.Cached-u.CacheWrite), Output: u.Output, CacheRead: u.Cached, CacheWrite: u.CacheWrite, Reasoning: u.Reasoning,
		})
	}
}

// lastTurn returns the id of the last turn of some parts, "" if there is none.
func lastTurn(ctx context.Context, parts []piece) string {
	last := ""
	r := &reader{whole: true}
	r.b = turns.New("", func(t foreign.Turn, err error) bool {
		if err == nil {
			last = t.ID
			if len(r.path) > 0 && r.follows != "" {
				last = r.path[len(r.path)-1]
			}
		}
		return true
	})
	r.read(ctx, parts, place{})
	return last
}
