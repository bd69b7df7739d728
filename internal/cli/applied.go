package cli

import (
	"fmt"
	"slices"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/workspace"
)

type appliedJSON struct {
	Schema    string     `json:"schema"`
	Operation string     `json:"operation"`
	Saved     string     `json:"saved"`
	Record    string     `json:"checkpoint"`
	Files     int        `json:"files"`
	Conflicts []string   `json:"conflicts"`
	Partial   bool       `json:"partial"`
	Left      []leftJSON `json:"left"`
	// Stays says why the conversation stays although the files go back.
	Stays string `json:"conversation_stays,omitempty"`
	// AtWork are the turns that were going on in the workspace.
	AtWork []checkpoint.TurnJSON `json:"at_work,omitempty"`
	// CarryOn is how the agent's own conversation continues.
	CarryOn *continuationJSON `json:"carry_on,omitempty"`
}

// leftJSON is a path that differs from the checkpoint and was left unchanged.
type leftJSON struct {
	Path      string                `json:"path"`
	PathBytes []byte                `json:"path_bytes,omitempty"`
	Action    checkpoint.ActionKind `json:"action"`
	Why       checkpoint.Why        `json:"why"`
	Reason    string                `json:"reason"`
}

func newAppliedJSON(done *checkpoint.Applied) appliedJSON {
	left := done.Plan.Left()
	value := appliedJSON{
		Schema: "stet.rewind.v1", Files: done.Files, Conflicts: append([]string{}, done.Plan.Conflicts()...),
		Partial: len(left) > 0, Left: make([]leftJSON, len(left)), AtWork: done.Plan.AtWork.JSON(),
		Stays: done.Plan.Stays(),
	}
	for i, act := range left {
		value.Left[i] = leftJSON{act.Path, workspace.PathBytes(act.Path), act.Kind, act.Why, act.Reason}
	}
	if done.Operation != nil {
		value.Operation, value.Saved, value.Record = done.Operation.ID(), done.Saved.ID, done.Record.ID
	}
	return value
}

// printApplied prints what was done, and the verb that undoes it.
func (a *app) printApplied(done *checkpoint.Applied, back string, on *foreign.Continuation) error {
	value := newAppliedJSON(done)
	value.CarryOn = newContinuationJSON(on)
	if done.Operation == nil || a.quiet && !value.Partial {
		return a.print(value, "")
	}
	head := a.paint().green("ok")
	if value.Partial {
		head = a.paint().yellow("partial")
	}
	text := fmt.Sprintf("%s  saved the current state as %s", head, done.Saved.Name())
	if done.Files > 0 {
		text += fmt.Sprintf(" · %d/%s verified", done.Files, plural(int64(done.Files), "file"))
	}
	if value.Partial {
		text += " · left unchanged: " + done.Plan.LeftWords()
	}
	text += " · " + back + ": stet " + back + "\n"
	if on != nil {
		text += "carry on: " + commandText(on) + "\n"
	}
	return a.print(value, text)
}

// nothingText reports that a plan changes nothing, and what still differs.
func nothingText(plan *checkpoint.Plan) string {
	if !plan.Partial() {
		return "nothing to do"
	}
	text := "nothing to do: remaining differences are left unchanged (" + plan.LeftWords() + ")"
	if !plan.Exact() && plan.OnlyTurn() == 0 && slices.ContainsFunc(plan.Left(), exactChanges) {
		text += "; --exact restores all files to the checkpoint"
	}
	return text
}

// exactChanges reports whether --exact changes a path that a plan leaves: it asks neither
// who changed the path nor which rules hide it, but cannot bring back what no checkpoint has.
func exactChanges(left checkpoint.Action) bool {
	switch left.Why {
	case checkpoint.WhyYours, checkpoint.WhyConversation, checkpoint.WhySeveral, checkpoint.WhyUnknown,
		checkpoint.WhyIgnored, checkpoint.WhyExcluded, checkpoint.WhySecret:
		return true
	}
	return left.Kind == checkpoint.Conflict
}
