package claudecode

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

// Turns returns the turns of a session. Branches that were left by a rewind stay in the
// record: each turn says what it follows.
func (Adapter) Turns(ctx context.Context, s foreign.Session, from foreign.Mark) iter.Seq2[foreign.Turn, error] {
	return func(yield func(foreign.Turn, error) bool) {
		r := newReader(from, yield)
		r.subagent = s.Parent != ""
		r.read(ctx, s.Path, from)
	}
}

// reader makes turns from lines.
type reader struct {
	b        *turns.Builder
	lines    *turns.Lineage
	subagent bool
	resumed  bool

	leaf    string // the last uuid
	prompt  string // promptId of the turn
	compact bool   // the turn is a compaction
	usage   map[string]foreign.Usage
	pending *pending

	cost  *float64 // the total at the last line that has one, nil if it is not known
	since int      // turns that began since

	seen func(l line, end int64) // for cuts
}

// pending is a command of the user, which is a turn only if the model answers.
type pending struct {
	turn     foreign.Turn
	at       int64
	line     line
	note     string
	promptID string
}

func newReader(from foreign.Mark, yield func(foreign.Turn, error) bool) *reader {
	return &reader{
		b: turns.New(from, yield), lines: turns.NewLineage(from), resumed: from != "",
		usage: map[string]foreign.Usage{}, seen: func(line, int64) {},
	}
}

func (r *reader) read(ctx context.Context, path string, from foreign.Mark) {
	at, note, err := turns.OffsetOf(from)
	if err != nil {
		r.b.Fail(err)
		return
	}
	r.restore(note)
	end := at
	for l, err := range jsonl.Lines(ctx, path, at) {
		if err != nil {
			r.b.Fail(err)
			end = max(end, l.End)
		} else {
			r.line(l)
			end = l.End
		}
		if r.b.Stopped() {
			return
		}
	}
	if r.pending != nil {
		end = r.pending.at
		r.b.Note = r.pending.note
	}
	r.b.Close(end)
}

// restore continues with the note of a mark.
func (r *reader) restore(note string) {
	r.b.Note = note
	if !r.resumed {
		r.cost = new(float64)
		return
	}
	leaf, cost, _ := strings.Cut(note, " ")
	if leaf != "" {
		r.lines.Add(leaf)
		r.leaf = leaf
	}
	if total, err := strconv.ParseFloat(cost, 64); err == nil {
		r.cost = &total
	}
}

// note is what a later reading must know at this place.
func (r *reader) note() string {
	if r.cost == nil || r.since > 0 {
		return r.leaf
	}
	return r.leaf + " " + strconv.FormatFloat(*r.cost, 'g', -1, 64)
}

func (r *reader) line(raw jsonl.Line) {
	l, err := decode(raw.Data)
	if err != nil {
		r.b.Fail(fmt.Errorf("%w: the line at byte %d: %v", foreign.ErrUnreadable, raw.Offset, err))
		return
	}
	if l.Sidechain && !r.subagent {
		return
	}
	if l.UUID != "" && r.lines.Has(l.UUID) {
		return // copied once more
	}
	switch {
	case l.Type == "user":
		r.user(l, raw.Offset)
	case l.Type == "assistant":
		r.assistant(l)
	case l.Type == "cost-state" && l.TotalCostUSD != nil:
		r.total(*l.TotalCostUSD)
	}
	if l.UUID != "" && !r.b.Stopped() {
		if l.Type == "system" && l.Subtype == "compact_boundary" && l.LogicalParent != "" {
			r.lines.AddTo(l.UUID, l.LogicalParent)
		} else {
			r.lines.Add(l.UUID)
		}
		r.leaf = l.UUID
	}
	r.b.Note = r.note()
	r.seen(l, raw.End)
}

// user handles a line of the user: a prompt, results of tools, or what Claude Code writes
// in the user's name.
func (r *reader) user(l line, at int64) {
	m := l.Message
	results := 0
	for _, b := range blocks(m.Content) {
		if b.Type == "tool_result" {
			r.result(l, b)
			results++
		}
	}
	if results > 0 {
		return
	}
	said := text(m.Content)
	switch {
	case l.CompactSummary:
		r.begin(l, at, foreign.Turn{Prompt: said, Automatic: true}, l.PromptID)
		r.compact = true
	case l.Meta:
		r.flush()
	case strings.HasPrefix(said, "[Request interrupted by user"):
		r.interrupted(l)
	case strings.HasPrefix(said, "<local-command-stdout>"), strings.HasPrefix(said, "<local-command-stderr>"):
		r.pending = nil
	case strings.HasPrefix(said, "<bash-"):
		r.pending = nil // commands that the user ran without the model
	case strings.HasPrefix(said, "<command-name>"), strings.HasPrefix(said, "<command-message>"):
		r.command(l, at, said)
	default:
		system := l.PromptSource == "system" || automatic(said)
		r.begin(l, at, foreign.Turn{Prompt: said, Automatic: system}, l.PromptID)
	}
}

// command keeps a command of the user until it is known whether the model answers.
func (r *reader) command(l line, at int64, said string) {
	if r.compact && l.PromptID != "" && l.PromptID == r.prompt {
		return // the command that asked for the compaction
	}
	prompt := strings.TrimSpace(between(said, "<command-name>", "</command-name>") + " " + between(said, "<command-args>", "</command-args>"))
	r.pending = &pending{turn: foreign.Turn{Prompt: prompt}, at: at, line: l, note: r.b.Note, promptID: l.PromptID}
}

func between(s, open, end string) string {
	_, s, _ = strings.Cut(s, open)
	s, _, _ = strings.Cut(s, end)
	return s
}

// flush begins the turn of a command.
func (r *reader) flush() {
	p := r.pending
	if p == nil {
		return
	}
	r.b.Note = p.note
	r.begin(p.line, p.at, p.turn, p.promptID)
	if p.line.UUID != "" {
		r.lines.Add(p.line.UUID)
	}
}

// begin begins a turn.
func (r *reader) begin(l line, at int64, t foreign.Turn, promptID string) {
	r.pending, r.compact, r.prompt = nil, false, promptID
	follows, err := r.lines.Follows(l.Parent)
	if err != nil {
		r.b.Fail(err)
		return
	}
	t.ID, t.Follows, t.EventID, t.Cut = l.UUID, follows, promptID, l.UUID
	if t.ID == "" {
		t.ID = "byte-" + strconv.FormatInt(at, 10)
	}
	if t.EventID == t.ID || r.subagent {
		t.EventID = ""
	}
	r.b.Begin(t, at)
	r.lines.Begin(t, at)
	r.since++
	clear(r.usage)
	r.b.Seen(l.at())
}

func (r *reader) interrupted(l line) {
	if !r.b.Active() {
		return
	}
	t := r.b.Turn()
	t.Interrupted, t.Done = true, true
	r.cut(l)
	r.b.Seen(l.at())
}

// cut notes that the conversation can continue behind a line.
func (r *reader) cut(l line) {
	if l.UUID != "" {
		r.b.Turn().Cut = l.UUID
	}
}

func (r *reader) result(l line, b block) {
	at := l.at()
	found := r.b.Answer(b.ToolUseID, text(b.Content), func(c *foreign.Call) {
		c.Failed, c.Ended = b.IsError, at
		if c.Ended.Before(c.Started) {
			c.Ended = c.Started
		}
		answer(c, l.Session, l.ToolUseResult)
	})
	if found {
		r.b.Turn().Done = false
		r.cut(l)
		r.b.Seen(at)
	}
}

func (r *reader) assistant(l line) {
	m := l.Message
	r.flush()
	if !r.b.Active() {
		return
	}
	at, t := l.at(), r.b.Turn()
	last := ""
	for _, b := range blocks(m.Content) {
		switch b.Type {
		case "text":
			r.b.Text(b.Text, at)
		case "thinking":
			r.b.Thinking(b.Thinking, at)
		case "tool_use", "server_tool_use", "mcp_tool_use":
			call := newCall(b.ID, b.Name, b.Input)
			call.Started = at
			r.b.Call(call, at)
		}
		last = b.Type
	}
	t.Done = last == "text" && m.StopReason != "" && m.StopReason != "tool_use" && m.StopReason != "pause_turn"
	if m.Model != "" && m.Model != "<synthetic>" {
		t.Model = m.Model
	}
	r.count(m)
	r.cut(l)
	r.b.Seen(at)
}

// count adds the usage of a message. Each line of a message repeats it.
func (r *reader) count(m message) {
	now, before := m.usage(), r.usage[m.ID]
	if m.ID == "" {
		before = foreign.Usage{}
	}
	r.b.Turn().Usage.Add(foreign.Usage{
		Input: now.Input - before.Input, Output: now.Output - before.Output, CacheRead: now.CacheRead - before.CacheRead,
		CacheWrite: now.CacheWrite - before.CacheWrite, Reasoning: now.Reasoning - before.Reasoning,
	})
	r.usage[m.ID] = now
}

// total handles what the session cost up to here. It is the cost of a turn if there was
// one turn since the last such line.
func (r *reader) total(now float64) {
	if t := r.b.Turn(); t != nil && r.cost != nil && r.since == 1 && now >= *r.cost {
		cost := math.Round((now-*r.cost)*1e9) / 1e9
		t.Usage.CostUSD = &cost
	}
	r.cost, r.since = &now, 0
}
