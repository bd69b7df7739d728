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
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/workspace"
)

// printPlan prints a plan for --dry-run.
func (a *app) printPlan(ctx context.Context, p *place, plan *checkpoint.Plan) error {
	if a.json {
		return a.printJSON(plan)
	}
	_, err := fmt.Fprintf(a.out, "%sPlan  %s\n", a.planText(ctx, p, plan), plan.Token)
	return err
}

// planText formats a plan as text.
func (a *app) planText(ctx context.Context, p *place, plan *checkpoint.Plan) string {
	var text strings.Builder
	text.WriteString(a.planTarget(ctx, p.db, plan))
	if plan.Exact() {
		text.WriteString("Exact  reverts all changes, including yours; ignored files that were never captured stay\n")
	}
	text.WriteString(a.planChanges(plan))
	text.WriteString(planLeft(p, plan))
	if bad := notIgnored(plan.NotCaptured); len(bad) > 0 {
		fmt.Fprintf(&text, "Not captured  %s\n", skippedText(bad, 5))
	}
	if lacks := notKeptText(&plan.NotKept); lacks != "" {
		fmt.Fprintf(&text, "Not kept  %s: an undo does not bring that back\n", lacks)
	}
	for i := range plan.AtWork {
		fmt.Fprintf(&text, "At work  %s: may change files again\n", atWorkText(&plan.AtWork[i]))
	}
	for _, o := range a.idleAgents(p.space.Path(), plan.AtWork) {
		fmt.Fprintf(&text, "Open     %s: %s\n", idleText(o), idleMeaning(o))
	}
	turns := timeline.New(p.service, p.db.Conversations())
	if effect := plan.Effect(func(root blob.ID) (int, error) { return turns.Turns(ctx, root) }); effect != "" {
		fmt.Fprintf(&text, "Conversation  %s\n", effect)
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

// turnOut describes the turn that a plan removes.
func turnOut(ctx context.Context, db *stet.DB, plan *checkpoint.Plan) string {
	number, about := plan.OnlyTurn(), ""
	if root, err := db.Conversations().Head(ctx, plan.Conversation); err == nil {
		turns := timeline.New(db.Checkpoints(), db.Conversations())
		if turn, err := turns.TurnAt(ctx, root, number); err == nil && turn.Text() != "" {
			about = fmt.Sprintf(" %q", clip(turn.Text(), 60))
		}
	}
	return fmt.Sprintf("Out   turn %d%s; later changes stay\n", number, about)
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
			fmt.Fprintf(&conflicts, "  %s         %s  %s: kept\n", p.bold(p.red("!")), path, act.About())
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
			line := fmt.Sprintf("  %s  %s  %s  %s", verb, path, pad(linesText(act), 10), p.dim(printable(act.About())))
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

// planLeft summarizes what stays.
func planLeft(p *place, plan *checkpoint.Plan) string {
	var parts []string
	for _, kept := range plan.Kept() {
		parts = append(parts, few(kept.Paths, 4)+" ("+kept.Words+")")
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

// chooseAll asks how to resolve each conflict.
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
			return nil, coded(ExitUsage, "invalid answer %q, want k, c or m; nothing was changed", answer)
		}
	}
	return choices, nil
}
