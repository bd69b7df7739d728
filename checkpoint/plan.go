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
	// Restore: the path gets different content, or another mode or kind.
	Restore ActionKind = "restore"
	// Create: the path is missing and is restored.
	Create ActionKind = "create"
	// Delete: the path is removed; the conversation had created it.
	Delete ActionKind = "delete"
	// Conflict: both the conversation and another author wrote it, or the author is
	// unknown. It stays unchanged until a choice is made.
	Conflict ActionKind = "conflict"
	// Keep: it differs from the target, but the rewind does not concern it.
	Keep ActionKind = "keep"
)

// Choice says what to do about a conflict.
type Choice string

// The choices. The empty one is KeepMine for a rewind; for an undo or redo it means
// that a conflict stops it.
const (
	// KeepMine leaves the path unchanged.
	KeepMine Choice = "keep-mine"
	// Theirs takes the target's state, regardless of later authors.
	Theirs Choice = "theirs"
	// Merge reverts, line by line, what the conversation wrote. What cannot be merged
	// stays a conflict.
	Merge Choice = "merge"
	// MergeMarkers is Merge that writes conflict markers where lines collide.
	MergeMarkers Choice = "merge-markers"
)

// PathState is the input of Decide for one path.
type PathState struct {
	Path string
	// Target and Present are the target and the current entry; nil is nothing.
	Target, Present *workspace.Entry
	// Writes are the changes since the path last equalled the target, oldest first.
	Writes []Write
	// NotCaptured is why the current tree does not cover the path, and
	// NotCapturedThen why the target does not.
	NotCaptured, NotCapturedThen workspace.Reason
	// PerhapsThen means that NotCapturedThen is the reason of a directory above the path,
	// so that nobody knows whether the path existed.
	PerhapsThen bool
	// Occupied means that the directory contains something uncaptured.
	Occupied bool
	// Impossible is why this system cannot have the target's state at the path, for people,
	// or empty.
	Impossible string
	// Excluded means that the path is not requested.
	Excluded bool
}

// Rules are the rules that Decide follows.
type Rules struct {
	// Mine reports whether the rewind reverts a change.
	Mine func(path string, w Writer) bool
	// Perhaps reports whether a change that is not Mine may still be one, because its
	// author is unknown: that is a conflict. Nil means none.
	Perhaps func(w Writer) bool
	// Unsure reports whether a change that is neither may still be one, although
	// nothing can be done about it: the path is kept, and Lift names it. Nil means none.
	Unsure func(w Writer) bool
	// Choice says what to do about a conflict at a path.
	Choice func(path string) Choice
	// Exact takes every path to the target's state, regardless of authors. Paths that
	// are not captured, now or then, are still left alone.
	Exact bool
	// Whole makes every path that cannot be changed a conflict, as in an undo: one that
	// passed over something would count as done. Otherwise only Exact and Theirs, which
	// nothing can add to, leave it as it is.
	Whole bool
	// Lift keeps later changes of others, as when one turn is removed from the
	// middle: a merge without collisions is then not a conflict, and Reconcile leaves
	// out the paths that only others changed.
	Lift bool
}

// Action is one line of a plan.
type Action struct {
	Path string
	Kind ActionKind
	// Before is the current entry and After the new one; nil is nothing.
	Before, After *workspace.Entry
	// Add and Del count the added and removed lines.
	Add, Del uint64
	// Reason is an explanation for people, or empty.
	Reason string
	// Why is the reason for programs if the path is left unchanged.
	Why Why
	// Writer is the last author of the path; nil if unknown.
	Writer *Writer
	// Merged means that After is merged from several versions.
	Merged bool
	// NoMerge is why a merge cannot resolve a conflict, for people, whether or not one
	// was requested. It is empty for a conflict that Merge resolves.
	NoMerge string

	// stuck means that the conflict is one of an undo that Theirs does not resolve.
	stuck bool

	// inside means that the path may not have existed at the target: see PerhapsThen.
	inside bool

	// own means that some of its changes are, or may be, for the rewind to revert.
	own bool

	// writerName is a prefix of the writer's id that distinguishes it from others.
	writerName string

	undo  []inverse // changes to revert, newest first, if the content must be merged
	offer []inverse // the same, if no merge was requested
}

// inverse is a change to revert: from its result to the state before.
type inverse struct{ from, to *workspace.Entry }

// Changes reports whether the action changes the path.
func (a *Action) Changes() bool { return a.Kind == Restore || a.Kind == Create || a.Kind == Delete }

// Decide returns the action for each path, sorted by path. It depends only on its
// arguments. Actions whose content must be merged carry the parts; the caller merges
// them.
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
	mine, perhaps, unsure := 0, false, false
	for _, w := range p.Writes {
		switch {
		case rules.Mine(p.Path, w.Writer):
			mine++
		case rules.Perhaps != nil && rules.Perhaps(w.Writer):
			perhaps = true
		case rules.Unsure != nil && rules.Unsure(w.Writer):
			unsure = true
		}
	}
	a.own = mine > 0 || perhaps || unsure
	switch {
	case p.Excluded:
		a.left(WhyNotAsked, "not asked for")
		return a, true
	case p.NotCaptured != "":
		a.left(whyNotCaptured(p.NotCaptured), "not captured: "+string(p.NotCaptured))
		return a, true
	case p.NotCapturedThen != "" && p.Target == nil:
		a.left(whyNotCapturedThen(p.NotCapturedThen, p.PerhapsThen))
		a.inside = p.PerhapsThen
		return a, true
	case p.Impossible != "":
		a.left(WhyImpossible, p.Impossible)
		return a, true
	case rules.Exact:
		a.become(p.Target)
		_, a.Reason = whose(a.Writer, p)
		return a, true
	case mine == 0 && !perhaps:
		a.left(whose(a.Writer, p))
		return a, true
	case mine == len(p.Writes):
		a.become(p.Target)
		return a, !sameState(a.Before, a.After)
	}
	collide(&a, p, rules)
	return a, true
}

// collide decides about a path that both the conversation and another author wrote,
// or whose author is unknown.
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
	default:
		a.offer = inverses(p, rules)
	}
	a.Kind = Conflict
	a.left(why, reason)
}

// left records why the path stays unchanged.
func (a *Action) left(why Why, reason string) { a.Why, a.Reason = why, reason }

// brings reports whether the action may put something at a path where nothing is. A
// merge can do so only by reverting a removal: with nothing, no lines merge.
func (a *Action) brings() bool {
	if a.Before != nil {
		return false
	}
	now := a.After
	for _, inv := range a.undo {
		switch {
		case sameState(now, inv.from):
			now = inv.to
		case now == nil && inv.to != nil:
			return false
		}
	}
	return now != nil
}

// become makes the action lead to the given state.
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

// inverses lists the changes to revert, newest first.
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
