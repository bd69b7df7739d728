package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// planTurn makes a plan that reverts one turn and keeps the changes of later turns
// and of others.
func (w *Workspace) planTurn(ctx context.Context, st *state, req RewindRequest) (*job, error) {
	conversation := req.Conversation
	if conversation == "" && st.tip != nil {
		conversation = w.currentConversation(ctx, st)
	}
	turn, err := w.findTurn(ctx, conversation, req.OnlyTurn)
	if errors.Is(err, ErrNotFound) {
		if rec, none := w.inherited(ctx, conversation, req.OnlyTurn, After); none == nil {
			conversation = rec.Conversation
			turn, err = w.findTurn(ctx, conversation, req.OnlyTurn)
		}
	}
	if err != nil {
		return nil, err
	}
	present, err := w.captured(ctx, st, &Request{})
	if err != nil {
		return nil, err
	}
	p := &Plan{Conversation: conversation, request: req, present: present.tree, NotCaptured: present.skipped, foreign: turn.start.Received}
	present, err = w.decideFiles(ctx, st, p, present, func(present *capture) ([]PathState, Rules, error) {
		states, err := w.statesSince(ctx, st, p, turn.start, present)
		return states, Rules{Lift: true, Choice: req.choice, Mine: func(_ string, by Writer) bool {
			return by.Class == ByConversation && by.Conversation == conversation && by.Turn == req.OnlyTurn && turn.saw(by.Checkpoint)
		}, Unsure: func(by Writer) bool { return by.maybe(conversation, req.OnlyTurn) || turn.hides(by) }}, err
	})
	if err != nil {
		return nil, err
	}
	changes, err := w.ignoredIn(ctx, p, takenBack{turn.first, func(rec *Record) bool { return rec.Turn == req.OnlyTurn && !turn.left[rec.ID] }})
	if err != nil {
		return nil, err
	}
	if err := w.nameIgnored(ctx, p, turn.start.Tree, changes); err != nil {
		return nil, err
	}
	p.Untouched = untouched(present, p.Actions)
	p.sign(w.id)
	return &job{plan: p, present: present, kind: OpRewind}, nil
}

// oneTurn is where the changes of a turn are. After a rewind of the conversation its
// number is given again, so a number alone may mean several turns.
type oneTurn struct {
	// start is the checkpoint after which its changes begin: the one before its first
	// checkpoint that is not on its before side.
	start *Record
	first *Record         // its oldest checkpoint
	last  string          // its newest checkpoint
	left  map[string]bool // checkpoints of branches that it is not on
	other string          // the newest checkpoint of such a turn in these branches
}

// saw reports whether changes that a checkpoint saw, or the present if it is empty, can
// be the turn's.
func (t *oneTurn) saw(checkpoint string) bool {
	return checkpoint == "" || checkpoint > t.start.ID && !t.left[checkpoint]
}

// hides reports whether a change can be the turn's because a checkpoint in the turn is no
// longer kept.
func (t *oneTurn) hides(by Writer) bool {
	return by.Class == ByForgotten && t.saw(by.Checkpoint) && by.Checkpoint <= t.last
}

// findTurn finds the latest turn with a number on the present line of a conversation
// or, if there is none, the latest that a rewind left behind.
func (w *Workspace) findTurn(ctx context.Context, conversation string, number uint64) (*oneTurn, error) {
	moves, err := w.moves(ctx, conversation)
	if err != nil {
		return nil, err
	}
	t, err := w.turnOn(ctx, &line{moves: moves}, conversation, number)
	if err == nil && t.first == nil && t.other != "" {
		t, err = w.turnOn(ctx, &line{moves: moves, end: t.other}, conversation, number)
	}
	if err != nil {
		return nil, err
	}
	if t.start == nil {
		return nil, fmt.Errorf("%w: nothing was captured before turn %d of conversation %q", ErrNotFound, number, conversation)
	}
	return t, nil
}

// turnOn finds the latest turn with a number on a line. Without one, first is nil.
func (w *Workspace) turnOn(ctx context.Context, l *line, conversation string, number uint64) (*oneTurn, error) {
	t := &oneTurn{left: make(map[string]bool)}
	for rec, err := range w.newestFirst(ctx, "") {
		if err != nil {
			return nil, err
		}
		own := recorded(rec) && rec.Conversation == conversation && rec.Turn == number
		if l.leftBehind(rec.ID) {
			t.left[rec.ID] = true
			if own {
				t.other, own = cmp.Or(t.other, rec.ID), false
			}
		}
		switch {
		case own && t.first != nil && t.first.Side == Before && (rec.MessageID == "" || rec.MessageID != t.first.MessageID):
			return t, nil // an earlier turn: agents can go back without a rewind of ours
		case own:
			t.first, t.start, t.last = rec, nil, cmp.Or(t.last, rec.ID)
			if rec.Side == Before {
				t.start = rec
			}
		case t.first != nil && t.start == nil && neighbours(rec, t.first):
			t.start = rec
		}
	}
	return t, nil
}

// line separates the checkpoints that the work of a conversation continues from those
// that a rewind left behind. Package timeline shows the same lines.
type line struct {
	moves []*Operation // as moves returns them
	end   string       // checkpoints after it were left behind; empty for none
}

// leftBehind reports whether a rewind left a checkpoint behind. Call it for the newest
// checkpoint first, then for older ones in order.
func (l *line) leftBehind(id string) bool {
	for len(l.moves) > 0 && l.moves[0].After >= id {
		op := l.moves[0]
		l.moves = l.moves[1:]
		if l.end != "" && op.After > l.end {
			continue // a rewind in a branch that was left behind
		}
		if l.end = op.Target; op.After == id {
			return false
		}
	}
	return l.end != "" && id > l.end
}

// moves returns the operations that moved the line of a conversation in the workspace,
// newest first: those without a conversation moved all lines.
func (w *Workspace) moves(ctx context.Context, conversation string) ([]*Operation, error) {
	all, err := w.operations(ctx)
	return w.movesOf(all, conversation), err
}

// operations returns the log, newest entry first.
func (w *Workspace) operations(ctx context.Context) (all []*Operation, err error) {
	for op, err := range w.s.Operations(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, op)
	}
	return all, nil
}

// movesOf is moves for a log that was read.
func (w *Workspace) movesOf(log []*Operation, conversation string) []*Operation {
	return slices.DeleteFunc(Moves(log), func(op *Operation) bool {
		return op.Workspace != w.id || !op.Whole() || !op.Concerns(conversation)
	})
}
