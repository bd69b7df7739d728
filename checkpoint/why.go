package checkpoint

import (
	"strings"

	"github.com/stet-dev/stet/workspace"
)

// Why is the reason why a plan leaves a path unchanged although it differs from the
// target.
type Why string

// The reasons.
const (
	// WhyYours: the user changed it, by hand or between the turns of agents.
	WhyYours Why = "yours"
	// WhyConversation: another conversation changed it.
	WhyConversation Why = "conversation"
	// WhySeveral: one of several conversations changed it; it is unknown which.
	WhySeveral Why = "several"
	// WhyUnknown: it is unknown who changed it.
	WhyUnknown Why = "unknown"
	// WhyIgnored: an ignore rule leaves it out of the present.
	WhyIgnored Why = "ignored"
	// WhyExcluded: the settings exclude it.
	WhyExcluded Why = "excluded"
	// WhySecret: it usually holds secrets, and is captured only where an agent wrote it.
	WhySecret Why = "secret"
	// WhyRepository: it is a git repository that a turn deleted or replaced.
	WhyRepository Why = "repository"
	// WhySpecial: it is a pipe, a socket or a device.
	WhySpecial Why = "special"
	// WhyNotCaptured: the present leaves it out for another reason; see Reason.
	WhyNotCaptured Why = "not-captured"
	// WhyNotCapturedThen: it was not captured at the target, where it existed, or may have
	// existed because its directory was not captured.
	WhyNotCapturedThen Why = "not-captured-then"
	// WhyPurged: it existed at the target, and was removed from the store since.
	WhyPurged Why = "purged"
	// WhyNotAsked: the request is about other paths.
	WhyNotAsked Why = "not-asked"
	// WhyHolds: it is a directory in which something stays.
	WhyHolds Why = "holds"
	// WhyInTheWay: something else is where a directory would have to be.
	WhyInTheWay Why = "in-the-way"
	// WhyImpossible: this system or its file system cannot have it; see Reason.
	WhyImpossible Why = "impossible"
	// WhyMasked: the checkpoint came from another store, so its set-user-id,
	// set-group-id or sticky bits are not restored. The rest of the path may change.
	WhyMasked Why = "masked"
)

// author reports whether the reason is only who changed the path.
func (w Why) author() bool {
	return w == WhyYours || w == WhyConversation || w == WhySeveral || w == WhyUnknown
}

// blocked reports whether the reason is something else than the path, whoever changed it.
func (w Why) blocked() bool { return w == WhyHolds || w == WhyInTheWay }

func whyNotCaptured(r workspace.Reason) Why {
	switch r {
	case workspace.ReasonIgnored:
		return WhyIgnored
	case workspace.ReasonExcluded:
		return WhyExcluded
	case workspace.ReasonSecret:
		return WhySecret
	case workspace.ReasonSpecial:
		return WhySpecial
	}
	return WhyNotCaptured
}

func whyNotCapturedThen(r workspace.Reason, perhaps bool) (Why, string) {
	switch {
	case r == workspace.ReasonPurged:
		return WhyPurged, "purged from the store since"
	case perhaps:
		return WhyNotCapturedThen, "in a directory that was not captured then: " + string(r)
	}
	return WhyNotCapturedThen, "not captured then: " + string(r)
}

// whose returns who changed a path last.
func whose(w *Writer, p *PathState) (Why, string) {
	verb := "changed"
	switch {
	case p.Present == nil:
		verb = "removed"
	case p.Target == nil:
		verb = "created"
	}
	if w == nil {
		return WhyUnknown, "nobody known " + verb + " it"
	}
	switch w.Class {
	case ByConversation:
		return WhyConversation, verb + " by conversation " + w.Conversation
	case BySeveral:
		return WhySeveral, verb + " by one of the conversations " + strings.Join(w.Among, ", ")
	case ByHand:
		return WhyYours, "yours, saved in a checkpoint"
	case ByUser:
		return WhyYours, "yours, " + verb + " since"
	case ByUserOrLost:
		return WhyUnknown, verb + " after an interrupted turn, by it or by you"
	case ByForgotten:
		return WhyUnknown, verb + " between checkpoints that are no longer kept"
	case ByUnseen:
		return WhyUnknown, verb + " while it was not captured, nobody knows by whom"
	}
	return WhyUnknown, verb + ", nobody knows by whom"
}

// Left lists what the plan leaves as it is although it differs from the target, the
// conflicts that it does not resolve, and the paths that are restored without their
// special bits. A plan that reverts a single turn has no target: of the kept paths, only
// those count that the turn changed or may have changed.
func (p *Plan) Left() []Action {
	var left []Action
	for _, a := range p.Actions {
		if a.Kind == Conflict || a.Why == WhyMasked || a.Kind == Keep && (a.own || p.request.OnlyTurn == 0) {
			left = append(left, a)
		}
	}
	return left
}

// Partial reports whether something that differs from the target is left as it is.
func (p *Plan) Partial() bool { return len(p.Left()) > 0 }

// Exact reports whether exactly the target's files were requested.
func (p *Plan) Exact() bool { return p.request.Exact }
