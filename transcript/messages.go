package transcript

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/conversation/wirelimit"
	"github.com/stet-dev/stet/fault"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Options select the messages; nil selects all.
type Options struct {
	// TurnFrom and TurnTo limit the turns, counted from 0, TurnTo excluded; a TurnTo
	// of 0 means the end. Negative numbers count from the end: TurnFrom -10 gives the
	// last ten.
	TurnFrom, TurnTo int
	// WithoutHeavyOutput omits outputs and diffs of more than 16 KiB.
	WithoutHeavyOutput bool
	// WithoutSubagents omits the states of subagents. Steps of a subagent inside a
	// call are included.
	WithoutSubagents bool
	// WithoutSummaries omits the summaries, which come before the first turn.
	WithoutSummaries bool
	// Lenient yields a message of kind Failure for lost or damaged parts and continues.
	// Without it reading ends with an error.
	Lenient bool
	// Note, if set, returns a line about a turn, counted from 1, or "". Markdown and
	// HTML show it below the number of the turn.
	Note func(turn int) string
}

// note returns the line about a turn.
func (o *Options) note(turn int) string {
	if o == nil || o.Note == nil {
		return ""
	}
	return oneLine(o.Note(turn))
}

func (o *Options) or() Options {
	if o == nil {
		return Options{}
	}
	return *o
}

// pageTurns is how many turns are read at once.
const pageTurns = 256

// errStop ends a walk when the reader stops.
var errStop = errors.New("stop")

// Messages yields the messages in order: summaries, then turn by turn. The messages
// of a subagent follow the call that started it, or come last. After an error the
// sequence ends.
func (t *Transcript) Messages(ctx context.Context, opts *Options) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		w := &walk{seen: make(map[seen]bool), emit: func(m Message) error {
			if !yield(m, nil) {
				return errStop
			}
			return nil
		}}
		w.resolver = resolver{blobs: t.reader.blobs, opts: opts.or()}
		if err := w.transcript(ctx, t, "", 0); err != nil && !errors.Is(err, errStop) {
			yield(Message{}, err)
		}
	}
}

// seen is a subagent that was visited.
type seen struct {
	id   string
	root blob.ID
	head *conversation.State // if there is no root
}

// walk visits the messages of one transcript.
type walk struct {
	resolver
	emit func(Message) error
	seen map[seen]bool
}

func (w *walk) transcript(ctx context.Context, t *Transcript, subagent string, depth int) error {
	if depth > graph.MaxNested {
		return fmt.Errorf("%w: more than %d nested subagents", conversation.ErrInvalid, graph.MaxNested)
	}
	if t.damage != nil && !w.opts.Lenient {
		return t.damage
	}
	from, to := 0, len(t.ids)
	if depth == 0 {
		from, to = conversation.TurnSpan(w.opts.TurnFrom, w.opts.TurnTo, len(t.ids))
	}
	if from == 0 && !w.opts.WithoutSummaries {
		if err := w.summaries(t, subagent); err != nil {
			return err
		}
	}
	err := t.turns(ctx, from, to, w.opts.Lenient, func(n int, turn *conversation.Turn, at time.Time, err error) error {
		if err != nil {
			return w.failure(n, fmt.Sprintf("turn-%d", n), subagent, err)
		}
		return w.turn(ctx, t, n, turn, at, subagent, depth)
	})
	if err != nil || to < len(t.ids) || w.opts.WithoutSubagents || depth == 0 && from > 0 {
		return err
	}
	for _, id := range t.Subagents() {
		if err := w.subagent(ctx, t, id, depth); err != nil {
			return err
		}
	}
	return nil
}

// turns calls fn for every turn of a span, with its number. An unreadable turn is an
// error or, in lenient mode, passed to fn.
func (t *Transcript) turns(ctx context.Context, from, to int, lenient bool, fn func(int, *conversation.Turn, time.Time, error) error) error {
	old := len(t.head.OldTurns)
	for i := from; i < min(to, old); i++ {
		turn := &t.head.OldTurns[i]
		if err := fn(i+1, turn, time.Time{}, broken(turn, "turns_old", i)); err != nil {
			return err
		}
	}
	if !t.paged {
		for i := max(from, old+t.missing); i < to; i++ {
			turn := &t.head.Turns[i-old-t.missing]
			if err := fn(i+1, turn, t.TurnTime(i), broken(turn, "turns", i-old)); err != nil {
				return err
			}
		}
		return nil
	}
	for i := max(from, old); i < to; i += pageTurns {
		if err := t.page(ctx, i, min(i+pageTurns, to), lenient, fn); err != nil {
			return err
		}
	}
	return nil
}

// errUnread is the reason why a part of a leniently read state has no bytes.
var errUnread = fault.New(fault.Damaged, "a part of it is missing or damaged")

// broken returns an error for a turn that a lenient reader could not fully read.
func broken(turn *conversation.Turn, field string, i int) error {
	parts := []conversation.Content{
		turn.Structure.Content, turn.Old.Content, turn.UserMessage.Content, turn.ShellCommand.Content, turn.ShellOutput.Content,
	}
	bad := func(c conversation.Content) bool { return !c.IsNone() && !c.Loaded() }
	step := func(s conversation.Item[*agentv1.ConversationStep]) bool { return !s.Loaded() }
	if !slices.ContainsFunc(parts, bad) && !slices.ContainsFunc(turn.Steps, step) {
		return nil
	}
	return &conversation.HydrationError{Source: fmt.Sprintf("%s[%d]", field, i), Err: errUnread}
}

func (t *Transcript) page(ctx context.Context, from, to int, lenient bool, fn func(int, *conversation.Turn, time.Time, error) error) error {
	old := len(t.head.OldTurns)
	// If another part is lost, strict reading would fail for every turn.
	opts := &conversation.HydrateOptions{TurnFrom: from - old, TurnTo: to - old, OnlyTurns: true, Lenient: t.damage != nil}
	turns, err := t.hydrate(ctx, from, to, opts)
	switch {
	case err != nil && !(lenient && errors.Is(err, conversation.ErrDataLoss)):
		return err
	case err != nil && to-from == 1:
		return fn(to, nil, time.Time{}, err)
	case err != nil:
		middle := from + (to-from)/2 // find the turns that are damaged
		if err := t.page(ctx, from, middle, lenient, fn); err != nil {
			return err
		}
		return t.page(ctx, middle, to, lenient, fn)
	}
	for i := range turns {
		err := broken(&turns[i], "turns", from-old+i)
		if t.ids[from+i].IsZero() {
			err = &conversation.HydrationError{Source: fmt.Sprintf("turns[%d]", from-old+i), Err: blob.ErrInvalidID}
		}
		if err := fn(from+i+1, &turns[i], t.TurnTime(from+i), err); err != nil {
			return err
		}
	}
	return nil
}

// hydrate reads turns by their ids: the root of a long conversation is large, and At has read
// it. For an invalid id it reads the root, whose error says what is wrong.
func (t *Transcript) hydrate(ctx context.Context, from, to int, opts *conversation.HydrateOptions) ([]conversation.Turn, error) {
	ids := t.ids[from:to]
	if slices.ContainsFunc(ids, blob.ID.IsZero) {
		s, err := t.reader.conversations.HydrateRoot(ctx, t.Root, opts)
		if err != nil {
			return nil, err
		}
		return s.Turns, nil
	}
	return t.reader.conversations.HydrateTurns(ctx, ids, opts.TurnFrom, opts)
}

// milliseconds is zero for 0 and for impossible times.
func milliseconds(ms uint64) time.Time {
	if ms == 0 || ms > 253402300799999 { // the end of year 9999, for which JSON has a form
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}

// lost reports whether an error means lost or damaged data rather than an unreachable
// store.
func lost(err error) bool {
	return errors.Is(err, conversation.ErrDataLoss) || errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) ||
		errors.Is(err, blob.ErrInvalidID) || errors.Is(err, wirelimit.ErrMalformed) || errors.Is(err, wirelimit.ErrExceeded)
}

// failure yields a message for an unreadable part, or ends the walk.
func (w *walk) failure(turn int, id, subagent string, err error) error {
	if !w.opts.Lenient || !lost(err) {
		return fmt.Errorf("read turn %d: %w", turn, err)
	}
	return w.emit(Message{ID: id, Turn: turn, Role: System, Kind: Failure, Text: err.Error(), Subagent: subagent})
}

func (w *walk) summaries(t *Transcript, subagent string) error {
	var last string
	give := func(text string) error {
		if text == "" || text == last {
			return nil
		}
		last = text
		return w.emit(Message{ID: "summary", Role: System, Kind: Summary, Text: text, Subagent: subagent})
	}
	archives := t.head.Archives
	if !t.head.Archive.IsNone() {
		archives = append([]conversation.Item[*agentv1.ConversationSummaryArchive]{t.head.Archive}, archives...)
	}
	for _, item := range archives {
		m, err := decode(item)
		if err != nil {
			err = w.failure(0, "summary", subagent, err)
		} else {
			err = give(m.Summary)
		}
		if err != nil {
			return err
		}
	}
	if t.head.Summary.IsNone() {
		return nil
	}
	m, err := decode(t.head.Summary)
	if err != nil {
		return w.failure(0, "summary", subagent, err)
	}
	return give(m.Summary)
}

// decode is Decode that distinguishes lost bytes from other errors.
func decode[M proto.Message](item conversation.Item[M]) (M, error) {
	if !item.Loaded() {
		var none M
		return none, &conversation.HydrationError{Source: "summary", Err: errUnread}
	}
	return item.Decode()
}

// subagent yields the messages of a subagent that were not yielded yet.
func (w *walk) subagent(ctx context.Context, t *Transcript, id string, depth int) error {
	sub, err := t.Subagent(ctx, id)
	if err != nil {
		return w.failure(0, "subagent-"+id, id, err)
	}
	key := seen{id: id, root: sub.Root}
	if !sub.paged {
		key.head = sub.head
	}
	if w.seen[key] {
		return nil
	}
	w.seen[key] = true
	return w.transcript(ctx, sub, id, depth+1)
}

// has reports whether the state of a subagent is known.
func (t *Transcript) has(id string) bool {
	_, inline := t.head.Subagents[id]
	_, ref := t.head.SubagentRefs[id]
	return inline || ref
}

// idOr returns an id, or one made of the place.
func idOr(id string, place ...any) string {
	if id != "" {
		return id
	}
	return strings.ReplaceAll(strings.TrimSpace(fmt.Sprintln(place...)), " ", "-")
}
