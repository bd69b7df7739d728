package timeline

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
)

// Spent is the cost of one or several turns, as far as the records of the agents have
// it. A number that they lack is zero, and is not shown.
type Spent struct {
	// Model is the last model that answered.
	Model string
	// Input counts tokens that were read and were not in a cache.
	Input, Output, CacheRead, CacheWrite, Reasoning int64
	// CostUSD is nil if no record has it, or if all say zero: agents report zero for
	// models whose prices they do not know.
	CostUSD *float64
	// Duration is how long the turns took, without the time between them.
	Duration time.Duration
}

// Tokens counts what the model read and wrote, from a cache or not.
func (s Spent) Tokens() int64 { return s.Input + s.Output + s.CacheRead + s.CacheWrite }

// IsZero reports whether nothing is known.
func (s Spent) IsZero() bool { return s == Spent{} }

// SpentOf returns the cost in the details of a turn, zero if they are nil.
func SpentOf(d *conversation.TurnDetails) Spent {
	if d == nil {
		return Spent{}
	}
	s := Spent{
		Model: d.Model, Input: d.Input, Output: d.Output, CacheRead: d.CacheRead, CacheWrite: d.CacheWrite, Reasoning: d.Reasoning,
	}
	if d.CostUSD != nil && *d.CostUSD > 0 {
		s.CostUSD = dollars(*d.CostUSD)
	}
	if !d.Started.IsZero() && d.Ended.After(d.Started) {
		s.Duration = d.Ended.Sub(d.Started)
	}
	return s
}

// add adds the cost of a later turn.
func (s *Spent) add(v Spent) {
	s.Model = cmp.Or(v.Model, s.Model)
	s.Input += v.Input
	s.Output += v.Output
	s.CacheRead += v.CacheRead
	s.CacheWrite += v.CacheWrite
	s.Reasoning += v.Reasoning
	s.Duration += v.Duration
	if v.CostUSD != nil {
		sum := *v.CostUSD
		if s.CostUSD != nil {
			sum += *s.CostUSD
		}
		s.CostUSD = dollars(sum)
	}
}

// dollars rounds a cost to the millionth of a dollar: sums of fractions are not
// exact.
func dollars(usd float64) *float64 {
	usd = math.Round(usd*1e6) / 1e6
	return &usd
}

// Spent sums up the turns of a conversation. A turn that a rewind left behind counts: it
// was paid for. The turns that a fork has from its origin do not count for the fork.
func (r *Reader) Spent(ctx context.Context, id string) (Spent, error) {
	saves, err := r.saves(ctx, id)
	return saves.total(), err
}

// saves are the saves of a conversation that describe its turns.
type saves []conversation.Save

// saves reads the saves that have details, oldest first. A missing conversation or an
// unreadable save adds nothing and is not an error: people use a history to find such
// damage.
func (r *Reader) saves(ctx context.Context, id string) (saves, error) {
	var out saves
	for save, err := range r.conversations.History(ctx, id, nil) {
		switch {
		case errors.Is(err, conversation.ErrNotFound) || conversation.Damaged(err):
			return out, nil
		case err != nil:
			return out, err
		case save.Turn != nil:
			out = append(out, save)
		}
	}
	return out, nil
}

// total sums up the turns, each as its last save has it.
func (s saves) total() Spent {
	own := func(save conversation.Save) bool {
		return save.Kind != conversation.KindRewind && save.Kind != conversation.KindFork
	}
	last := make(map[string]uint64) // save of each message
	for _, save := range s {
		if own(save) && save.MessageID != "" {
			last[save.MessageID] = save.Seq
		}
	}
	var sum Spent
	for _, save := range s {
		if own(save) && (save.MessageID == "" || last[save.MessageID] == save.Seq) {
			sum.add(SpentOf(save.Turn))
		}
	}
	return sum
}

// turn returns the details of a turn in a state, nil if there are none. If a turn is
// not in the state of its checkpoint, because the agent wrote its record later, its
// message identifies it.
func (s saves) turn(root blob.ID, number uint64, message string) *conversation.TurnDetails {
	var found *conversation.TurnDetails
	for i := len(s) - 1; i >= 0; i-- {
		switch save := &s[i]; {
		case save.Root == root && save.Turns == number:
			return save.Turn
		case found == nil && message != "" && save.MessageID == message:
			found = save.Turn
		}
	}
	return found
}

// Turn reads the turn of an entry as Reader.Turn does, and the saves of each conversation
// only once for all entries of the history.
func (h *History) Turn(ctx context.Context, e *Entry) (*Turn, error) {
	rec := e.Record
	if rec.Side == checkpoint.Before {
		return &Turn{}, nil
	}
	known, err := h.Known(ctx, rec)
	if err != nil {
		return nil, err
	}
	turn, err := h.reader.TurnAt(ctx, rec.Root, rec.Turn)
	if err != nil {
		return nil, err
	}
	turn.know(known)
	return turn, nil
}

// Known returns the agent's record of a checkpoint's turn; nil if there is none. The
// saves of each conversation are read only once.
func (h *History) Known(ctx context.Context, rec *checkpoint.Record) (*conversation.TurnDetails, error) {
	known, ok := h.saves[rec.Conversation]
	if !ok && rec.Conversation != "" {
		var err error
		if known, err = h.reader.saves(ctx, rec.Conversation); err != nil {
			return nil, err
		}
		if h.saves == nil {
			h.saves = make(map[string]saves)
		}
		h.saves[rec.Conversation] = known
	}
	return known.turn(rec.Root, rec.Turn, rec.MessageID), nil
}

// Of returns a history of some checkpoints without their places in it, for callers that read
// the turns of many.
func (r *Reader) Of(records ...*checkpoint.Record) *History {
	h := &History{reader: r}
	for _, rec := range records {
		h.Entries = append(h.Entries, &Entry{Record: rec})
	}
	return h
}

// TurnOf reads the last turn of a save.
func (r *Reader) TurnOf(ctx context.Context, save conversation.Save) (*Turn, error) {
	turn, err := r.TurnAt(ctx, save.Root, save.Turns)
	if err != nil {
		return nil, err
	}
	turn.know(save.Turn)
	return turn, nil
}

// know adds the agent's record of a turn.
func (t *Turn) know(d *conversation.TurnDetails) {
	if d == nil {
		return
	}
	took := t.Duration
	t.Spent, t.Interrupted = SpentOf(d), d.Interrupted
	t.Duration = cmp.Or(t.Duration, took)
	if t.Started.IsZero() {
		t.Started = d.Started
	}
}

// Details returns the agent's record of each turn of a state, by its number from 1.
// The root is that of a save; zero means the current state. A fork has the details of
// the turns that it shares with its origin as long as the origin exists.
func (r *Reader) Details(ctx context.Context, id string, root blob.ID) (map[uint64]*conversation.TurnDetails, error) {
	out := make(map[uint64]*conversation.TurnDetails)
	err := r.details(ctx, id, root, func(save conversation.Save) {
		if _, known := out[save.Turns]; !known && save.Turn != nil {
			out[save.Turns] = save.Turn
		}
	})
	if errors.Is(err, conversation.ErrNotFound) || conversation.Damaged(err) {
		return out, nil
	}
	return out, err
}

// details calls a function with the saves that lead to a state, latest first.
func (r *Reader) details(ctx context.Context, id string, root blob.ID, add func(conversation.Save)) error {
	var first conversation.Save // of its own, so far
	for save, err := range r.conversations.History(ctx, id, &conversation.HistoryOptions{Newest: true}) {
		if err != nil {
			return err
		}
		if first.Seq == 0 && !root.IsZero() && save.Root != root || first.Seq != 0 && save.Seq != first.Parent {
			continue
		}
		add(save)
		if first = save; save.Parent == 0 {
			break
		}
	}
	if first.Seq == 0 || first.Parent != 0 {
		return nil
	}
	// A rewind to a state of the origin shares what led to that, other than the fork.
	on := first.Kind != conversation.KindRewind
	for save, err := range r.conversations.Inherited(ctx, id) {
		if err != nil {
			return err
		}
		if on = on || save.Root == first.Root; on {
			add(save.Save)
		}
	}
	return nil
}
