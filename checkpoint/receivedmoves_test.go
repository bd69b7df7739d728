package checkpoint

import (
	"slices"
	"testing"
)

// The rewinds that a store without the log finds are those of the log.
func TestReceivedMovesAreThoseOfTheLog(t *testing.T) {
	f, _, c, _ := talk(t)
	f.write("a", "0\n", "b", "0\n")
	say(f, c, 1, "one", "a", "1\n")
	say(f, c, 2, "two", "a", "2\n", "b", "2\n")
	say(f, c, 3, "three", "a", "3\n")
	f.rewind(RewindRequest{To: "turn:1"})
	must(t, undo(f))
	_, err := f.w.Redo(t.Context(), nil)
	must(t, err)
	must(t, undo(f))
	f.rewind(RewindRequest{To: "turn:2", Paths: []string{"a"}}) // some paths
	must(t, undo(f))
	f.rewind(RewindRequest{OnlyTurn: 3}) // a single turn
	must(t, undo(f))
	f.rewind(RewindRequest{To: "turn:2", Scope: FilesOnly})
	must(t, undo(f))
	f.rewind(RewindRequest{To: "turn:2", Scope: ConversationOnly})
	must(t, undo(f))
	f.rewind(RewindRequest{To: "before:turn:2"})
	must(t, undo(f))
	f.rewind(RewindRequest{To: "before:turn:1"})

	var log []*Operation
	for op, err := range f.service().Operations(t.Context()) {
		must(t, err)
		log = append(log, op)
	}
	var records []*Record
	names := make(map[string]string)
	for rec, err := range f.w.newestFirst(t.Context(), "") {
		must(t, err)
		names[rec.ID] = rec.Name()
		rec.Received = true
		records = append(records, rec)
	}
	slices.Reverse(records)
	moves := func(ops []*Operation) []string {
		var out []string
		for _, op := range ops {
			if op.Whole() {
				out = append(out, names[op.Before]+" "+names[op.After]+" to "+names[op.Target])
			}
		}
		slices.Sort(out)
		return out
	}
	same(t, "moves", moves(ReceivedMoves(records, nil)), moves(Moves(log)))
	same(t, "moves beside the log", moves(ReceivedMoves(records, log)), nil)
	for _, rec := range records {
		rec.Received = false
	}
	same(t, "moves of checkpoints that were made here", moves(ReceivedMoves(records, nil)), nil)
}
