package checkpoint

import (
	"cmp"
	"slices"

	"github.com/stet-dev/stet/workspace"
)

// ActionKind is what a rewind does at a path.
type ActionKind string

// The kinds of actions.
const (
	// Restore: the path gets back another content, mode or kind.
	Restore ActionKind = "restore"
	// Create: the path is missing and comes back.
	Create ActionKind = "create"
	// Delete: the path goes; the conversation had created it.
	Delete ActionKind = "delete"
	// Conflict: the conversation wrote it and so did somebody else, or who did is no
	// longer known. It stays as it is until somebody chooses otherwise.
	Conflict ActionKind = "conflict"
	// Keep: it differs from the target and is none of the rewind's business.
	Keep ActionKind = "keep"
)

// Choice says what to do about a conflict.
type Choice string

// The choices. The empty one is KeepMine for a rewind, and for an undo or redo
// means that a conflict stops it.
const (
	// KeepMine leaves the path as it is.
	KeepMine Choice = "keep-mine"
	// Theirs takes the target's state, whoever wrote since.
	Theirs Choice = "theirs"
	// Merge takes back, line by line, what the conversation wrote. What cannot be
	// merged stays a conflict.
	Merge Choice = "merge"
	// MergeMarkers is Merge that writes conflict markers where lines collide.
	MergeMarkers Choice = "merge-markers"
)

// PathState is what Decide knows about one path.
type PathState struct {
	Path string
	// Target and Present are what was and is there; nil is nothing.
	Target, Present *workspace.Entry
	// Writes are the changes since the path last was as in the target, oldest
	// first, up to the present.
	Writes []Write
	// NotCaptured says why the present tree says nothing about the path, and
	// NotCapturedThen why the target says nothing.
	NotCaptured, NotCapturedThen workspace.Reason
	// Occupied says that the directory holds something that is not captured.
	Occupied bool
	// Excluded says that the path is not asked for.
	Excluded bool
}

// Rules are what Decide goes by.
type Rules struct {
	// Mine reports whether a change is one that the rewind takes back.
	Mine func(path string, w Writer) bool
	// Perhaps reports whether a change that is not Mine may be one all the same,
	// since nobody knows who made it: that is a conflict. Nil means that none is.
	Perhaps func(w Writer) bool
	// Choice says what to do about a conflict at a path.
	Choice func(path string) Choice
	// Exact takes every path to the target's state, whoever wrote it. What is not
	// captured, now or then, is left alone all the same.
	Exact bool
	// Lift says that the changes of others on top are to be kept, as when one turn
	// is taken out of the middle: what merges without collision is no conflict.
	Lift bool
}

// Action is one line of a plan.
type Action struct {
	Path string
	Kind ActionKind
	// Before is what is there now and After what will be there; nil is nothing.
	Before, After *workspace.Entry
	// Add and Del count the lines that come and go.
	Add, Del uint64
	// Reason tells people why; it is empty where there is nothing to explain.
	Reason string
	// Why says the same to programs, where the path is left as it is.
	Why Why
	// Writer is who changed the path last; nil if nobody is known.
	Writer *Writer
	// Merged says that After is a mixture of several versions.
	Merged bool

	undo []inverse // what to take back, newest first, if the content must be merged
}

// inverse is a change to take back: from what it made to what was there before.
type inverse struct{ from, to *workspace.Entry }

// Changes reports whether the action changes the path.
func (a *Action) Changes() bool { return a.Kind == Restore || a.Kind == Create || a.Kind == Delete }

// Decide says what to do at each path, sorted by path. It looks at nothing but
// its arguments. Actions whose content has to be merged carry what is to be
// merged; whoever can read contents does it.
func Decide(paths []PathState, rules Rules) []Action {
	actions := make([]Action, 0, len(paths))
	for i := range paths {
		if a, differs := decide(&paths[i], &rules); differs {
			actions = append(actions, a)
		}
	}
	slices.SortFunc(actions, func(a, b Action) int { return cmp.Compare(a.Path, b.Path) })
	return actions
}

func decide(p *PathState, rules *Rules) (Action, bool) {
	a := Action{Path: p.Path, Kind: Keep, Before: p.Present, After: p.Present}
	if n := len(p.Writes); n > 0 {
		last := p.Writes[n-1].Writer
		a.Writer = &last
	}
	if sameState(p.Target, p.Present) {
		return a, false
	}
	switch {
	case p.Excluded:
		a.left(WhyNotAsked, "not asked for")
		return a, true
	case p.NotCaptured != "":
		a.left(whyNotCaptured(p.NotCaptured), "not captured: "+string(p.NotCaptured))
		return a, true
	case p.NotCapturedThen != "" && p.Target == nil:
		a.left(WhyNotCapturedThen, "not captured then: "+string(p.NotCapturedThen))
		return a, true
	case rules.Exact:
		a.become(p.Target)
		_, a.Reason = whose(a.Writer, p)
		return a, true
	}
	mine, perhaps := 0, false
	for _, w := range p.Writes {
		if rules.Mine(p.Path, w.Writer) {
			mine++
		} else if rules.Perhaps != nil {
			perhaps = perhaps || rules.Perhaps(w.Writer)
		}
	}
	switch {
	case mine == 0 && !perhaps:
		a.left(whose(a.Writer, p))
		return a, !rules.Lift
	case mine == len(p.Writes):
		a.become(p.Target)
		return a, !sameState(a.Before, a.After)
	}
	collide(&a, p, rules)
	return a, true
}

// collide decides about a path that both the conversation and somebody else
// wrote, or nobody knows who.
func collide(a *Action, p *PathState, rules *Rules) {
	choice := rules.Choice(p.Path)
	why, reason := whose(a.Writer, p)
	switch {
	case choice == Theirs && !rules.Lift:
		a.become(p.Target)
		a.Reason = "taken although " + reason
		return
	case choice == Merge || choice == MergeMarkers || rules.Lift:
		a.undo = inverses(p, rules)
	}
	a.Kind = Conflict
	a.left(why, reason)
}

// left says why the path stays as it is.
func (a *Action) left(why Why, reason string) { a.Why, a.Reason = why, reason }

// become makes the action one that leads to the given state.
func (a *Action) become(after *workspace.Entry) {
	a.After, a.Why = after, ""
	switch {
	case after == nil:
		a.Kind = Delete
	case a.Before == nil:
		a.Kind = Create
	default:
		a.Kind = Restore
	}
}

// inverses lists what to take back from the present, newest first.
func inverses(p *PathState, rules *Rules) []inverse {
	var out []inverse
	for i := len(p.Writes) - 1; i >= 0; i-- {
		if !rules.Mine(p.Path, p.Writes[i].Writer) {
			continue
		}
		before := p.Target
		if i > 0 {
			before = p.Writes[i-1].After
		}
		out = append(out, inverse{from: p.Writes[i].After, to: before})
	}
	return out
}
