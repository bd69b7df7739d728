package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
)

// maxLate is how many turns are searched for one whose words came late.
const maxLate = 16

// Words copies what the record of an event's session has by now, and adds words that
// came late to the checkpoints after its turns. It reports whether the last turn that
// ended has all its words. It takes no checkpoint and can be repeated.
func (r *Recorder) Words(ctx context.Context, e foreign.Event) (bool, error) {
	unlock, err := r.spool(e).Lock(ctx)
	if ctx.Err() != nil {
		return false, err
	}
	if err == nil {
		defer unlock()
	}
	var out Outcome
	copied := r.copy(ctx, e, &out)
	space, err := r.Space(ctx, e.Workspace)
	if err != nil || space == nil {
		return false, errors.Join(copied, err)
	}
	last, err := r.completeWords(ctx, space, e.Session)
	return last == whole, errors.Join(copied, err, space.Close())
}

// Changed returns a value that changes whenever the record of an event's session is
// written, and "" if there is no record. It needs no store.
func (r *Recorder) Changed(ctx context.Context, e foreign.Event) string {
	text := ""
	for s, err := range r.sessions(ctx, e) {
		if err == nil && s.ID == e.Session {
			text = fmt.Sprint(s.Path, s.Size, s.Updated.UnixNano())
		}
	}
	return text
}

// words says how much of a turn's words the store has.
type words int

const (
	none words = iota
	some
	whole
)

// pastTurn is a turn by its checkpoints: the one before it and those after it.
type pastTurn struct {
	before *checkpoint.Record
	ended  []*checkpoint.Record
}

// completeWords gives checkpoints after turns the state with the turn's words, if the agent
// wrote them after the checkpoint was taken. The next event of the session makes up for a
// process that was killed. It returns how many of its words the last ended turn has.
func (r *Recorder) completeWords(ctx context.Context, space *checkpoint.Workspace, conv string) (words, error) {
	turns, err := r.past(ctx, space, conv)
	if err != nil {
		return none, err
	}
	var copied []conversation.Save
	for save, err := range conversation.New(r.Blobs, r.Rows, nil).History(ctx, conv, nil) {
		if errors.Is(err, conversation.ErrNotFound) {
			return none, nil // removed meanwhile
		}
		if err != nil {
			return none, err
		}
		if save.Kind != conversation.KindRewind {
			copied = append(copied, save)
		}
	}
	last, found := none, false
	for i, t := range turns {
		twin := func(o pastTurn) bool { return o.before.Turn == t.before.Turn && o.before.Root == t.before.Root }
		if len(t.ended) == 0 || slices.ContainsFunc(turns[:i], twin) || slices.ContainsFunc(turns[i+1:], twin) {
			continue // words that come late may be those of either
		}
		have, err := give(ctx, space, t, copied)
		if err != nil {
			return last, err
		}
		if !found {
			last, found = have, true
		}
	}
	return last, nil
}

// past returns the last turns of a conversation that began in a workspace, newest first.
func (r *Recorder) past(ctx context.Context, space *checkpoint.Workspace, conv string) ([]pastTurn, error) {
	var turns []pastTurn
	var ended []*checkpoint.Record
	for rec, err := range checkpoint.New(r.Blobs, r.Rows, nil).ListConversation(ctx, conv) {
		switch {
		case err != nil:
			return turns, err
		case rec.Received || rec.Workspace != space.ID():
		case rec.Side == checkpoint.After:
			ended = append(ended, rec)
		case rec.Side == checkpoint.Before:
			ended = slices.DeleteFunc(ended, func(a *checkpoint.Record) bool { return a.Turn != rec.Turn }) // began elsewhere
			turns, ended = append(turns, pastTurn{rec, ended}), nil
		}
		if len(turns) == maxLate {
			break
		}
	}
	return turns, nil
}

// give sets the state of the checkpoints after a turn to the last of the turn's saves, unless
// they have one that is newer than the beginning of the turn and complete. It returns how
// much of the words the store has.
func give(ctx context.Context, space *checkpoint.Workspace, t pastTurn, copied []conversation.Save) (words, error) {
	var begin conversation.Save
	for _, save := range copied {
		if save.Root == t.before.Root {
			begin = save
		}
	}
	have := none
	newer := map[blob.ID]bool{} // states behind the beginning, and whether they can stay
	var final conversation.Save
	for _, save := range copied {
		if save.Seq <= begin.Seq || save.Kind != conversation.KindImport {
			continue
		}
		done := save.Turn != nil && save.Turn.Done
		own := save.Turns == t.before.Turn && save.MessageID != begin.MessageID && (have == none || save.MessageID == final.MessageID)
		newer[save.Root] = newer[save.Root] || done || !own
		if own {
			if final, have = save, some; done {
				have = whole
			}
		}
	}
	for _, rec := range t.ended {
		stays, known := newer[rec.Root]
		if known && have == none {
			have = whole // the agent counts its turns differently
		}
		if stays || have == none || rec.Root == final.Root || final.Seq == 0 {
			continue
		}
		if err := space.SetState(ctx, rec.ID, final.Root, final.MessageID); err != nil {
			return have, err
		}
	}
	return have, nil
}
