package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/workspace"
)

// printPlan prints a plan as the answer of --dry-run.
func (a *app) printPlan(ctx context.Context, p *place, plan *checkpoint.Plan) error {
	if a.json {
		return a.printJSON(plan)
	}
	_, err := fmt.Fprintf(a.out, "%sPlan  %s\n", a.planText(ctx, p, plan), plan.Token)
	return err
}

// planText writes a plan for people.
func (a *app) planText(ctx context.Context, p *place, plan *checkpoint.Plan) string {
	var text strings.Builder
	text.WriteString(a.planTarget(ctx, p.db, plan))
	if plan.Exact() {
		text.WriteString("Exact  everybody's changes are taken back, yours too; ignored files that were never captured stay\n")
	}
	text.WriteString(a.planChanges(plan))
	text.WriteString(planLeft(p, plan))
	if bad := notIgnored(plan.NotCaptured); len(bad) > 0 {
		fmt.Fprintf(&text, "Not captured  %s\n", skippedText(bad, 5))
	}
	for i := range plan.AtWork {
		fmt.Fprintf(&text, "At work  %s: it may change files again\n", atWorkText(&plan.AtWork[i]))
	}
	if moves(plan) {
		fmt.Fprintf(&text, "Conversation  %s\n", conversationMove(ctx, p.db, plan))
	}
	return text.String()
}

func (a *app) planTarget(ctx context.Context, db *stet.DB, plan *checkpoint.Plan) string {
	rec := plan.Target
	if rec == nil {
		return turnOut(ctx, db, plan)
	}
	where := describe(rec)
	turns := timeline.New(db.Checkpoints(), db.Conversations())
	if turn, err := turns.Turn(ctx, rec); err == nil && turn.Text() != "" {
		where += fmt.Sprintf(" %q", clip(turn.Text(), 60))
	}
	if rec.Side == checkpoint.After && rec.Turn > 0 {
		if next, err := turns.TurnAt(ctx, plan.RootBefore, rec.Turn+1); err == nil && next.Text() != "" {
			where += fmt.Sprintf(" (before turn %d %q)", rec.Turn+1, clip(next.Text(), 60))
		}
	}
	return strings.TrimRight(fmt.Sprintf("To    %s  %s  %s", a.paint().yellow(rec.Name()), when(rec.Time, now()), where), " ") + "\n"
}

// turnOut says which turn a plan takes out.
func turnOut(ctx context.Context, db *stet.DB, plan *checkpoint.Plan) string {
	number, about := plan.OnlyTurn(), ""
	if root, err := db.Conversations().Head(ctx, plan.Conversation); err == nil {
		turns := timeline.New(db.Checkpoints(), db.Conversations())
		if turn, err := turns.TurnAt(ctx, root, number); err == nil && turn.Text() != "" {
			about = fmt.Sprintf(" %q", clip(turn.Text(), 60))
		}
	}
	return fmt.Sprintf("Out   turn %d%s; what came after it stays\n", number, about)
}

// planChanges lists what changes, and the conflicts.
func (a *app) planChanges(plan *checkpoint.Plan) string {
	p := a.paint()
	width := 0
	for i := range plan.Actions {
		if plan.Actions[i].Kind != checkpoint.Keep {
			width = max(width, columns(printable(plan.Actions[i].Path))+1)
		}
	}
	width = min(width, 50)
	var changes, conflicts strings.Builder
	for i := range plan.Actions {
		act := &plan.Actions[i]
		path := pad(printable(pathText(act)), width)
		switch {
		case act.Kind == checkpoint.Conflict:
			fmt.Fprintf(&conflicts, "  %s         %s  %s: kept\n", p.bold(p.red("!")), path, conflictReason(act))
		case act.Changes():
			verb := pad(string(act.Kind), 8)
			switch act.Kind {
			case checkpoint.Delete:
				verb = p.red(verb)
			case checkpoint.Create:
				verb = p.green(verb)
			default:
				verb = p.cyan(verb)
			}
			line := fmt.Sprintf("  %s  %s  %s  %s", verb, path, pad(linesText(act), 10), p.dim(writerText(act)))
			changes.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	if conflicts.Len() > 0 {
		return changes.String() + "Conflict\n" + conflicts.String()
	}
	return changes.String()
}

func pathText(act *checkpoint.Action) string {
	for _, e := range []*workspace.Entry{act.After, act.Before} {
		if e != nil {
			if e.Kind == workspace.Dir {
				return act.Path + "/"
			}
			return act.Path
		}
	}
	return act.Path
}

func linesText(act *checkpoint.Action) string {
	var parts []string
	if act.Add > 0 {
		parts = append(parts, fmt.Sprintf("+%d", act.Add))
	}
	if act.Del > 0 {
		parts = append(parts, fmt.Sprintf("-%d", act.Del))
	}
	if act.Merged {
		parts = append(parts, "merged")
	}
	return strings.Join(parts, " ")
}

// writerText says whose change is taken back.
func writerText(act *checkpoint.Action) string {
	w := act.Writer
	if w == nil || w.Class != checkpoint.ByConversation || w.Turn == 0 {
		return act.Reason
	}
	verb := "changed"
	switch act.Kind {
	case checkpoint.Delete:
		verb = "created"
	case checkpoint.Create:
		verb = "removed"
	}
	return fmt.Sprintf("%s in turn %d", verb, w.Turn)
}

func conflictReason(act *checkpoint.Action) string {
	if act.Writer != nil && act.Writer.Class == checkpoint.ByUser {
		return "you changed it after the agent's last write"
	}
	if w := act.Writer; w != nil && w.Class == checkpoint.ByConversation && w.Turn > 0 {
		return fmt.Sprintf("changed since in turn %d of %s", w.Turn, shorter(w.Conversation))
	}
	return act.Reason
}

// leftGroups are the words for what stays, in the order of the plan.
var leftGroups = []struct{ key, text string }{
	{"removed", "removed by you"},
	{string(checkpoint.WhyYours), "yours"},
	{string(checkpoint.WhyConversation), "of other conversations"},
	{string(checkpoint.WhySeveral), "several conversations were at work, nobody knows whose; '-- FILE' asks for one"},
	{string(checkpoint.WhyUnknown), "nobody knows who changed it"},
	{string(checkpoint.WhyIgnored), "ignored"},
	{string(checkpoint.WhySpecial), "special file"},
	{string(checkpoint.WhyNotCaptured), "cannot be captured"},
	{string(checkpoint.WhyNotCapturedThen), "there then, but not captured"},
	{string(checkpoint.WhyMasked), "without set-id and sticky bits, which came from another store"},
	{string(checkpoint.WhyHolds), "holds what stays"},
	{string(checkpoint.WhyNotAsked), "not asked for"},
}

// planLeft sums up what stays.
func planLeft(p *place, plan *checkpoint.Plan) string {
	groups := map[string][]string{}
	for i := range plan.Actions {
		act := &plan.Actions[i]
		if act.Kind != checkpoint.Keep && act.Why != checkpoint.WhyMasked {
			continue
		}
		key := string(act.Why)
		switch {
		case act.Why == "":
			key = string(checkpoint.WhyYours) // merged, and only the user's lines are left
		case act.Why == checkpoint.WhyYours && act.After == nil:
			key = "removed"
		}
		groups[key] = append(groups[key], act.Path)
	}
	var parts []string
	for _, g := range leftGroups {
		if paths := groups[g.key]; len(paths) > 0 {
			parts = append(parts, few(paths, 4)+" ("+g.text+")")
		}
	}
	if plan.Untouched > 0 {
		parts = append(parts, plural(int64(plan.Untouched), "other"))
	}
	if _, err := os.Lstat(filepath.Join(p.space.Path(), ".git")); err == nil {
		parts = append(parts, ".git")
	}
	if len(parts) == 0 {
		return ""
	}
	return "Left alone  " + strings.Join(parts, " · ") + "\n"
}

// conversationMove says where a conversation will continue.
func conversationMove(ctx context.Context, db *stet.DB, plan *checkpoint.Plan) string {
	after, err := turnsAt(ctx, db, plan.RootAfter)
	if err != nil {
		return "moves"
	}
	resume := fmt.Sprintf("resume continues after turn %d", after)
	if after == 0 {
		resume = "resume begins anew"
	}
	before, err := turnsAt(ctx, db, plan.RootBefore)
	if err != nil || before <= after {
		return "what came since stays as a branch; " + resume
	}
	if before == after+1 {
		return fmt.Sprintf("turn %d stays as a branch; %s", before, resume)
	}
	return fmt.Sprintf("turns %d-%d stay as a branch; %s", after+1, before, resume)
}

// turnsAt counts the turns of a state.
func turnsAt(ctx context.Context, db *stet.DB, root blob.ID) (int, error) {
	if root.IsZero() {
		return 0, nil
	}
	state, err := db.Conversations().HydrateRoot(ctx, root, &conversation.HydrateOptions{TurnTo: 1, OnlyTurns: true, WithoutHeavyToolOutput: true})
	if err != nil {
		return 0, err
	}
	return max(state.TotalTurns, len(state.Turns)), nil
}

// chooseAll asks what to do about each conflict.
func (a *app) chooseAll(ctx context.Context, paths []string) (map[string]checkpoint.Choice, error) {
	choices := make(map[string]checkpoint.Choice, len(paths))
	for _, path := range paths {
		answer, err := a.readLine(ctx, printable(path)+": [K]eep yours, take the [c]heckpoint's, [m]erge? ")
		if err != nil {
			return nil, err
		}
		switch answer {
		case "", "k", "keep":
			choices[path] = checkpoint.KeepMine
		case "c", "checkpoint", "t", "theirs":
			choices[path] = checkpoint.Theirs
		case "m", "merge":
			choices[path] = checkpoint.Merge
		default:
			return nil, coded(ExitUsage, "%q is none of k, c and m; nothing was changed", answer)
		}
	}
	return choices, nil
}
