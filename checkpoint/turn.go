package checkpoint

import (
	"context"
	"fmt"
)

// planTurn makes a plan that reverts one turn and keeps the changes of later turns
// and of others.
func (w *Workspace) planTurn(ctx context.Context, st *state, req RewindRequest) (*job, error) {
	conversation := req.Conversation
	if conversation == "" && st.tip != nil {
		conversation = w.currentConversation(ctx, st)
	}
	from, err := w.turnStart(ctx, conversation, req.OnlyTurn)
	if err != nil {
		return nil, err
	}
	present, err := w.captured(ctx, st, &Request{})
	if err != nil {
		return nil, err
	}
	p := &Plan{Conversation: conversation, request: req, present: present.tree, NotCaptured: present.skipped, foreign: from.Received}
	present, err = w.decideFiles(ctx, st, p, present, func(present *capture) ([]PathState, Rules, error) {
		states, err := w.statesSince(ctx, st, p, from, present)
		return states, Rules{Lift: true, Choice: req.choice, Mine: func(_ string, by Writer) bool {
			return by.Class == ByConversation && by.Conversation == conversation && by.Turn == req.OnlyTurn
		}}, err
	})
	if err != nil {
		return nil, err
	}
	p.Untouched = untouched(present, p.Actions)
	p.sign(w.id)
	return &job{plan: p, present: present, kind: OpRewind}, nil
}

// turnStart returns the checkpoint after which a turn's changes begin: the one before
// the turn's first checkpoint that is not on its before side.
func (w *Workspace) turnStart(ctx context.Context, conversation string, turn uint64) (*Record, error) {
	var start, first *Record // first is the turn's oldest so far
	for rec, err := range w.newestFirst(ctx, "") {
		if err != nil {
			return nil, err
		}
		own := rec.Conversation == conversation && rec.Turn == turn && rec.Kind != Safety && rec.Kind != Rewound
		if own {
			first, start = rec, nil
			if rec.Side == Before {
				start = rec
			}
		} else if first != nil && start == nil && neighbours(rec, first) {
			start = rec
		}
	}
	if start == nil {
		return nil, fmt.Errorf("%w: nothing was captured before turn %d of conversation %q", ErrNotFound, turn, conversation)
	}
	return start, nil
}
