package cli

import (
	"fmt"
	"strings"

	"github.com/stet-dev/stet/checkpoint"
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
}

// leftJSON is a path that differs from the checkpoint and was left as it is.
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
		Partial: len(left) > 0, Left: make([]leftJSON, len(left)),
	}
	for i, act := range left {
		value.Left[i] = leftJSON{act.Path, workspace.PathBytes(act.Path), act.Kind, act.Why, act.Reason}
	}
	if done.Operation != nil {
		value.Operation, value.Saved, value.Record = done.Operation.ID(), done.Saved.ID, done.Record.ID
	}
	return value
}

// printApplied tells what was done, and the verb that takes it back.
func (a *app) printApplied(done *checkpoint.Applied, back string) error {
	value := newAppliedJSON(done)
	if done.Operation == nil {
		return a.print(value, "")
	}
	head := a.paint().green("ok")
	if value.Partial {
		head = a.paint().yellow("partial")
	}
	text := fmt.Sprintf("%s  saved the present as %s", head, done.Saved.Name())
	if done.Files > 0 {
		text += fmt.Sprintf(" · %d/%s verified", done.Files, plural(int64(done.Files), "file"))
	}
	if value.Partial {
		text += " · left as they are: " + leftText(done.Plan)
	}
	return a.print(value, text+" · "+back+": stet "+back+"\n")
}

// nothingText says that a plan changes nothing, and what differs all the same.
func nothingText(plan *checkpoint.Plan) string {
	if !plan.Partial() {
		return "nothing to do"
	}
	text := "nothing to do: what differs is left as it is (" + leftText(plan) + ")"
	if !plan.Exact() && plan.OnlyTurn() == 0 {
		text += "; --exact takes the checkpoint's state of all files"
	}
	return text
}

// leftText counts what a plan leaves as it is, by whose it is. Directories count
// where there is nothing else.
func leftText(plan *checkpoint.Plan) string {
	count, dirs := map[string]int64{}, map[string]int64{}
	for _, act := range plan.Left() {
		word := leftWords[act.Why]
		if act.Kind == checkpoint.Conflict {
			word = "in conflict"
		}
		if e := act.After; e != nil && e.Kind == workspace.Dir {
			dirs[word]++
			continue
		}
		count[word]++
	}
	if len(count) == 0 {
		count = dirs
	}
	var parts []string
	for _, word := range sortedKeys(count) {
		parts = append(parts, fmt.Sprintf("%d %s", count[word], word))
	}
	return strings.Join(parts, ", ")
}

// leftWords say why something is left as it is.
var leftWords = map[checkpoint.Why]string{
	"":                            "of yours",
	checkpoint.WhyYours:           "of yours",
	checkpoint.WhyConversation:    "of other conversations",
	checkpoint.WhySeveral:         "of several conversations",
	checkpoint.WhyUnknown:         "of unknown authors",
	checkpoint.WhyIgnored:         "ignored",
	checkpoint.WhySpecial:         "special",
	checkpoint.WhyNotCaptured:     "not captured",
	checkpoint.WhyNotCapturedThen: "not captured then",
	checkpoint.WhyNotAsked:        "not asked for",
	checkpoint.WhyHolds:           "holding what stays",
	checkpoint.WhyInTheWay:        "blocked",
	checkpoint.WhyMasked:          "without bits from another store",
}
