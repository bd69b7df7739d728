package timeline

import (
	"context"
	"errors"
	"time"

	"github.com/stet-dev/stet/checkpoint"
)

// Changes sums up what checkpoints found changed by agents. A file that two
// checkpoints found changed counts twice.
type Changes struct {
	Files, Added, Removed uint64
	// Partial means that not everything was counted.
	Partial bool
}

// Add adds the changes that a checkpoint found, if they are the work of a turn: not
// what the user changed before a turn, or what a rewind changed.
func (c *Changes) Add(rec *checkpoint.Record) {
	if rec.Side == checkpoint.Before || rec.Kind == checkpoint.Safety || rec.Kind == checkpoint.Rewound {
		return
	}
	c.Files += rec.FilesChanged
	c.Added += rec.LinesAdded
	c.Removed += rec.LinesRemoved
	c.Partial = c.Partial || rec.LinesPartial
}

// Total is one turn of a conversation in a history.
type Total struct {
	Workspace, Conversation string
	Turn                    uint64
	// Branch is the branch of its checkpoints. A turn that was rewound and one that took
	// its number afterwards are two turns.
	Branch int
	Changes
	// Checkpoints are its entries, newest first.
	Checkpoints []*Entry
	// Last is when the newest of them was made.
	Last time.Time
}

// Turns returns the turns of the history with their totals, newest first. If
// Scope.Limit cut the oldest one in two, its total is Partial.
func (h *History) Turns() []*Total {
	type key struct {
		workspace, conversation string
		turn                    uint64
		branch                  int
	}
	turns := make(map[key]*Total)
	var out []*Total
	for _, e := range h.Entries {
		rec := e.Record
		if rec.Turn == 0 || rec.Kind == checkpoint.Safety || rec.Kind == checkpoint.Rewound {
			continue
		}
		k := key{rec.Workspace, rec.Conversation, rec.Turn, e.Branch}
		t := turns[k]
		if t == nil {
			t = &Total{Workspace: rec.Workspace, Conversation: rec.Conversation, Turn: rec.Turn, Branch: e.Branch, Last: rec.Time}
			turns[k] = t
			out = append(out, t)
		}
		t.Checkpoints = append(t.Checkpoints, e)
		t.Add(rec)
	}
	if h.Truncated && len(out) > 0 {
		out[len(out)-1].Partial = true
	}
	return out
}

// hush makes the end of a turn quiet if nothing was said or changed in it, such as a
// command that did nothing.
func (t *Total) hush() {
	end, began := t.Checkpoints[0], t.Checkpoints[len(t.Checkpoints)-1].Record
	if rec := end.Record; len(t.Checkpoints) == 2 && rec.Side == checkpoint.After && began.Side == checkpoint.Before &&
		rec.Kind == checkpoint.Auto && rec.Label == "" && len(end.Pins) == 0 && rec.Root == began.Root && rec.Tree == began.Tree {
		end.Quiet = true
	}
}

// Whole returns everything that a turn changed, given its newest checkpoint: a file
// that several of its checkpoints found changed counts once. For other entries, and
// if the checkpoint before the turn is no longer kept, it returns what the
// checkpoints found.
func (h *History) Whole(ctx context.Context, e *Entry) (Changes, error) {
	if e.Total == nil || len(e.Total.Checkpoints) < 2 {
		rec := e.Record
		return Changes{Files: rec.FilesChanged, Added: rec.LinesAdded, Removed: rec.LinesRemoved, Partial: rec.LinesPartial}, nil
	}
	oldest := e.Total.Checkpoints[len(e.Total.Checkpoints)-1].Record
	if oldest.Side != checkpoint.Before {
		before, err := h.reader.checkpoints.Get(ctx, oldest.Parent)
		if errors.Is(err, checkpoint.ErrNotFound) {
			return e.Total.Changes, nil
		}
		if err != nil {
			return Changes{}, err
		}
		oldest = before
	}
	var c Changes
	var err error
	c.Files, c.Added, c.Removed, c.Partial, err = h.reader.checkpoints.Compare(ctx, oldest, e.Record)
	return c, err
}
