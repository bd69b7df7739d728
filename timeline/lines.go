package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/stet-dev/stet/checkpoint"
)

// line is the work of one conversation, or of none, in one workspace.
type line struct {
	tip    string            // the checkpoint that the next one continues
	before map[string]string // which one each continues
	known  []*Entry          // so far, oldest first
	tips   []moment
}

// moment is the tip of a line from a checkpoint on.
type moment struct{ id, tip string }

// at returns the checkpoint of the line that a checkpoint of the workspace stands
// for: itself, or what the line continued when it was made. It works the same if the
// given checkpoint is no longer kept.
func (l *line) at(id string) string {
	if _, own := l.before[id]; own {
		return id
	}
	n, found := slices.BinarySearchFunc(l.tips, id, func(m moment, id string) int { return cmp.Compare(m.id, id) })
	switch {
	case found:
		return l.tips[n].tip
	case n > 0:
		return l.tips[n-1].tip
	}
	return ""
}

// add moves on to a checkpoint. The present that a rewind saves is a side branch.
func (l *line) add(e *Entry) {
	id := e.Record.ID
	e.Continues, l.before[id] = l.tip, l.tip
	if e.Record.Kind != checkpoint.Safety {
		l.move(id, id)
	}
	l.known = append(l.known, e)
}

func (l *line) move(id, tip string) {
	l.tip = tip
	l.tips = append(l.tips, moment{id, tip})
}

// rewind moves to the target of an operation. The entry is the checkpoint after it,
// or nil if that is not of this line or is no longer kept.
func (l *line) rewind(op *checkpoint.Operation, after *Entry) {
	to := l.at(op.Target)
	on := l.chain(to)
	for _, e := range l.known {
		switch gone := !on[e.Record.ID]; {
		case !gone:
			e.Left, e.LeftAt = false, time.Time{}
		case !e.Left:
			e.Left, e.LeftAt = true, op.Time
		}
	}
	if after == nil {
		l.move(op.After, to)
		return
	}
	after.Continues, l.before[op.After] = to, to
	l.move(op.After, op.After)
	l.known = append(l.known, after)
}

// chain returns a checkpoint and all that it continues.
func (l *line) chain(id string) map[string]bool {
	on := make(map[string]bool)
	for ; id != "" && !on[id]; id = l.before[id] {
		on[id] = true
	}
	return on
}

// track holds the lines of one workspace.
type track struct {
	lines   map[string]*line // by conversation
	entries map[string]*Entry
	rewinds map[string]bool // checkpoints that rewinds made
	current string
}

// follow goes through the checkpoints and rewinds of a workspace, oldest first, and
// sets for each checkpoint what it continues and whether it stands.
func follow(entries []*Entry, moves []*checkpoint.Operation) {
	t := &track{lines: make(map[string]*line), entries: make(map[string]*Entry), rewinds: make(map[string]bool)}
	for _, e := range entries {
		for ; len(moves) > 0 && moves[0].After < e.Record.ID; moves = moves[1:] {
			t.rewind(moves[0], nil) // its checkpoint is another line's, or is no longer kept
		}
		t.entries[e.Record.ID] = e
		if len(moves) > 0 && moves[0].After == e.Record.ID {
			t.rewind(moves[0], e)
			moves = moves[1:]
			continue
		}
		t.line(e.Record.Conversation).add(e)
		if e.Record.Kind != checkpoint.Safety && e.Record.Kind != checkpoint.Import { // it is unknown what was done since
			t.current = e.Record.ID
		}
	}
	for _, op := range moves {
		t.rewind(op, nil)
	}
	if e := t.entries[t.shown(t.current)]; e != nil {
		e.Current = true
	}
}

func (t *track) line(conversation string) *line {
	l := t.lines[conversation]
	if l == nil {
		l = &line{before: make(map[string]string)}
		t.lines[conversation] = l
	}
	return l
}

// restore handles a rewind of some paths: it leaves nothing behind, and later
// checkpoints continue the same line.
func (t *track) restore(op *checkpoint.Operation, after *Entry) {
	if after == nil {
		return
	}
	t.line(after.Record.Conversation).add(after)
	t.rewinds[op.After], t.current = true, op.After
}

// rewind moves the lines that an operation concerns.
func (t *track) rewind(op *checkpoint.Operation, after *Entry) {
	if !op.Whole() {
		t.restore(op, after)
		return
	}
	if after != nil {
		t.line(after.Record.Conversation) // it may be the first of its line
		t.rewinds[op.After] = true
	}
	newest, moved := "", false
	for conversation, l := range t.lines {
		if !op.Concerns(conversation) {
			continue // a rewind reverts the work of one conversation
		}
		var own *Entry
		if after != nil && after.Record.Conversation == conversation {
			own = after
		}
		l.rewind(op, own)
		newest, moved = max(newest, l.at(op.Target)), true
	}
	switch {
	case t.entries[op.Target] != nil:
		t.current = op.Target
	case moved:
		t.current = newest
	}
}

// shown returns the checkpoint to show in place of one that a rewind made: the target
// of the rewind or, if that was limited to some paths, the one before it. The present that
// a rewind saved is the checkpoint before it, if nothing had changed since.
func (t *track) shown(id string) string {
	for range t.entries {
		e := t.entries[id]
		if e == nil || t.entries[e.Continues] == nil || !t.rewinds[id] && !(e.Record.Kind == checkpoint.Safety && quiet(e)) {
			break
		}
		id = e.Continues
	}
	return id
}

// number assigns numbers to the branches that were left behind.
func number(oldest []*Entry) {
	type key struct{ workspace, id string }
	branch := make(map[key]int)
	taken := make(map[key]bool) // another entry already continues this branch
	last := 0
	for _, e := range oldest {
		if !e.Left {
			continue
		}
		before := key{e.Record.Workspace, e.Continues}
		n := branch[before]
		if n == 0 || taken[before] {
			last++
			n = last
		}
		if e.Record.Kind != checkpoint.Safety { // nothing continues the present that a rewind saves
			taken[before] = true
		}
		e.Branch = n
		branch[key{e.Record.Workspace, e.Record.ID}] = n
	}
}
