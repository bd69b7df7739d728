package timeline

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/stet-dev/stet/checkpoint"
)

// Reverted is a turn whose changes operations took out of the files, and perhaps brought
// back.
type Reverted struct {
	Turn uint64
	// Out means that its changes are not in the files.
	Out bool
	// By is the operation that took them out or brought them back.
	By *checkpoint.Operation

	began, ended *checkpoint.Record
}

// Reverted returns the turns of a conversation that operations took out of the files of a
// workspace or brought back, in order. It asks only what was done to files: a rewind of the
// conversation alone reverts nothing, and what came after a rewind stays in the files when
// that is undone. A rewind of some paths, or of a single turn, is not counted.
func (r *Reader) Reverted(ctx context.Context, workspace, conversation string) ([]Reverted, error) {
	h := &History{reader: r}
	if err := r.entries(ctx, Scope{Workspace: workspace, Conversation: conversation}, h); err != nil {
		return nil, err
	}
	ops, err := r.operations(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.inherited(ctx, workspace, conversation, ops, h); err != nil {
		return nil, err
	}
	slices.Reverse(h.Entries)
	files := &inFiles{undoable: make(map[uint64]change)}
	for _, op := range slices.Backward(ops) {
		if op.Workspace != workspace || op.Before == "" || op.After == "" || !op.Concerns(conversation) {
			continue
		}
		for len(h.Entries) > 0 && h.Entries[0].Record.ID < op.After {
			files.add(h.Entries[0].Record)
			h.Entries = h.Entries[1:]
		}
		files.apply(op)
	}
	for _, e := range h.Entries {
		files.add(e.Record)
	}
	return files.reverted(), nil
}

// inherited adds the turns that a conversation has from those that it was forked from, if
// operations concerned them.
func (r *Reader) inherited(ctx context.Context, workspace, conversation string, ops []*checkpoint.Operation, h *History) error {
	begins := uint64(math.MaxUint64) // the first turn of its own
	for _, e := range h.Entries {
		if ofTurn(e.Record) {
			begins = min(begins, e.Record.Turn)
		}
	}
	var origins []string
	for _, op := range ops {
		if op.Conversation == conversation {
			origins = append(origins, op.Origins...)
		}
	}
	slices.Sort(origins)
	for _, origin := range slices.Compact(origins) {
		from := &History{reader: r}
		if err := r.entries(ctx, Scope{Workspace: workspace, Conversation: origin}, from); err != nil {
			return err
		}
		for _, e := range from.Entries {
			if e.Record.Turn < begins {
				h.Entries = append(h.Entries, e)
			}
		}
	}
	slices.SortStableFunc(h.Entries, func(a, b *Entry) int { return cmp.Compare(b.Record.ID, a.Record.ID) })
	return nil
}

// inFiles follows which turns of a conversation are in the files of a workspace.
type inFiles struct {
	turns    []*fileTurn // oldest first
	changes  []change
	undoable map[uint64]change // of the latest operation that did, undid or redid one
}

// fileTurn is a turn. Those that share a number are of different branches.
type fileTurn struct{ Reverted }

// change is what an operation did to turns: which of them it took out, or brought back.
type change struct {
	op  *checkpoint.Operation
	out map[*fileTurn]bool
}

// ofTurn reports whether a checkpoint was taken at its turn in the workspace.
func ofTurn(rec *checkpoint.Record) bool {
	return rec.Turn != 0 && rec.Kind != checkpoint.Safety && rec.Kind != checkpoint.Rewound && rec.Kind != checkpoint.Import
}

// add advances to a checkpoint, which may begin a turn.
func (f *inFiles) add(rec *checkpoint.Record) {
	if !ofTurn(rec) {
		return
	}
	for _, t := range slices.Backward(f.turns) {
		if t.Turn != rec.Turn {
			continue
		}
		if rec.Side == checkpoint.Before && (rec.MessageID == "" || rec.MessageID != t.began.MessageID) {
			break // its number is given again
		}
		t.ended = rec
		return
	}
	f.turns = append(f.turns, &fileTurn{Reverted: Reverted{Turn: rec.Turn, began: rec, ended: rec}})
}

// begun reports whether files of a checkpoint may have changes of the turn.
func (t *fileTurn) begun(id string) bool {
	return t.began.ID < id || t.began.ID == id && t.began.Side != checkpoint.Before
}

// apply advances to an operation.
func (f *inFiles) apply(op *checkpoint.Operation) {
	did := change{op: op, out: make(map[*fileTurn]bool)}
	last := f.undoable[op.Of]
	f.undoable[cmp.Or(op.Of, op.Seq)] = did
	switch {
	case op.Files == 0 || len(op.Scope) > 0:
		return
	case op.Kind == checkpoint.OpRewind && op.Target != "":
		then := f.outAt(op.Target)
		for _, t := range f.turns {
			out := then[t] || !t.begun(op.Target)
			if out != t.Out {
				did.out[t] = out
			} else if out {
				t.By = op
			}
		}
	case op.Kind == checkpoint.OpUndo || op.Kind == checkpoint.OpRedo:
		for t, out := range last.out {
			did.out[t] = !out
		}
	}
	for t, out := range did.out {
		t.Out, t.By = out, op
	}
	f.changes = append(f.changes, did)
}

// outAt returns the turns that were out of the files at a checkpoint.
func (f *inFiles) outAt(id string) map[*fileTurn]bool {
	out := make(map[*fileTurn]bool)
	for _, c := range f.changes {
		if c.op.After > id {
			break
		}
		for t, is := range c.out {
			out[t] = is
		}
	}
	return out
}

// reverted returns what the operations did to each number: one of which any turn is in the
// files is not out.
func (f *inFiles) reverted() []Reverted {
	byNumber := make(map[uint64]Reverted)
	for _, t := range f.turns {
		if last, known := byNumber[t.Turn]; !known || last.Out || !t.Out {
			byNumber[t.Turn] = t.Reverted
		}
	}
	var all []Reverted
	for _, t := range byNumber {
		if t.By != nil {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b Reverted) int { return cmp.Compare(a.Turn, b.Turn) })
	return all
}

// Remaining returns the paths that turns changed and that an operation did not bring to the
// state of its target, such as files with conflicts: they may still have changes of these
// turns. Where a checkpoint is no longer kept, nothing is known.
func (r *Reader) Remaining(ctx context.Context, turns []Reverted, op *checkpoint.Operation) ([]string, error) {
	paths, err := r.remaining(ctx, turns, op)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return nil, nil
	}
	slices.Sort(paths)
	return slices.Compact(paths), err
}

func (r *Reader) remaining(ctx context.Context, turns []Reverted, op *checkpoint.Operation) (paths []string, err error) {
	target, err := r.checkpoints.Get(ctx, op.Target)
	if err != nil {
		return nil, err
	}
	after, err := r.checkpoints.Get(ctx, op.After)
	if err != nil {
		return nil, err
	}
	for _, t := range turns {
		more, err := r.checkpoints.Unlike(ctx, t.began, t.ended, target, after)
		if err != nil {
			return nil, err
		}
		paths = append(paths, more...)
	}
	return paths, nil
}
