package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// forgetBatch is the number of checkpoints that one commit removes.
const forgetBatch = 5000

// ApplyRetention carries out a plan. A checkpoint that was pinned since the plan was
// made stays, and so does one that an undo now needs. Every commit adds an entry to
// the log; the next collection removes the blobs. It returns how many checkpoints
// were removed.
func (s *Service) ApplyRetention(ctx context.Context, plan RetentionPlan, author string) (int, error) {
	forgotten := 0
	for _, ws := range slices.Sorted(maps.Keys(plan.Checkpoints)) {
		for ids := range slices.Chunk(plan.Checkpoints[ws], forgetBatch) {
			n, err := s.forget(ctx, ws, ids, author)
			if err != nil {
				return forgotten, fmt.Errorf("forget checkpoints of workspace %s: %w", ws, err)
			}
			forgotten += n
		}
	}
	return forgotten, nil
}

// forget removes checkpoints of a workspace under its lock.
func (s *Service) forget(ctx context.Context, ws string, ids []string, author string) (n int, err error) {
	unlock, err := s.lock(ctx, ws)
	if err != nil {
		return 0, err
	}
	defer unlock()
	err = s.record(ctx, func(ctx context.Context) error {
		// Read the end of the log before pins and operations: a later pin or
		// rewind makes the commit fail, and everything is read again.
		end, err := s.logEnd(ctx)
		if err != nil {
			return err
		}
		gone, err := s.forgettable(ctx, ws, ids)
		if n = len(gone); err != nil || n == 0 {
			return err
		}
		op := &Operation{Kind: OpForget, Author: author, Workspace: ws}
		b := &kv.Batch{Expect: []kv.Expect{{Key: keyspace.Journal(ws)}}} // no rewind is running
		for _, rec := range gone {
			b.Delete = append(b.Delete, keyspace.Checkpoint(rec.ID), keyspace.WorkspaceCheckpoint(ws, rec.ID))
			if rec.Conversation != "" {
				b.Delete = append(b.Delete, keyspace.ConversationCheckpoint(rec.Conversation, rec.ID))
			}
		}
		op.Description = "forget " + gone[0].Name()
		if n > 1 {
			op.Description = fmt.Sprintf("forget %d checkpoints, %s to %s", n, gone[0].Name(), gone[n-1].Name())
		}
		if err := s.appendAt(ctx, end, op, b); err != nil {
			return err
		}
		return s.rows.Commit(ctx, b)
	})
	return n, err
}

// forgettable loads the checkpoints that may be removed, oldest first.
func (s *Service) forgettable(ctx context.Context, ws string, ids []string) ([]*Record, error) {
	held, err := s.held(ctx)
	if err != nil {
		return nil, err
	}
	var out []*Record
	for _, id := range ids {
		rec, err := s.Get(ctx, id)
		if errors.Is(err, ErrNotFound) {
			continue // removed by another process
		}
		if err != nil {
			return nil, err
		}
		if kept, err := s.keptWithConversation(ctx, rec); err != nil {
			return nil, err
		} else if kept {
			continue
		}
		r := Retained{ID: rec.ID, Workspace: rec.Workspace, Time: rec.Time}
		if rec.Workspace == ws && held.of(&r, s.opts.Now()) == "" {
			out = append(out, rec)
		}
	}
	slices.SortFunc(out, func(a, b *Record) int { return cmp.Compare(a.Number, b.Number) })
	return out, nil
}

// holds are the reasons to keep checkpoints.
type holds struct {
	ids     map[string]Held
	rewinds map[string]bool // workspaces with a journal
}

func (h *holds) of(r *Retained, now time.Time) Held {
	switch {
	case h.ids[r.ID] != "":
		return h.ids[r.ID]
	case h.rewinds[r.Workspace]:
		return HeldRewind
	case now.Sub(r.Time) < youngest:
		return HeldYoung
	}
	return ""
}

// begun lists the checkpoints that running turns began with, from the row of a
// workspace. If the row is unreadable, nothing can be rewound there.
func (s *Service) begun(row []byte) []string {
	var m stetv1.WorkspaceRecord
	if err := unmarshal(row, &m); err != nil {
		return nil
	}
	var out []string
	for _, t := range decodeTurns(m.GetTurns()) {
		if !t.Lost && t.alive(s.opts.Now(), s.opts.life) {
			out = append(out, t.Began)
		}
	}
	return out
}

// held determines what must stay.
func (s *Service) held(ctx context.Context) (*holds, error) {
	h := &holds{ids: map[string]Held{}, rewinds: map[string]bool{}}
	stacks, err := s.stacks(ctx)
	if err != nil {
		return nil, err
	}
	for _, st := range stacks {
		for _, ops := range [][]step{st.undo, st.redo} {
			for _, op := range ops[max(0, len(ops)-undoDepth):] {
				h.ids[op.last.Before], h.ids[op.last.After] = HeldUndo, HeldUndo
			}
		}
	}
	for row, err := range s.rows.Scan(ctx, keyspace.Workspaces(), kv.ScanOptions{}) {
		if err != nil {
			return nil, fmt.Errorf("list workspaces: %w", err)
		}
		for _, began := range s.begun(row.Value) {
			h.ids[began] = HeldTurn
		}
		latest, err := (&Workspace{s: s, id: keyspace.Last(row.Key)}).latest(ctx)
		if err != nil {
			return nil, err
		}
		if latest != nil {
			h.ids[latest.ID] = HeldLatest
		}
	}
	for row, err := range s.rows.Scan(ctx, keyspace.Journals(), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return nil, fmt.Errorf("list rewinds under way: %w", err)
		}
		h.rewinds[keyspace.Last(row.Key)] = true
	}
	for pin, err := range s.Pins(ctx) {
		if err != nil {
			return nil, err
		}
		h.ids[pin.Checkpoint] = HeldPinned
	}
	return h, nil
}
