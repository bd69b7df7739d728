package checkpoint

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// Write is one change of a path: its author and the state afterwards.
type Write struct {
	Writer Writer
	After  *workspace.Entry
}

// history collects, per path, the changes after a checkpoint, oldest first.
type history struct {
	w      *Workspace
	writes map[string][]Write
	claims map[string]claimed
	first  map[string]*workspace.Entry // state before the writes
	past   map[string][][]Write        // writes before rewinds, latest last
	blind  map[string]blind            // by blob of the list
	diffs  map[[2]blob.ID][]workspace.Change
	from   *Record
	older  []*Record // from and earlier ones, newest first; read on demand
}

// since returns the history of the workspace after the checkpoint from, up to the
// current state, which is passed as its safety record.
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

// chain returns the checkpoints from the given one up to the latest, oldest first. If
// that one was made by a release that did not record active turns, the checkpoints of
// the hour before it come first, because they show those turns.
func (w *Workspace) chain(ctx context.Context, from *Record) ([]*Record, error) {
	var chain []*Record
	for rec, err := range w.newestFirst(ctx, "") {
		var unread *UnreadableError
		if errors.As(err, &unread) && unread.ID < from.ID {
			continue // earlier checkpoints do not matter
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

// workedOut derives the active turns for checkpoints made by releases that did not
// record them. The checkpoints must be ordered oldest first. It returns the turns
// that continue after the last.
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

// segment adds the changes between two neighbours.
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

// neighbours reports whether two checkpoints are consecutive.
func neighbours(prev, rec *Record) bool { return rec.Parent == prev.ID }

// diff compares two trees. It caches the result: after a single turn the same two
// trees are compared again with the target.
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

// begin records the state before the first change of a path.
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
			// It existed but was not captured, so it was not created now.
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

// restored handles content that a rewind, an undo or a redo restored: its author is
// still the original one, not the one who rewound. It reports false if the author is
// unknown.
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
		h.writes[c.Path] = nil // as if it was never written
		return true, nil
	}
	for _, was := range slices.Backward(h.past[c.Path]) { // as in an undo
		if i := lastWith(was, c.After); i >= 0 {
			h.writes[c.Path] = slices.Clone(was[:i+1])
			h.writes[c.Path][i].Writer.Rewind = rec.wentBack()
			return true, nil
		}
	}
	from, err := h.origin(ctx, c)
	if err != nil || !from.found || from.takenBack(rec.Conversation) {
		return false, err
	}
	by := from.by
	by.Rewind = rec.wentBack()
	if by.Class == ByConversation && rec.Conversation != "" && by.Conversation != rec.Conversation {
		// One conversation wrote it and another restored it: neither may rewind it alone.
		by = Writer{Class: BySeveral, Among: []string{by.Conversation, rec.Conversation}, Checkpoint: rec.ID}
		slices.Sort(by.Among)
	}
	h.writes[c.Path] = append(writes, Write{Writer: by, After: c.After})
	return true, nil
}

// wentBack reports whether a rewind made the checkpoint, rather than an undo or redo.
// Users attribute what a rewind did to the rewind, whoever wrote the content first.
func (r *Record) wentBack() bool { return r.Kind == Rewound && strings.HasPrefix(r.Label, OpRewind) }

// lastWith returns the last write that led to a state, or -1.
func lastWith(writes []Write, after *workspace.Entry) int {
	for i := len(writes) - 1; i >= 0; i-- {
		if sameState(writes[i].After, after) {
			return i
		}
	}
	return -1
}

// originDepth limits the search for the author of restored content.
const originDepth = 500

// origin is the origin of content that is older than the history.
type origin struct {
	found bool
	by    Writer
	// later are the later authors of the path, up to the history; rewound means that
	// some of them may be rewinds or unknown.
	later   []Writer
	rewound bool
}

// takenBack reports whether a rewind to the content removed only what a conversation
// had written on top of it. The content was not written again then: going forward
// undoes the rewind, not work of the first author.
func (o *origin) takenBack(conversation string) bool {
	return len(o.later) > 0 && !o.rewound && conversation != "" && !slices.ContainsFunc(o.later, func(w Writer) bool {
		return w.Class != ByConversation || w.Conversation != conversation
	})
}

// origin finds the origin of content that is older than the history.
func (h *history) origin(ctx context.Context, c workspace.Change) (o origin, err error) {
	if h.older == nil {
		for rec, err := range h.w.newestFirst(ctx, "") {
			if kv.Damaged(err) {
				continue // the records around it are then not neighbours
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
			o.rewound = true // a rewind, or the author is unknown
		case sameState(changes[at].After, c.After):
			o.found, o.by = true, h.older[i].Writer()
			return o, nil
		default:
			o.later = append(o.later, h.older[i].Writer())
		}
	}
	return o, nil
}

// claimed is a change that could be of several conversations and that one of them
// claims.
type claimed struct {
	write int // index among the writes of its path
	among []string
	turns Turns // as in Writer
}

// of reports whether the claim is of the nth change.
func (c *claimed) of(n int) bool { return c.among != nil && c.write == n }

// nobodys sets the author of a change that two conversations claim.
func (c *claimed) nobodys(w *Writer) {
	*w = Writer{Class: BySeveral, Among: c.among, Checkpoint: w.Checkpoint, turns: c.turns}
}

// claim assigns a change of several conversations to the one that lists it as touched. If
// two of them do, or another one changed the path after its tool, the author stays unknown.
func (h *history) claim(rec *Record) {
	if rec.Conversation == "" || rec.Side == Before {
		return
	}
	each := func(paths []string, rule func(*Record, *Writer, int, claimed) claimed) {
		for _, path := range paths {
			if n := len(h.writes[path]) - 1; n >= 0 {
				h.claims[path] = rule(rec, &h.writes[path][n].Writer, n, h.claims[path])
			}
		}
	}
	each(rec.Touched, claim)
	each(rec.Shared, contest)
}

// claim is what a checkpoint that lists a path as touched makes of the last change of the
// path, the nth. It returns the new claim.
func claim(rec *Record, last *Writer, n int, was claimed) claimed {
	switch {
	case was.of(n) && slices.Contains(was.among, rec.Conversation):
		if last.Conversation != rec.Conversation {
			was.nobodys(last)
		}
	case last.Class == BySeveral && slices.Contains(last.Among, rec.Conversation):
		was = claimed{n, last.Among, last.turns}
		seen := last.Checkpoint
		*last = writerOf(rec, ByConversation)
		last.Checkpoint = seen
	}
	return was
}

// contest is claim for a path that the checkpoint lists as shared: the change is of its
// conversation and of another one, whether that one claims it or not.
func contest(rec *Record, last *Writer, n int, was claimed) claimed {
	if !was.of(n) {
		was = claimed{n, last.Among, last.turns}
	}
	if slices.Contains(was.among, rec.Conversation) {
		was.nobodys(last)
	}
	return was
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

// after drops the writes up to the last time that the path equalled the target:
// earlier ones do not matter.
func (h *history) after(path string, target *workspace.Entry) []Write {
	writes := h.writes[path]
	return writes[lastWith(writes, target)+1:]
}

// sameState reports whether two entries of a path are the same, apart from the
// content of a directory.
func sameState(a, b *workspace.Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind == workspace.Dir && b.Kind == workspace.Dir {
		return a.Mode == b.Mode
	}
	return a.Same(*b)
}
