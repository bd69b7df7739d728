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
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/workspace"
)

// printPlan prints a plan for --dry-run.
func (a *app) printPlan(ctx context.Context, p *place, plan *checkpoint.Plan) error {
	if a.json {
		return a.printJSON(plan)
	}
	_, err := fmt.Fprintf(a.out, "%sPlan  %s\n", a.planText(ctx, p, plan, a.out), plan.Token)
	return err
}

// planText formats a plan as text for a stream.
func (a *app) planText(ctx context.Context, p *place, plan *checkpoint.Plan, to any) string {
	var text strings.Builder
	text.WriteString(a.planTarget(ctx, p.db, plan, to))
	if plan.Exact() {
		text.WriteString("Exact  reverts all changes, including yours; ignored files that were never captured stay\n")
	}
	text.WriteString(a.planChanges(plan, to))
	text.WriteString(planLeft(p, plan))
	if bad := notIgnored(plan.NotCaptured); len(bad) > 0 {
		fmt.Fprintf(&text, "Not captured  %s\n", skippedText(bad, 5))
	}
	if lacks := notKeptText(&plan.NotKept); lacks != "" {
		fmt.Fprintf(&text, "Not kept  %s: an undo does not restore that\n", lacks)
	}
	for _, lost := range plan.Lost {
		fmt.Fprintf(&text, "Lost  %s\n", printable(lost))
	}
	for i := range plan.AtWork {
		fmt.Fprintf(&text, "At work  %s: may change files again\n", a.atWorkText(&plan.AtWork[i]))
	}
	for _, o := range a.idleAgents(p.space.Path(), plan.AtWork) {
		fmt.Fprintf(&text, "Open     %s%s\n", idleText(o), idleMeaning(o, plan))
	}
	turns := timeline.New(p.service, p.db.Conversations())
	if effect := plan.Effect(func(root blob.ID) (int, error) { return turns.Turns(ctx, root) }); effect != "" {
		fmt.Fprintf(&text, "Conversation  %s\n", effect)
	}
	return text.String()
}

func (a *app) planTarget(ctx context.Context, db *stet.DB, plan *checkpoint.Plan, to any) string {
	rec := plan.Target
	switch {
	case plan.Adopts() != "":
		return adoptTarget(ctx, db, plan)
	case rec == nil:
		return turnOut(ctx, db, plan)
	}
	where, next := describe(rec), ""
	turns := timeline.New(db.Checkpoints(), db.Conversations())
	if turn, err := turns.Turn(ctx, rec); err == nil && turn.Text() != "" {
		where += fmt.Sprintf(" %q", clip(turn.Text(), 60))
	}
	if rec.Side == checkpoint.After && rec.Turn > 0 {
		if turn, err := turns.TurnAt(ctx, plan.RootBefore, rec.Turn+1); err == nil && turn.Text() != "" {
			next = fmt.Sprintf("before turn %d %q", rec.Turn+1, clip(turn.Text(), 60))
		}
	}
	name, at, below := rec.Name(), when(rec.Time, now()), ""
	room, _ := terminalSize(to) // 0 if it is not a terminal
	left := room - columns("To    "+name+"  "+at+"  ")
	switch {
	case next == "":
	case room == 0 || columns(where+next)+3 <= left:
		where += " (" + next + ")"
	default:
		below = "      " + cut(next, max(20, room-6)) + "\n"
	}
	if room > 0 {
		where = cut(where, max(20, left))
	}
	return strings.TrimRight(fmt.Sprintf("To    %s  %s  %s", a.paint().yellow(name), at, where), " ") + "\n" + below
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
func (a *app) planChanges(plan *checkpoint.Plan, to any) string {
	p := a.paint()
	width := 0
	for i := range plan.Actions {
		if plan.Actions[i].Kind != checkpoint.Keep {
			width = max(width, columns(printable(plan.Actions[i].Path))+1)
		}
	}
	width = min(width, 50)
	room, _ := terminalSize(to) // 0 if it is not a terminal
	if room > 0 {
		width = min(width, max(12, room-34))
	}
	note := func(text string, at int) string {
		if text = printable(text); room > 0 {
			return cut(text, max(8, room-at))
		}
		return text
	}
	var changes, conflicts strings.Builder
	for i := range plan.Actions {
		act := &plan.Actions[i]
		path := printable(pathText(act))
		if room > 0 {
			path = cutFront(path, width)
		}
		path = pad(path, width)
		switch {
		case act.Kind == checkpoint.Conflict:
			fmt.Fprintf(&conflicts, "  %s         %s  %s\n", p.bold(p.red("!")), path, note(act.About()+": "+act.Fate(), width+14))
		case act.Changes():
			line := fmt.Sprintf("  %s  %s  %s  %s", a.planVerb(act.Kind), path, pad(linesText(act), 10), p.dim(note(act.About(), width+26)))
			changes.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	listed := changes.String()
	if stats := planStats(plan); a.folds(len(stats)) {
		listed = a.foldedText(stats, "  ", 8, to)
	}
	if conflicts.Len() > 0 {
		return listed + "Conflict\n" + conflicts.String()
	}
	return listed
}

// planVerb is what a plan does with a path.
func (a *app) planVerb(kind checkpoint.ActionKind) string {
	p, verb := a.paint(), pad(string(kind), 8)
	switch kind {
	case checkpoint.Delete:
		return p.red(verb)
	case checkpoint.Create:
		return p.green(verb)
	}
	return p.cyan(verb)
}

// planStats lists the files that a plan changes, without directories.
func planStats(plan *checkpoint.Plan) []linediff.Stat {
	var stats []linediff.Stat
	for i := range plan.Actions {
		if act := &plan.Actions[i]; act.Changes() && !strings.HasSuffix(pathText(act), "/") {
			stats = append(stats, linediff.Stat{Path: act.Path, Op: string(act.Kind), Added: act.Add, Removed: act.Del, Note: act.About()})
		}
	}
	return stats
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

// planDiff shows how a plan changes files.
func (a *app) planDiff(ctx context.Context, store blob.Store, plan *checkpoint.Plan) (string, error) {
	var text strings.Builder
	for i := range plan.Actions {
		act := &plan.Actions[i]
		if !act.Changes() || strings.HasSuffix(pathText(act), "/") {
			continue
		}
		file, err := fileDiff(ctx, store, workspace.Change{Path: act.Path, Before: act.Before, After: act.After})
		if err != nil {
			return "", err
		}
		text.WriteString(a.fileText(file))
	}
	return text.String(), nil
}
