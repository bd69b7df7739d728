package checkpoint

import (
	"context"
	"slices"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

// WriterClass says what is known about who made a change.
type WriterClass string

// The classes.
const (
	// ByConversation: seen at the end of a conversation's turn, or during it.
	ByConversation WriterClass = "conversation"
	// BySeveral: made while several conversations were at work, none of which
	// said that it was theirs.
	BySeveral WriterClass = "several"
	// ByHand: seen by a checkpoint of no conversation.
	ByHand WriterClass = "checkpoint"
	// ByUser: made while no conversation was at work, and not seen by a checkpoint
	// of somebody's own.
	ByUser WriterClass = "user"
	// ByUnseen: made while the path was not captured, so that nobody saw by whom.
	ByUnseen WriterClass = "unseen"
	// ByForgotten: made between two checkpoints of which those between are no
	// longer kept, or were never sent along.
	ByForgotten WriterClass = "forgotten"
)

// Writer says who made a change, as far as the checkpoints tell.
type Writer struct {
	Class        WriterClass `json:"class"`
	Conversation string      `json:"conversation,omitempty"`
	Turn         uint64      `json:"turn,omitempty"`
	MessageID    string      `json:"message_id,omitempty"`
	Tool         string      `json:"tool,omitempty"`
	Author       string      `json:"author,omitempty"`
	// Checkpoint is the one that saw the change; empty for the present.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Among lists the conversations that it may have been, for BySeveral.
	Among []string `json:"among,omitempty"`
}

// Write is one change of a path: who made it and what was there afterwards.
type Write struct {
	Writer Writer
	After  *workspace.Entry
}

// bracketLife is how long a turn counts as going on without a sign of life. An
// agent that was killed never says that its turn ended.
const bracketLife = time.Hour

// brackets are the turns that are going on, by conversation.
type brackets map[string]*Record

// step moves on to a checkpoint.
func (b brackets) step(rec *Record) {
	switch {
	case rec.Conversation == "" || rec.Kind == Safety:
	case rec.Side == Before:
		b[rec.Conversation] = rec
	default:
		delete(b, rec.Conversation)
	}
}

// others lists the conversations at work when rec was made, without its own.
func (b brackets) others(rec *Record) []string {
	var out []string
	for conv, opened := range b {
		if conv != rec.Conversation && rec.Time.Sub(opened.Time) < bracketLife {
			out = append(out, conv)
		}
	}
	slices.Sort(out)
	return out
}

// writer says who made the changes that rec saw.
func (b brackets) writer(rec *Record) Writer {
	others := b.others(rec)
	own := rec.Conversation != "" && rec.Side != Before && rec.Kind != Safety
	switch {
	case rec.Kind == Rewound && rec.Conversation == "":
		return writerOf(rec, ByHand)
	case rec.Kind == Rewound || own && len(others) == 0:
		return writerOf(rec, ByConversation)
	case own:
		w := writerOf(rec, BySeveral)
		w.Among = append(others, rec.Conversation)
		return w
	}
	if opened := b[rec.Conversation]; opened != nil && rec.Kind == Safety && rec.Time.Sub(opened.Time) < bracketLife {
		others = append(others, rec.Conversation)
	}
	switch len(others) {
	case 0:
		if rec.Kind == Safety || rec.Side == Before {
			return Writer{Class: ByUser, Author: "user", Checkpoint: rec.ID}
		}
		return writerOf(rec, ByHand)
	case 1:
		w := writerOf(b[others[0]], ByConversation)
		w.Checkpoint = rec.ID
		return w
	}
	return Writer{Class: BySeveral, Among: others, Checkpoint: rec.ID}
}

func writerOf(rec *Record, class WriterClass) Writer {
	return Writer{
		Class: class, Conversation: rec.Conversation, Turn: rec.Turn, MessageID: rec.MessageID,
		Tool: rec.Tool, Author: rec.Author, Checkpoint: rec.ID,
	}
}

// history collects, per path, the changes after a checkpoint, oldest first.
type history struct {
	w      *Workspace
	open   brackets
	writes map[string][]Write
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
	h := &history{w: w, open: brackets{}, writes: map[string][]Write{}, first: map[string]*workspace.Entry{}, past: map[string][][]Write{}, blind: map[string]blind{}, diffs: map[[2]blob.ID][]workspace.Change{}, from: from}
	chain, err := w.chain(ctx, from)
	if err != nil {
		return nil, err
	}
	last := from
	for _, rec := range chain {
		if rec.Number > from.Number {
			if err := h.segment(ctx, last, rec); err != nil {
				return nil, err
			}
			last = rec
		}
		h.open.step(rec)
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

// chain returns the checkpoints from a little before the given one up to the
// latest, oldest first. The ones before tell which turns were going on.
func (w *Workspace) chain(ctx context.Context, from *Record) ([]*Record, error) {
	var chain []*Record
	for rec, err := range w.newestFirst(ctx, "") {
		if err != nil {
			return nil, err
		}
		if rec.Number < from.Number && from.Time.Sub(rec.Time) >= bracketLife {
			break
		}
		chain = append(chain, rec)
	}
	slices.Reverse(chain)
	return chain, nil
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
	writer := h.open.writer(rec)
	for _, c := range changes {
		h.begin(c)
		if rec.Kind == Rewound {
			restored, err := h.restored(ctx, c)
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
func (h *history) restored(ctx context.Context, c workspace.Change) (bool, error) {
	writes := h.writes[c.Path]
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
	by, found, err := h.origin(ctx, c)
	if err != nil || !found {
		return false, err
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

// origin finds out who wrote a content that is older than the history.
func (h *history) origin(ctx context.Context, c workspace.Change) (Writer, bool, error) {
	if h.older == nil {
		for rec, err := range h.w.newestFirst(ctx, "") {
			if err != nil {
				return Writer{}, false, err
			}
			if rec.Number <= h.from.Number {
				h.older = append(h.older, rec)
			}
			if len(h.older) == originDepth {
				break
			}
		}
	}
	for i := 0; i+1 < len(h.older); i++ {
		changes, err := h.diff(ctx, h.older[i+1].Tree, h.older[i].Tree)
		if err != nil {
			return Writer{}, false, err
		}
		if h.older[i].Kind == Rewound || !neighbours(h.older[i+1], h.older[i]) {
			continue // it wrote nothing of its own, or nobody knows who did
		}
		for _, old := range changes {
			if old.Path == c.Path && sameState(old.After, c.After) {
				return h.openBefore(i).writer(h.older[i]), true, nil
			}
		}
	}
	return Writer{}, false, nil
}

// openBefore returns the turns that were going on when an older record was made.
func (h *history) openBefore(i int) brackets {
	open := brackets{}
	for k := len(h.older) - 1; k > i; k-- {
		open.step(h.older[k])
	}
	return open
}

// claim settles who of several made a change when one says that it did.
func (h *history) claim(rec *Record) {
	if rec.Conversation == "" || rec.Side == Before {
		return
	}
	for _, path := range rec.Touched {
		writes := h.writes[path]
		if len(writes) == 0 {
			continue
		}
		last := &writes[len(writes)-1].Writer
		if last.Class == BySeveral && slices.Contains(last.Among, rec.Conversation) {
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
