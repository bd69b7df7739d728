package checkpoint

import (
	"slices"
	"strings"
)

// ReceivedMoves returns, oldest first, the operations of Moves for rewinds whose outcome
// came from another store. The log of operations is one store's own and does not come
// along, but the outcome of a rewind names its target in its label, and has the target's
// place, and its files or the state that the conversation moved to. The records are those of
// one workspace, oldest first; rewinds of known operations are left out.
func ReceivedMoves(records []*Record, known []*Operation) []*Operation {
	logged := make(map[string]bool, len(known))
	for _, op := range known {
		logged[op.After] = true
	}
	byID, byName := make(map[string]*Record, len(records)), make(map[string]*Record, len(records))
	still := make(map[string]bool)       // states before rewinds that went to no target
	first := make(map[string]*Operation) // by the state before: the rewind that was undone or redone
	var all []*Operation
	for _, rec := range records {
		if rec.Kind == Rewound && rec.Received && !logged[rec.ID] {
			kind, name, named := strings.Cut(rec.Label, labelTo)
			target := byName[name]
			switch {
			case !named || target != nil && still[target.ID]:
				still[rec.Parent] = true // nor does what undoes it
			case target != nil && target.Turn == rec.Turn && target.MessageID == rec.MessageID:
				op := receivedMove(rec, byID[rec.Parent], target)
				op.Kind, op.Seq = kind, uint64(len(all)+1)
				first[op.Before] = op
				if of := first[target.ID]; of != nil && kind != OpRewind {
					op.Of, first[op.Before] = of.Seq, of
				}
				all = append(all, op)
			}
		}
		byID[rec.ID], byName[rec.Name()] = rec, rec
	}
	return slices.DeleteFunc(Moves(all), func(op *Operation) bool { return !op.Whole() })
}

// labelTo is what is between the kind of a rewind and the name of its target in the label of
// its outcome.
const labelTo = " to "

// receivedMove describes a rewind, given the state before, or nil, and the target. The result
// is not Whole if only some of the files went back: then some paths were asked for, or
// something was left.
func receivedMove(rec, before, target *Record) *Operation {
	op := &Operation{
		Author: rec.Author, Time: rec.Time, Workspace: rec.Workspace, Conversation: rec.Conversation,
		Before: rec.Parent, After: rec.ID, Target: target.ID, Description: rec.Label,
	}
	if before != nil && !rec.Root.IsZero() && stateAt(target, rec.Root) == rec.Root {
		op.RootBefore, op.RootAfter = before.Root, rec.Root
	}
	if target.Tree != rec.Tree {
		op.Scope = []string{"."} // of what, only the log knows
	}
	return op
}
