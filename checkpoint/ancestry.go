package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// Origin is a conversation that another one was forked from, as an agent does that
// resumes a session: the first turns of both are the same.
type Origin struct {
	Conversation string
	// Turns is how many turns they share.
	Turns uint64
}

// ancestry is a conversation and the origins whose first turns are also its own, nearest
// first.
type ancestry []Origin

// maxAncestry bounds how many forks of forks an ancestry follows.
const maxAncestry = 100

// ancestry returns the ancestry of a conversation, nil for "".
func (w *Workspace) ancestry(ctx context.Context, conversation string) (ancestry, error) {
	if conversation == "" {
		return nil, nil
	}
	a := ancestry{{conversation, math.MaxUint64}}
	for convs := w.s.opts.Conversations; convs != nil && len(a) < maxAncestry; {
		last := a[len(a)-1]
		origin, err := convs.Origin(ctx, last.Conversation)
		if kv.Damaged(err) {
			break // its turns stay where they are
		}
		if err != nil {
			return nil, fmt.Errorf("find the origin of conversation %q: %w", last.Conversation, err)
		}
		if origin.Conversation == "" || a.index(origin.Conversation) >= 0 {
			break
		}
		origin.Turns = min(origin.Turns, last.Turns)
		a = append(a, origin)
	}
	return a, nil
}

// index returns the place of a conversation, or -1.
func (a ancestry) index(conversation string) int {
	return slices.IndexFunc(a, func(o Origin) bool { return o.Conversation == conversation })
}

// has reports whether a turn is one of the conversation. The number of an unknown turn is
// 0; only the conversation itself has those.
func (a ancestry) has(conversation string, turn uint64) bool {
	i := a.index(conversation)
	return i == 0 || i > 0 && turn != 0 && turn <= a[i].Turns
}

// holds reports whether a checkpoint is at a place of the conversation.
func (a ancestry) holds(rec *Record) bool {
	if rec.Side == Before && rec.Turn == 1 {
		return a.index(rec.Conversation) >= 0 // the beginning is that of all
	}
	if rec.Side == Before && rec.Turn != 0 {
		return a.has(rec.Conversation, rec.Turn-1)
	}
	return a.has(rec.Conversation, rec.Turn)
}

// hasTurn reports whether the plan is for the conversation of a turn.
func (p *Plan) hasTurn(conversation string, turn uint64) bool {
	return p.Conversation == "" || p.Conversation == conversation || p.ancestry.has(conversation, turn)
}

// joined drops the origins that went on beside the conversation, and theirs: what both
// continue is not the work of one of them. It looks at the checkpoints from one on.
func (w *Workspace) joined(ctx context.Context, a ancestry, from *Record) (ancestry, error) {
	if len(a) < 2 {
		return a, nil
	}
	lines, err := w.linesOf(ctx, a)
	if err != nil {
		return nil, err
	}
	newest := make([]bool, len(a)) // those whose newest checkpoint was seen
	var unread *UnreadableError
	for rec, err := range w.newestFirst(ctx, "") {
		if errors.As(err, &unread) && unread.ID < from.ID {
			continue // earlier checkpoints do not matter
		}
		if err != nil {
			return nil, err
		}
		if rec.Number < from.Number {
			break
		}
		i := a.index(rec.Conversation)
		if i < 0 || i >= len(newest) || !recorded(rec) {
			continue
		}
		if i > 0 && lines[i].leftBehind(rec.ID) {
			continue // a rewind took it back
		}
		if i > 0 && !newest[i] {
			ended, err := w.endedIn(ctx, a, rec)
			if err != nil {
				return nil, err
			}
			if !ended {
				newest = newest[:i]
				continue
			}
		}
		newest[i] = true
		if on := slices.Index(newest[i+1:], true); on >= 0 { // it went on after this one began
			newest = newest[:i+1+on]
		}
	}
	return a[:len(newest)], nil
}

// linesOf returns the line of each conversation.
func (w *Workspace) linesOf(ctx context.Context, a ancestry) ([]*line, error) {
	all, err := w.operations(ctx)
	if err != nil {
		return nil, err
	}
	lines := make([]*line, len(a))
	for i, o := range a {
		lines[i] = &line{moves: w.movesOf(all, o.Conversation)}
	}
	return lines, nil
}

// endedIn reports whether an origin, given its newest checkpoint that stands, ended in what
// the conversation continues. A turn that it began, or another way that it went, is its own.
func (w *Workspace) endedIn(ctx context.Context, a ancestry, rec *Record) (bool, error) {
	if rec.Side == Before || rec.Turn > a[a.index(rec.Conversation)].Turns {
		return false, nil
	}
	return w.had(ctx, a[0].Conversation, rec.Root)
}

// heir returns the conversation that a rewind to a checkpoint concerns: the one of the
// checkpoint or, if that has become another one, which made the latest checkpoint, this
// one.
func (w *Workspace) heir(ctx context.Context, st *state, rec *Record) (string, error) {
	now := w.currentConversation(ctx, st)
	if rec.Conversation == "" || rec.Conversation == now || rec.Workspace != w.id || rec.Kind == Import {
		return rec.Conversation, nil
	}
	a, err := w.ancestry(ctx, now)
	if err == nil && a.holds(rec) {
		a, err = w.joined(ctx, a, rec)
	}
	if err != nil || !a.holds(rec) {
		return rec.Conversation, err
	}
	if there, err := w.had(ctx, now, rec.Root); err != nil || !there {
		return rec.Conversation, err
	}
	return now, nil
}

// planAncestry determines whose turns a plan may revert. Since a turn of its own those of a
// conversation are its own; where a rewind went, it need not have one yet.
func (w *Workspace) planAncestry(ctx context.Context, p *Plan) error {
	a, err := w.ancestry(ctx, p.Conversation)
	if err != nil {
		return err
	}
	p.wasThere = a.holds(p.Target)
	if len(a) > 1 && p.Target.Conversation == p.Conversation && recorded(p.Target) {
		a = a[:1]
	}
	if p.ancestry, err = w.joined(ctx, a, p.Target); err != nil {
		return err
	}
	for _, origin := range p.ancestry[min(1, len(a)):] {
		p.origins = append(p.origins, origin.Conversation)
	}
	return nil
}

// Concerns reports whether the plan reverts turns of a conversation. Without one of its own
// it reverts those of all.
func (p *Plan) Concerns(conversation string) bool {
	return p.Conversation == "" || p.Conversation == conversation || slices.Contains(p.origins, conversation)
}

// had reports whether the state of a checkpoint, which may be none, is one of a
// conversation.
func (w *Workspace) had(ctx context.Context, conversation string, root blob.ID) (bool, error) {
	if root.IsZero() {
		return true, nil
	}
	there, err := w.s.opts.Conversations.Had(ctx, conversation, root)
	if kv.Damaged(err) {
		return false, nil // nothing goes back to what cannot be read
	}
	if err != nil {
		err = fmt.Errorf("find a state of conversation %q: %w", conversation, err)
	}
	return there, err
}

// inherited finds a checkpoint at a turn that a conversation shares with one that it was
// forked from. Turns that went another way there are not found.
func (w *Workspace) inherited(ctx context.Context, conversation string, turn uint64, side Side) (*Record, error) {
	a, err := w.ancestry(ctx, conversation)
	if err != nil {
		return nil, err
	}
	for _, o := range a[min(1, len(a)):] {
		at, side := turn, side
		if side == Before && turn == o.Turns+1 {
			at, side = o.Turns, After // the state in which both go on
		}
		if at == 0 || at > o.Turns {
			continue
		}
		var failed error
		rec, err := w.at(ctx, o.Conversation, at, side, func(rec *Record) bool {
			there, err := w.had(ctx, conversation, rec.Root)
			failed = cmp.Or(failed, err)
			return there
		})
		if failed != nil || !errors.Is(err, ErrNotFound) {
			return rec, cmp.Or(failed, err)
		}
	}
	return nil, ErrNotFound
}
