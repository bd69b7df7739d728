package checkpoint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/workspace"
)

// A plan provides the words that describe it to people, so all front ends show the
// same ones. Order, layout and colour are left to them.

// ScopeOf returns the scope of a request for the files, the conversation or both. If
// neither is set, a request for some paths moves files only: paths are not a place in
// a conversation.
func ScopeOf(files, conversation bool, paths []string) Scope {
	switch {
	case files && conversation:
		return Both
	case conversation:
		return ConversationOnly
	case files || len(paths) > 0:
		return FilesOnly
	}
	return ""
}

// Place says where in its conversation the checkpoint was taken, such as "after turn 5",
// or "" if it is at no turn.
func (r *Record) Place() string {
	if r.Turn == 0 {
		return ""
	}
	word := "turn"
	switch r.Side {
	case Before:
		word = "before turn"
	case After:
		word = "after turn"
	}
	return fmt.Sprintf("%s %d", word, r.Turn)
}

// Found says whose changes the checkpoint before a turn found, such as "found changed by
// you", or "" for another checkpoint and for one that found nothing.
func (r *Record) Found() string {
	if r.Side != Before || r.FilesChanged == 0 || r.Parent == "" || r.Kind == Import {
		return ""
	}
	switch r.Writer().Class {
	case ByUser:
		return "found changed by you"
	case ByUserOrLost:
		return "found changed after an interrupted turn"
	case ByConversation:
		return "found changed by a turn at work"
	case BySeveral:
		return "found changed while several turns were at work"
	}
	return "found changed"
}

// Moves reports whether the plan moves the conversation.
func (p *Plan) Moves() bool { return !p.RootAfter.IsZero() && p.RootAfter != p.RootBefore }

// DoesAnything reports whether the plan changes files or moves the conversation.
func (p *Plan) DoesAnything() bool { return p.Changes() > 0 || p.Moves() }

// Unchosen lists the conflicts for which no choice was made, or for which the choice
// cannot be carried out.
func (p *Plan) Unchosen() []string {
	return slices.DeleteFunc(p.Conflicts(), p.request.keeps)
}

// About says whose change an action reverts, or why it leaves the path as it is.
func (a *Action) About() string {
	switch {
	case a.Why == WhyMasked:
		return a.Reason
	case a.Kind == Conflict:
		return a.conflict()
	case a.Kind == Keep:
		if words := keptWords[a.keptFor()]; words != "" {
			return words
		}
		return a.Reason
	}
	verb := "changed"
	switch a.Kind {
	case Delete:
		verb = "created"
	case Create:
		verb = "removed"
	}
	switch w := a.Writer; {
	case w == nil || w.Class != ByConversation:
		return a.Reason
	case w.Rewind:
		return verb + " by a rewind"
	case w.Turn > 0:
		return fmt.Sprintf("%s in turn %d", verb, w.Turn)
	}
	return a.Reason
}

// Fate says what happens to a path in conflict.
func (a *Action) Fate() string {
	if a.NoMerge != "" && !a.Why.blocked() {
		return "kept; cannot be merged, because " + a.NoMerge
	}
	return "kept"
}

func (a *Action) conflict() string {
	switch w := a.Writer; {
	case w == nil || a.Why.blocked():
	case w.Class == ByUser:
		return "you changed it after the agent's last write"
	case w.Class == ByConversation && w.Rewind:
		return "changed since by a rewind"
	case w.Class == ByConversation && w.Turn > 0:
		return fmt.Sprintf("changed since in turn %d of %s", w.Turn, cmp.Or(a.writerName, w.Conversation))
	}
	return a.Reason
}

// whyRemoved is WhyYours for a path that the user removed.
const whyRemoved Why = "removed"

// whyNoTurn is WhySeveral where a single turn is reverted: naming the file does not help.
const whyNoTurn Why = "no-turn"

// whyInside is WhyNotCapturedThen for a path that may not have existed then.
const whyInside Why = "inside"

// keptFor returns why a path is kept. A merge that leaves only the user's lines has no
// reason.
func (a *Action) keptFor() Why {
	switch {
	case a.Why == "":
		return WhyYours
	case a.Why == WhyYours && a.After == nil:
		return whyRemoved
	case a.Why == WhySeveral && a.own:
		return whyNoTurn
	case a.Why == WhyNotCapturedThen && a.inside:
		return whyInside
	}
	return a.Why
}

// keptOrder is the order in which plans name what they leave alone, and keptWords says
// why.
var (
	keptOrder = []Why{
		whyRemoved, WhyYours, WhyConversation, WhySeveral, whyNoTurn, WhyUnknown, WhyIgnored, WhyExcluded, WhySecret, WhyRepository, WhySpecial, WhyNotCaptured,
		WhyNotCapturedThen, whyInside, WhyPurged, WhyHolds, WhyInTheWay, WhyImpossible, WhyMasked, WhyNotAsked,
	}
	keptWords = map[Why]string{
		whyRemoved:         "removed by you",
		WhyYours:           "yours",
		WhyConversation:    "of other conversations",
		WhySeveral:         "author unknown, several conversations were active; name the file to include it",
		whyNoTurn:          "author unknown, several conversations were active",
		WhyUnknown:         "author unknown",
		WhyIgnored:         "ignored",
		WhyExcluded:        "excluded",
		WhySecret:          "secrets file",
		WhyRepository:      "git repository, lost",
		WhySpecial:         "special file",
		WhyNotCaptured:     "cannot be captured",
		WhyNotCapturedThen: "there then, but not captured",
		whyInside:          "in a directory that was not captured then",
		WhyPurged:          "purged from the store",
		WhyHolds:           "holds what stays",
		WhyInTheWay:        "something else is in its place",
		WhyImpossible:      "not possible on this system",
		WhyMasked:          "without set-id and sticky bits, which came from another store",
		WhyNotAsked:        "not asked for",
	}
)

// Kept is what a plan leaves alone for one reason.
type Kept struct {
	Words string
	Paths []string
}

// Kept groups what the plan leaves alone. It includes paths that are restored without
// their special bits.
func (p *Plan) Kept() []Kept {
	paths := make(map[Why][]string)
	for i := range p.Actions {
		if a := &p.Actions[i]; a.Kind == Keep || a.Why == WhyMasked {
			paths[a.keptFor()] = append(paths[a.keptFor()], a.Path)
		}
	}
	var out []Kept
	for _, why := range keptOrder {
		if len(paths[why]) > 0 {
			out = append(out, Kept{Words: keptWords[why], Paths: paths[why]})
		}
	}
	return out
}

// countWords say, after a number, why paths are left as they are.
var countWords = map[Why]string{
	"":                 "of yours",
	WhyYours:           "of yours",
	WhyConversation:    "of other conversations",
	WhySeveral:         "of several conversations",
	WhyUnknown:         "of unknown authors",
	WhyIgnored:         "ignored",
	WhyExcluded:        "excluded",
	WhySecret:          "with secrets",
	WhyRepository:      "lost with its git history",
	WhySpecial:         "special",
	WhyNotCaptured:     "not captured",
	WhyNotCapturedThen: "not captured then",
	WhyPurged:          "purged",
	WhyNotAsked:        "not asked for",
	WhyHolds:           "holding what stays",
	WhyInTheWay:        "blocked",
	WhyImpossible:      "not possible here",
	WhyMasked:          "without bits from another store",
}

// LeftWords counts what the plan leaves as it is, such as "2 of yours, 1 ignored".
// Directories count only if there is nothing else.
func (p *Plan) LeftWords() string {
	count, dirs := map[string]int{}, map[string]int{}
	for _, a := range p.Left() {
		word := countWords[a.Why]
		if a.Kind == Conflict {
			word = "in conflict"
		}
		if e := a.After; e != nil && e.Kind == workspace.Dir {
			dirs[word]++
			continue
		}
		count[word]++
	}
	if len(count) == 0 {
		count = dirs
	}
	var parts []string
	for _, word := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d %s", count[word], word))
	}
	return strings.Join(parts, ", ")
}

// Stays says why the conversation stays although the files go back, or "".
func (p *Plan) Stays() string { return p.stays }

// Effect says what happens to the conversation, or why it stays although the files go
// back; "" if it was not supposed to move. turns counts the turns of a state; a state
// that cannot be read can still be left.
func (p *Plan) Effect(turns func(root blob.ID) (int, error)) string {
	if !p.Moves() {
		return p.stays
	}
	then, err := 0, error(nil)
	if p.RootAfter != conversation.EmptyRoot() { // the rewind stores it
		then, err = turns(p.RootAfter)
	}
	if err != nil {
		return "goes to another state; what came since stays as a branch"
	}
	next := fmt.Sprintf("continues after turn %d", then)
	if then == 0 {
		next = "starts over"
	}
	now, err := turns(p.RootBefore)
	switch {
	case err != nil || now <= then:
		return next + "; what came since stays as a branch"
	case now == then+1:
		return fmt.Sprintf("%s; turn %d stays as a branch", next, now)
	}
	return fmt.Sprintf("%s; turns %d-%d stay as a branch", next, then+1, now)
}

// NextMoves finds, in a log that begins with the newest entry, the operation that the
// next undo of each workspace reverts, and the one that its next redo repeats.
func NextMoves(log []*Operation) (undo, redo map[uint64]bool) {
	undo, redo = make(map[uint64]bool), make(map[uint64]bool)
	for _, st := range stacksOf(log) {
		if n := len(st.undo); n > 0 {
			undo[st.undo[n-1].Seq] = true
		}
		if n := len(st.redo); n > 0 {
			redo[st.redo[n-1].Seq] = true
		}
	}
	return undo, redo
}
