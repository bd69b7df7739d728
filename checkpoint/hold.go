package checkpoint

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// turns returns the turns that continued after the latest checkpoint. Some of them
// may have ended since.
func (w *Workspace) turns(ctx context.Context, st *state) (Turns, error) {
	if st.row.GetTurns() != nil || st.tip == nil || !st.tip.unaware {
		return decodeTurns(st.row.GetTurns()), nil
	}
	chain, err := w.chain(ctx, st.tip)
	if err != nil {
		return nil, err
	}
	return workedOut(chain), nil
}

// unsaved describes the current state as the checkpoint that a rewind would save
// first.
func (w *Workspace) unsaved(ctx context.Context, st *state, p *Plan) (*Record, error) {
	turns, err := w.turns(ctx, st)
	if err != nil {
		return nil, err
	}
	rec := w.safety(p)
	rec.Time = w.s.opts.Now()
	rec.AtWork, p.AtWork = turns.Observe(rec, Holder{}, w.s.opts.life)
	return rec, nil
}

// AtWork returns the running turns in the workspace.
func (w *Workspace) AtWork(ctx context.Context) (Turns, error) {
	st, err := w.load(ctx)
	if err != nil {
		return nil, err
	}
	return w.atWork(ctx, st)
}

func (w *Workspace) atWork(ctx context.Context, st *state) (Turns, error) {
	turns, err := w.turns(ctx, st)
	if err != nil {
		return nil, err
	}
	_, open := turns.Observe(&Record{Kind: Safety, Time: w.s.opts.Now()}, Holder{}, w.s.opts.life)
	return open, nil
}

// Hold records that a turn of by continues, and adds new processes of by as its
// holders. It captures nothing. It returns ErrNotFound if the turn has ended.
func (w *Workspace) Hold(ctx context.Context, conversation string, by Holder) error {
	return w.setTurn(ctx, conversation, by.ID, func(t *Turn) {
		t.Seen = w.s.opts.Now()
		for _, p := range by.Processes {
			if !slices.Contains(t.Holder.Processes, p) {
				t.Holder.Processes = append(t.Holder.Processes, p)
			}
		}
	})
}

// Release ends a turn of by without a checkpoint: changes since its last one are not
// its work. It returns ErrNotFound if the turn has ended already.
func (w *Workspace) Release(ctx context.Context, conversation string, by Holder) error {
	// The next checkpoint removes it, because it must record it.
	return w.setTurn(ctx, conversation, by.ID, func(t *Turn) { t.Lost = true })
}

// setTurn changes a running turn.
func (w *Workspace) setTurn(ctx context.Context, conversation, holder string, set func(*Turn)) error {
	st, leave, err := w.enter(ctx)
	if err != nil {
		return fmt.Errorf("hold turn: %w", err)
	}
	defer leave()
	turns, err := w.turns(ctx, st)
	if err != nil {
		return fmt.Errorf("hold turn: %w", err)
	}
	i := slices.IndexFunc(turns, func(t Turn) bool {
		return t.Conversation == conversation && t.Holder.ID == holder && !t.Lost
	})
	if i < 0 {
		return fmt.Errorf("hold turn: %w: conversation %q has no open turn", ErrNotFound, conversation)
	}
	set(&turns[i])
	row := proto.CloneOf(st.row)
	row.Turns = turns.encode()
	data, err := marshal(row)
	if err != nil {
		return fmt.Errorf("hold turn: %w", err)
	}
	err = w.s.rows.Commit(ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: keyspace.Workspace(w.id), Version: st.version}},
		Set:    []kv.Set{{Key: keyspace.Workspace(w.id), Value: data}},
	})
	if err != nil {
		return fmt.Errorf("hold turn: %w", err)
	}
	return nil
}
