package checkpoint

import (
	"context"
	"errors"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// Write is one change of a path: who made it and what was there afterwards.
type Write struct {
	Writer Writer
	After  *workspace.Entry
}

// history collects, per path, the changes after a checkpoint, oldest first.
type history struct {
	w      *Workspace
	writes map[string][]Write
	claims map[string]claimed
	first  map[string]*workspace.Entry // what was there before the writes
	past   map[string][][]Write        // what writes were before rewinds, latest last
	blind  map[string]blind            // by blob of the list
	diffs  map[[2]blob.ID][]workspace.Change
	from   *Record
	older  []*Record // from and those before it, newest first; read when needed
}

// since returns the history of the workspace after the checkpoint from, up to
// the present, which is given as the safety record that would be made of it.
func (w *Workspace) since(ctx context.Context, from *Record, now *Record, present *capture) (*history, error) {
	h := &history{
		w: w, from: from, writes: map[string][]Write{}, claims: map[string]claimed{}, first: map[string]*workspace.Entry{},
		past: map[string][][]Write{}, blind: map[string]blind{}, diffs: map[[2]blob.ID][]workspace.Change{},
	}
	chain, err := w.chain(ctx, from)
	if err != nil {
		return nil, err
	}
	last := from
	for _, rec := range chain {
		if rec.Number <= from.Number {
			continue
		}
		if err := h.segment(ctx, last, rec); err != nil {
			return nil, err
		}
		last = rec
	}
	changes, err := h.diff(ctx, last.Tree, present.tree)
	if err != nil {
		return nil, err
	}
	before, err := h.blindAt(ctx, last)
	if err != nil {
		return nil, err
	}
	return h, h.add(ctx, now, changes, before, newBlind(present.skipped))
}

// chain returns the checkpoints from the given one up to the latest, oldest first.
// If that is of a release that did not keep which turns were at work, those of the
// hour before come first, which tell.
func (w *Workspace) chain(ctx context.Context, from *Record) ([]*Record, error) {
	var chain []*Record
	for rec, err := range w.newestFirst(ctx, "") {
		var unread *UnreadableError
		if errors.As(err, &unread) && unread.ID < from.ID {
			continue // what was before the target does not matter
		}
		if err != nil {
			return nil, err
		}
		if rec.Number < from.Number && from.Time.Sub(rec.Time) >= turnLife {
			break
		}
		chain = append(chain, rec)
		if rec.Number <= from.Number && !rec.unaware {
			break
		}
	}
	slices.Reverse(chain)
	workedOut(chain)
	return chain, nil
}

// workedOut finds out, for checkpoints of releases that did not keep it, which
// turns were at work. The checkpoints are given oldest first. It returns the turns
// that go on after the last.
func workedOut(chain []*Record) Turns {
	var open Turns
	for _, rec := range chain {
		if rec.unaware {
			rec.AtWork, open = open.Observe(rec, Holder{}, nil)
			continue
		}
		open = nil
		for _, t := range rec.AtWork {
			if !t.Lost {
				t.Since, t.Seen = rec.Time, rec.Time
				open = append(open, t)
			}
		}
		_, open = open.Observe(rec, Holder{}, nil)
	}
	return open
}

// segment adds what changed between two neighbours.
func (h *history) segment(ctx context.Context, prev, rec *Record) error {
	changes, err := h.diff(ctx, prev.Tree, rec.Tree)
	if err != nil {
		return err
	}
	if !neighbours(prev, rec) {
		for _, c := range changes {
			h.begin(c)
			h.writes[c.Path] = append(h.writes[c.Path], Write{Writer: Writer{Class: ByForgotten, Checkpoint: rec.ID}, After: c.After})
		}
		return nil
	}
	before, err := h.blindAt(ctx, prev)
	if err != nil {
		return err
	}
	after, err := h.blindAt(ctx, rec)
	if err != nil {
		return err
	}
	return h.add(ctx, rec, changes, before, after)
}

// neighbours reports whether no checkpoint was made between two.
func neighbours(prev, rec *Record) bool { return rec.Parent == prev.ID }

// diff compares two trees. After a single turn the same two are compared again to
// find what differs from the target.
func (h *history) diff(ctx context.Context, a, b blob.ID) ([]workspace.Change, error) {
	key := [2]blob.ID{a, b}
	if changes, ok := h.diffs[key]; ok {
		return changes, nil
	}
	changes, err := workspace.Diff(ctx, h.w.s.blobs, a, b)
	if err == nil {
		h.diffs[key] = changes
	}
	return changes, err
}

// begin notes what was there before the first change of a path.
func (h *history) begin(c workspace.Change) {
	if _, known := h.first[c.Path]; !known {
		h.first[c.Path] = c.Before
	}
}

func (h *history) add(ctx context.Context, rec *Record, changes []workspace.Change, before, after blind) error {
	writer := rec.Writer()
	for _, c := range changes {
		h.begin(c)
		if rec.Kind == Rewound {
			restored, err := h.restored(ctx, rec, c)
			if err != nil {
				return err
			}
			if restored {
				continue
			}
		}
		by := writer
		if _, unseen := before.at(c.Path); unseen && c.Before == nil {
			// It was there and not captured, so nobody created it now.
			by = Writer{Class: ByUnseen, Checkpoint: rec.ID}
		}
		if _, unseen := after.lost(c.Path); unseen && c.After == nil {
			by = Writer{Class: ByUnseen, Checkpoint: rec.ID}
		}
		h.writes[c.Path] = append(h.writes[c.Path], Write{Writer: by, After: c.After})
	}
	h.claim(rec)
	return nil
}

// restored handles what a rewind, an undo or a redo brought back: it still belongs
// to whoever wrote it, and not to the one who went back. It reports false where
// nobody is known to have written it.
func (h *history) restored(ctx context.Context, rec *Record, c workspace.Change) (bool, error) {
	writes := h.writes[c.Path]
	delete(h.claims, c.Path) // it counts writes
	if len(writes) > 0 {
		h.past[c.Path] = append(h.past[c.Path], writes)
	}
	if i := lastWith(writes, c.After); i >= 0 {
		h.writes[c.Path] = slices.Clip(writes[:i+1])
		return true, nil
	}
	if len(writes) > 0 && sameState(h.first[c.Path], c.After) {
		h.writes[c.Path] = nil // as if nobody had written it
		return true, nil
	}
	for _, was := range slices.Backward(h.past[c.Path]) { // as an undo does
		if i := lastWith(was, c.After); i >= 0 {
			h.writes[c.Path] = slices.Clip(was[:i+1])
			return true, nil
		}
	}
	from, err := h.origin(ctx, c)
	if err != nil || !from.found || from.takenBack(rec.Conversation) {
		return false, err
	}
	by := from.by
	if by.Class == ByConversation && rec.Conversation != "" && by.Conversation != rec.Conversation {
		// Written by one and brought back by another: neither may take it back alone.
		by = Writer{Class: BySeveral, Among: []string{by.Conversation, rec.Conversation}, Checkpoint: rec.ID}
		slices.Sort(by.Among)
	}
	h.writes[c.Path] = append(writes, Write{Writer: by, After: c.After})
	return true, nil
}

// lastWith returns the last write that led to a state, or -1.
func lastWith(writes []Write, after *workspace.Entry) int {
	for i := len(writes) - 1; i >= 0; i-- {
		if sameState(writes[i].After, after) {
			return i
		}
	}
	return -1
}

// originDepth bounds how far back the writer of a restored content is looked for.
const originDepth = 500

// origin says where a content comes from that is older than the history.
type origin struct {
	found bool
	by    Writer
	// later are the writers of the path after it, up to the history; rewound says that
	// some of them may have been rewinds, or are not known.
	later   []Writer
	rewound bool
}

// takenBack reports whether a rewind to the content took back nothing but what a
// conversation had written on top of it. Nobody wrote the content again then: to go
// forward again undoes the rewind, and no work of the one who wrote it first.
func (o *origin) takenBack(conversation string) bool {
	return len(o.later) > 0 && !o.rewound && conversation != "" && !slices.ContainsFunc(o.later, func(w Writer) bool {
		return w.Class != ByConversation || w.Conversation != conversation
	})
}

// origin finds out where a content that is older than the history comes from.
func (h *history) origin(ctx context.Context, c workspace.Change) (o origin, err error) {
	if h.older == nil {
		for rec, err := range h.w.newestFirst(ctx, "") {
			if kv.Damaged(err) {
				continue // then those beside it are not neighbours
			}
			if err != nil {
				return o, err
			}
			if rec.Number <= h.from.Number {
				h.older = append(h.older, rec)
			}
			if len(h.older) == originDepth {
				break
			}
		}
		slices.Reverse(h.older)
		workedOut(h.older)
		slices.Reverse(h.older)
	}
	for i := 0; i+1 < len(h.older); i++ {
		changes, err := h.diff(ctx, h.older[i+1].Tree, h.older[i].Tree)
		if err != nil {
			return o, err
		}
		at := slices.IndexFunc(changes, func(old workspace.Change) bool { return old.Path == c.Path })
		switch {
		case at < 0:
		case h.older[i].Kind == Rewound || !neighbours(h.older[i+1], h.older[i]):
			o.rewound = true // it wrote nothing of its own, or nobody knows who did
		case sameState(changes[at].After, c.After):
			o.found, o.by = true, h.older[i].Writer()
			return o, nil
		default:
			o.later = append(o.later, h.older[i].Writer())
		}
	}
	return o, nil
}

// claimed is a change of one of several conversations that one of them claims.
type claimed struct {
	write int // its place among the writes of its path
	among []string
}

// claim settles who of several made a change when one says that it did. What two of
// them say that they wrote is nobody's again.
func (h *history) claim(rec *Record) {
	if rec.Conversation == "" || rec.Side == Before {
		return
	}
	for _, path := range rec.Touched {
		n := len(h.writes[path]) - 1
		if n < 0 {
			continue
		}
		last, was := &h.writes[path][n].Writer, h.claims[path]
		switch {
		case was.write == n && slices.Contains(was.among, rec.Conversation):
			if last.Conversation != rec.Conversation {
				*last = Writer{Class: BySeveral, Among: was.among, Checkpoint: last.Checkpoint}
			}
		case last.Class == BySeveral && slices.Contains(last.Among, rec.Conversation):
			h.claims[path] = claimed{n, last.Among}
			*last = writerOf(rec, ByConversation)
		}
	}
}

func (h *history) blindAt(ctx context.Context, rec *Record) (blind, error) {
	if rec.notCaptured.IsZero() {
		return nil, nil
	}
	key := rec.notCaptured.String()
	if b, ok := h.blind[key]; ok {
		return b, nil
	}
	skipped, err := h.w.s.NotCaptured(ctx, rec)
	if err != nil {
		return nil, err
	}
	h.blind[key] = newBlind(skipped)
	return h.blind[key], nil
}

// after cuts off the writes up to the last time that the path was as in the
// target: what came before no longer matters.
func (h *history) after(path string, target *workspace.Entry) []Write {
	writes := h.writes[path]
	return writes[lastWith(writes, target)+1:]
}

// sameState reports whether two entries of a path are the same, apart from what
// a directory holds.
func sameState(a, b *workspace.Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind == workspace.Dir && b.Kind == workspace.Dir {
		return a.Mode == b.Mode
	}
	return a.Same(*b)
}
