package timeline

import (
	"time"

	"github.com/stet-dev/stet/checkpoint"
)

// Changes sums up what checkpoints found changed by agents. A file that two
// checkpoints found changed counts twice.
type Changes struct {
	Files, Added, Removed uint64
	// Partial says that not everything was counted.
	Partial bool
}

// Add adds what a checkpoint found, if it is the work of a turn. What the user changed
// before a turn, and what a rewind changed, is not.
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
	// Branch is that of its checkpoints. A turn that was rewound and one that took its
	// number afterwards are two turns.
	Branch int
	Changes
	// Checkpoints are its entries, newest first.
	Checkpoints []*Entry
	// Last is when the newest of them was made.
	Last time.Time
}

// Turns returns the turns of the history with their totals, newest first. Where
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
