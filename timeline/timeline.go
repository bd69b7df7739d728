package timeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
)

// Reader reads histories. It is safe for concurrent use.
type Reader struct {
	checkpoints   *checkpoint.Service
	conversations *conversation.Store
}

// New returns a reader over two services.
func New(checkpoints *checkpoint.Service, conversations *conversation.Store) *Reader {
	return &Reader{checkpoints: checkpoints, conversations: conversations}
}

// Scope is the part of the history to read: a workspace, a conversation in all its
// workspaces, or a conversation in one workspace.
type Scope struct {
	// Workspace is the id of a workspace; see checkpoint.WorkspaceID.
	Workspace string
	// Conversation is the id of a conversation.
	Conversation string
	// Limit keeps only that many of the newest checkpoints; 0 means all.
	Limit int
}

// History is the history of a scope, newest first.
type History struct {
	Entries []*Entry
	// Damaged are the checkpoints that cannot be read.
	Damaged []*checkpoint.UnreadableError
	// Truncated means that Scope.Limit left out older checkpoints.
	Truncated bool

	reader *Reader
	saves  map[string]saves // of the conversations whose turns were read
}

// Entry is a checkpoint and its place in the history.
type Entry struct {
	Record *checkpoint.Record
	// Pins are the names of the checkpoint, in order.
	Pins []string
	// Continues is the checkpoint of the same line that this one continues: the one
	// before it, or the target of the rewind before it. It is empty for the first one,
	// and if the line begins with a checkpoint that is not in the history.
	Continues string
	// Left means that a rewind left the checkpoint behind, at LeftAt. It is kept, and
	// can be rewound to like any other.
	Left   bool
	LeftAt time.Time
	// Branch is 0 for a checkpoint that stands. Checkpoints that were left behind and
	// continue each other share a number, counted from 1, oldest first.
	Branch int
	// Current means that the workspace continues this checkpoint. A history has one such
	// entry for each workspace.
	Current bool
	// Forgotten is the number of checkpoints right before this one that are no longer
	// kept.
	Forgotten uint64
	// Total sums up the turn whose newest checkpoint this is; nil for others.
	Total *Total
	// Quiet means that the entry adds nothing to its neighbours, such as a checkpoint
	// before a turn that found nothing changed.
	Quiet bool
	// Operation describes what made the checkpoint, such as "rewind of turn 2" or "adopt
	// try-x7k2m9-2", if that went to no checkpoint, or undid or repeated this. No other
	// entry has such files: a turn that was taken out stands, and a branch is elsewhere.
	Operation string
	// Folded is the number of checkpoints on the way to this one, in the same turn, that
	// History.Folded left out.
	Folded int
}

// Read returns the history of a scope. A checkpoint that cannot be read is listed in
// Damaged and does not hide the others.
func (r *Reader) Read(ctx context.Context, scope Scope) (*History, error) {
	h := &History{reader: r}
	if err := r.entries(ctx, scope, h); err != nil {
		return nil, err
	}
	if err := r.gaps(ctx, scope, h); err != nil {
		return nil, err
	}
	ops, err := r.operations(ctx)
	if err != nil {
		return nil, err
	}
	moves := movesOf(ops)
	oldest := slices.Clone(h.Entries)
	slices.Reverse(oldest)
	for id, entries := range byWorkspace(oldest) {
		follow(entries, withReceived(moves[id], entries))
	}
	number(oldest)
	for _, turn := range h.Turns() {
		turn.Checkpoints[0].Total = turn
		turn.hush()
	}
	h.describe(ops)
	h.reveal()
	return h, nil
}

// reveal shows the newest checkpoint of each workspace if no other shown entry has
// its files, for example after a rewind that left something alone.
func (h *History) reveal() {
	newest, same := make(map[string]*Entry), make(map[string]bool)
	for _, e := range h.Entries {
		workspace := e.Record.Workspace
		if newest[workspace] == nil && e.Record.Kind != checkpoint.Import {
			newest[workspace] = e
		}
		if last := newest[workspace]; last != nil && !e.Quiet && e.Record.Tree == last.Record.Tree {
			same[workspace] = true
		}
	}
	for workspace, e := range newest {
		if !same[workspace] {
			e.Quiet = false
		}
	}
}

// Like returns the shown entry that stands for the files of a checkpoint: the
// checkpoint itself, the one that the workspace continues, or the newest one with the
// same files. It returns nil if there is none.
func Like(shown []*Entry, rec *checkpoint.Record) *Entry {
	var like *Entry
	for _, e := range shown {
		switch {
		case e.Record.ID == rec.ID:
			return e
		case e.Record.Workspace != rec.Workspace || e.Record.Tree != rec.Tree:
		case like == nil || e.Current:
			like = e
		}
	}
	return like
}

// entries lists the checkpoints of a scope.
func (r *Reader) entries(ctx context.Context, scope Scope, h *History) error {
	pins := make(map[string][]string)
	for pin, err := range r.checkpoints.Pins(ctx) {
		if err != nil {
			return err
		}
		pins[pin.Checkpoint] = append(pins[pin.Checkpoint], pin.Name)
	}
	list := r.checkpoints.ListWorkspace(ctx, scope.Workspace, nil)
	if scope.Conversation != "" {
		list = r.checkpoints.ListConversation(ctx, scope.Conversation)
	}
	for rec, err := range list {
		var bad *checkpoint.UnreadableError
		if errors.As(err, &bad) {
			h.Damaged = append(h.Damaged, bad)
			continue
		}
		if err != nil {
			return err
		}
		if scope.Workspace != "" && rec.Workspace != scope.Workspace {
			continue
		}
		if scope.Limit > 0 && len(h.Entries) == scope.Limit {
			h.Truncated = true
			return nil
		}
		e := &Entry{Record: rec, Pins: pins[rec.ID]}
		e.Quiet = quiet(e)
		h.Entries = append(h.Entries, e)
	}
	return nil
}

// quiet reports whether an entry shows nothing new. A name, or the beginning of a
// line, counts as new.
func quiet(e *Entry) bool {
	rec := e.Record
	switch {
	case len(e.Pins) > 0 || rec.Parent == "":
		return false
	case rec.Kind == checkpoint.Rewound:
		return true
	}
	return rec.FilesChanged == 0 && (rec.Kind == checkpoint.Safety || rec.Side == checkpoint.Before)
}

// operations returns the log of operations, newest first.
func (r *Reader) operations(ctx context.Context) ([]*checkpoint.Operation, error) {
	var all []*checkpoint.Operation
	for op, err := range r.checkpoints.Operations(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, op)
	}
	return all, nil
}

// describe shows the entries of rewinds that went to no checkpoint, since they took out a
// single turn or adopted a branch, and of what undid or repeated them, and sets
// Entry.Operation.
func (h *History) describe(ops []*checkpoint.Operation) {
	out := make(map[uint64]string)
	for _, op := range ops {
		if op.Kind == checkpoint.OpRewind && op.Target == "" && op.Description != "" {
			out[op.Seq] = op.Description
		}
	}
	words := make(map[string]string) // by checkpoint
	for _, op := range ops {
		switch {
		case op.Files == 0 || op.After == "":
		case out[op.Seq] != "":
			words[op.After] = out[op.Seq]
		case out[op.Of] != "":
			words[op.After] = op.Kind + " of " + out[op.Of]
		}
	}
	for _, e := range h.Entries {
		if e.Operation = words[e.Record.ID]; e.Operation != "" {
			e.Quiet = false
		}
	}
}

// movesOf returns the rewinds of each workspace, oldest first.
func movesOf(all []*checkpoint.Operation) map[string][]*checkpoint.Operation {
	moves := make(map[string][]*checkpoint.Operation)
	for _, op := range checkpoint.Moves(all) {
		moves[op.Workspace] = append(moves[op.Workspace], op)
	}
	for _, ops := range moves {
		slices.SortFunc(ops, byOutcome)
	}
	return moves
}

// withReceived adds the rewinds that came along with checkpoints of another store.
func withReceived(moves []*checkpoint.Operation, oldest []*Entry) []*checkpoint.Operation {
	records := make([]*checkpoint.Record, len(oldest))
	for i, e := range oldest {
		records[i] = e.Record
	}
	received := checkpoint.ReceivedMoves(records, moves)
	if len(received) == 0 {
		return moves
	}
	all := slices.Concat(moves, received)
	slices.SortFunc(all, byOutcome)
	return all
}

// byOutcome orders operations by their checkpoints, which say when they took place.
func byOutcome(a, b *checkpoint.Operation) int { return strings.Compare(a.After, b.After) }

func byWorkspace(entries []*Entry) map[string][]*Entry {
	out := make(map[string][]*Entry)
	for _, e := range entries {
		out[e.Record.Workspace] = append(out[e.Record.Workspace], e)
	}
	return out
}

// Shown returns the entries without the quiet ones. Checkpoints forgotten before a
// quiet entry count for the entry after it, and an entry that continues a quiet one
// continues the one before that.
func (h *History) Shown() []*Entry {
	return h.without(func(e *Entry) bool { return e.Quiet })
}

// Folded is Shown with one entry for each turn: the checkpoints that were made during it
// are counted in the newest one. Those with a name or label, and the one that the
// workspace continues, stay.
func (h *History) Folded() []*Entry {
	newest := make(map[string]string) // by checkpoint that is left out
	for _, turn := range h.Turns() {
		for _, e := range turn.Checkpoints[1:] {
			if rec := e.Record; rec.Side != checkpoint.Before && rec.Kind == checkpoint.Auto && rec.Label == "" && len(e.Pins) == 0 && !e.Current {
				newest[rec.ID] = turn.Checkpoints[0].Record.ID
			}
		}
	}
	count := make(map[string]int)
	for _, id := range newest {
		count[id]++
	}
	out := h.without(func(e *Entry) bool { return e.Quiet || newest[e.Record.ID] != "" })
	for _, e := range out {
		e.Folded = count[e.Record.ID]
	}
	return out
}

// without returns copies of the entries, except the hidden ones.
func (h *History) without(hidden func(*Entry) bool) []*Entry {
	quiet := make(map[string]*Entry)
	for _, e := range h.Entries {
		if hidden(e) {
			quiet[e.Record.ID] = e
		}
	}
	var out []*Entry
	for _, e := range h.Entries {
		switch last := len(out) - 1; {
		case quiet[e.Record.ID] == nil:
			shown := *e
			for range quiet {
				before := quiet[shown.Continues]
				if before == nil {
					break
				}
				shown.Continues = before.Continues
			}
			out = append(out, &shown)
		case last >= 0:
			out[last].Forgotten += e.Forgotten
		}
	}
	return out
}
