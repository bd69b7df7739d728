package checkpoint

import (
	"cmp"
	"slices"
	"strings"
)

// Reconcile makes the actions of a plan consistent: no file without its directory, no
// directory removed while something in it stays. It works in place on the result of
// Decide for all paths that differ, and may add directories. Anything else in the
// place of a directory stays, unless the rules choose the target's state for what is
// restored in it. With Lift, what is kept only because others changed it is left out
// in the end: until then it shows which directories are held or missing.
func Reconcile(actions []Action, states []PathState, rules Rules) []Action {
	r := reconciler{rules: rules, byPath: make(map[string]int, len(actions)), states: make(map[string]*PathState, len(states))}
	for i := range states {
		r.states[states[i].Path] = &states[i]
	}
	r.actions = actions
	for i := range actions {
		r.byPath[actions[i].Path] = i
	}
	// Directories come before their content in path order, so one pass down and one
	// up are enough: demoting an action on the way down adds nothing, and on the way
	// up only keeps existing paths.
	for i := range len(actions) {
		r.parents(i)
	}
	slices.SortFunc(r.actions, func(a, b Action) int { return cmp.Compare(a.Path, b.Path) })
	r.stays()
	if rules.Lift {
		r.actions = slices.DeleteFunc(r.actions, func(a Action) bool { return a.Kind == Keep && !a.own && a.Why.author() })
	}
	return r.actions
}

type reconciler struct {
	rules   Rules
	actions []Action
	byPath  map[string]int
	states  map[string]*PathState
}

// parents ensures the directories above an action that makes an entry.
func (r *reconciler) parents(i int) {
	if !r.actions[i].brings() {
		return // where something is, its directory is too, and stays because of it
	}
	path := r.actions[i].Path
	for at := 0; ; at++ {
		n := strings.IndexByte(path[at:], '/')
		if n < 0 {
			return
		}
		at += n
		if !r.directory(path[:at], !r.rules.Lift && r.rules.Choice(path) == Theirs) {
			a := &r.actions[i] // the slice may have grown
			a.undo, a.Merged = nil, false
			a.After = a.Before
			r.blocked(a, !r.givesWay(path[:at]), WhyInTheWay, "something else is in the way at "+path[:at])
			return
		}
	}
}

// blocked leaves a path alone that should change and cannot. Stuck means that Theirs does
// not change that.
func (r *reconciler) blocked(a *Action, stuck bool, why Why, reason string) {
	a.Kind, a.stuck = Conflict, stuck && r.rules.Whole
	if !r.rules.Whole && !r.rules.Lift && (r.rules.Exact || r.rules.Choice(a.Path) == Theirs) {
		a.Kind = Keep
	}
	a.left(why, reason)
}

// givesWay reports whether what is at a path may be replaced by a directory of the
// target.
func (r *reconciler) givesWay(path string) bool {
	st := r.states[path]
	return st != nil && isDir(st.Target) && st.NotCaptured == "" && st.Impossible == ""
}

// directory makes a path a directory afterwards, if possible. With replace it may
// replace something else.
func (r *reconciler) directory(path string, replace bool) bool {
	if i, ok := r.byPath[path]; ok {
		a := &r.actions[i]
		if isDir(a.After) {
			return true
		}
		if a.Before != nil && !replace || !r.givesWay(path) {
			return false
		}
		a.become(r.states[path].Target)
		a.undo, a.Merged = nil, false
		a.Reason = "holds what comes back"
		return true
	}
	// A path without a difference is the same now as in the target, where it is a
	// directory with content.
	return true
}

// stays keeps directories in which something stays.
func (r *reconciler) stays() {
	held := map[string]string{} // directory that must stay → what holds it
	stuck := map[string]bool{}  // directories of which something stays even with Theirs
	for i := len(r.actions) - 1; i >= 0; i-- {
		a := &r.actions[i]
		why, busy := held[a.Path]
		if st := r.states[a.Path]; st != nil && st.Occupied {
			stuck[a.Path] = true
			if !busy {
				why, busy = "files that are not captured", true
			}
		}
		if busy && isDir(a.Before) && !isDir(a.After) {
			removed := a.After == nil
			a.After, a.undo = a.Before, nil
			if r.blocked(a, stuck[a.Path], WhyHolds, "holds "+why); removed {
				a.Kind = Keep
			}
		}
		if a.After != nil {
			dir, name := splitPath(a.Path)
			for ; dir != ""; dir, _ = splitPath(dir) {
				if _, ok := held[dir]; !ok {
					held[dir] = name
				}
				stuck[dir] = stuck[dir] || a.Kind != Conflict || a.stuck
			}
		}
	}
}

// splitPath splits a path into that of the directory that holds it, which is ""
// for the root, and its last name.
func splitPath(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}
