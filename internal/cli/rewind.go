package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/checkpoint"
)

type rewindFlags struct {
	files, conversation          bool
	keepMine, theirs             bool
	merge, markers, dryRun, sure bool
	exact, evenIfRunning, diff   bool
	plan                         string
	turn                         uint64
}

func (a *app) rewindCommand() *cobra.Command {
	var flags rewindFlags
	cmd := &cobra.Command{
		Use:     "rewind [REF] [-- PATH…]",
		Short:   "Go back to any point: files, conversation, or both",
		GroupID: groupBack,
		Long: `Go back to a checkpoint. stet shows the plan first: which files it restores, creates,
deletes and leaves alone, and which files both you and the agent changed. If you agree,
it saves the current state and carries out the plan, all or nothing; 'stet undo' reverts
it. A rewind takes back only what the conversation wrote. It never touches .git, and it
deletes no file that the agent did not create. Rewound work stays reachable in the log.

Without REF, you pick from a list on a terminal. 'stet help diff' lists the forms of
REF. With PATHs, only these paths are rewound. --turn removes one turn from the middle
and keeps what came after it.

A file that you changed after the agent's last write is a conflict. --keep-mine keeps
it, --theirs takes the checkpoint's version, and --merge removes the agent's changes
from it line by line; --markers also writes conflict markers where lines collide. On a
terminal you are asked; with -y a conflict that needs a choice ends the rewind with exit
code 4, and nothing is changed. Exit code 5 means that the rewind failed half-way and
everything was rolled back.

--exact rewinds all changes, including yours, so that the files are exactly those of
the checkpoint. It keeps only what no checkpoint could capture, such as ignored files
that were never captured. Without --exact, a rewind that leaves a difference from the
checkpoint says "partial" and names it.

If an agent or a 'stet run' is at work in the workspace, you are asked first. Without a
terminal, nothing is changed and the exit code is 7, unless --even-if-running is given.

An imported checkpoint, such as i3, has only some of the files, and a rewind to it changes
only these, in the directory of its conversation or in the one that -C names.

--dry-run prints the plan and changes nothing; --diff also shows how files change,
including by a merge. Pass the plan's token to --plan to carry out exactly this plan. A
plan for more than 100 files is summed up by directory; --full lists all.`,
		Example: `  stet rewind c5
  stet rewind before:turn:6 --files -- src/
  stet rewind c5 --dry-run --json | jq -r .plan_token`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeRefs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			refs, paths, err := splitArgs(cmd, args, 1)
			if err != nil {
				return err
			}
			return a.withPlace(cmd.Context(), false, func(p *place) error {
				return a.rewind(cmd.Context(), p, refs, paths, flags)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.files, "files", false, "rewind only the files")
	// Here --conversation selects what to rewind; -c still selects whose work.
	f.BoolVar(&flags.conversation, "conversation", false, "rewind only the conversation")
	f.StringVarP(&a.conversation, "of", "c", "", "conversation whose work is rewound (id or unique prefix)")
	_ = cmd.RegisterFlagCompletionFunc("of", a.completeConversationFlag) // fails for unknown flags only
	f.BoolVar(&flags.exact, "exact", false, "make the files exactly those of the checkpoint; your changes are rewound, too")
	f.BoolVar(&flags.dryRun, "dry-run", false, "show the plan, change nothing")
	f.BoolVar(&flags.diff, "diff", false, "with --dry-run, also show how files change")
	f.StringVar(&flags.plan, "plan", "", "carry out exactly the plan with this token, without asking")
	f.BoolVarP(&flags.sure, "yes", "y", false, "do not ask")
	f.Uint64Var(&flags.turn, "turn", 0, "rewind only this turn, and keep what came after it")
	choiceFlags(cmd, &flags, "use the checkpoint's version of files that you changed since", "remove only the agent's lines from files that you changed since")
	evenIfRunningFlag(cmd, &flags.evenIfRunning)
	a.rereadFlag(cmd)
	a.fullFlag(cmd)
	exclude(cmd, "files", "conversation")
	exclude(cmd, "turn", "conversation")
	for _, other := range []string{"conversation", "turn", "keep-mine", "theirs", "merge", "markers"} {
		exclude(cmd, "exact", other)
	}
	return cmd
}

// choiceFlags adds the flags for conflicts. theirs and merge say what those two do in the
// command.
func choiceFlags(cmd *cobra.Command, flags *rewindFlags, theirs, merge string) {
	f := cmd.Flags()
	f.BoolVar(&flags.keepMine, "keep-mine", false, "keep files that you changed since")
	f.BoolVar(&flags.theirs, "theirs", false, theirs)
	f.BoolVar(&flags.merge, "merge", false, merge)
	f.BoolVar(&flags.markers, "markers", false, "like --merge, and write conflict markers where lines collide")
	exclude(cmd, "keep-mine", "theirs", "merge", "markers")
}

func (flags rewindFlags) choice() checkpoint.Choice {
	switch {
	case flags.keepMine:
		return checkpoint.KeepMine
	case flags.theirs:
		return checkpoint.Theirs
	case flags.merge:
		return checkpoint.Merge
	case flags.markers:
		return checkpoint.MergeMarkers
	}
	return ""
}

func (a *app) rewind(ctx context.Context, p *place, refs, paths []string, flags rewindFlags) error {
	req, err := a.rewindRequest(ctx, p, refs, paths, flags)
	if err != nil {
		return err
	}
	return a.rewindBy(ctx, p, req, flags)
}

// rewindBy shows the plan of a request and carries it out if the user agrees.
func (a *app) rewindBy(ctx context.Context, p *place, req checkpoint.RewindRequest, flags rewindFlags) error {
	steps := a.counter("rewinding")
	req.Progress = steps.of
	if flags.dryRun {
		return p.withLook(ctx, func(l look) error {
			plan, err := l.space.Plan(ctx, req)
			if err != nil {
				return p.explainElsewhere(ctx, req, err)
			}
			if err := a.printPlan(ctx, p, plan); err != nil {
				return err
			}
			if flags.diff && !a.json {
				text, err := a.planDiff(ctx, l.blobs, plan)
				if err != nil {
					return err
				}
				fmt.Fprint(a.out, text)
			}
			if flags.sure && len(plan.Unchosen()) > 0 {
				return silentExit{ExitConflict} // as without --dry-run
			}
			return nil
		})
	}
	atOnce, err := a.asksNothing(ctx, p, flags)
	if err != nil {
		return err
	}
	if atOnce {
		return a.rewindAtOnce(ctx, p, req, flags, steps)
	}
	plan, err := p.space.Plan(ctx, req)
	if err != nil {
		return p.explainElsewhere(ctx, req, err)
	}
	if plan, err = a.consent(ctx, p, plan, req, flags); err != nil {
		return err
	}
	if !plan.DoesAnything() {
		return a.nothingDone(plan)
	}
	done, err := p.space.Rewind(ctx, plan.Request(), plan.Token)
	steps.done()
	if err != nil {
		return err
	}
	a.tellLeftovers(done)
	return a.printApplied(done, "undo", a.carryOn(ctx, p, done))
}

// asksNothing reports whether a rewind can be carried out without a question.
func (a *app) asksNothing(ctx context.Context, p *place, flags rewindFlags) (bool, error) {
	if !flags.sure && flags.plan == "" {
		return false, nil
	}
	if !isTerminal(a.in) || a.json || flags.evenIfRunning {
		return true, nil
	}
	open, err := p.space.AtWork(ctx)
	return len(open.Running()) == 0, err
}

// rewindAtOnce plans and carries out in one call, which looks at the files once. It refuses
// what rewindBy refuses, before anything is changed.
func (a *app) rewindAtOnce(ctx context.Context, p *place, req checkpoint.RewindRequest, flags rewindFlags, steps *counter) error {
	var plan *checkpoint.Plan
	var refused error
	req.Agree = func(ctx context.Context, now *checkpoint.Plan) error {
		plan = now
		if !a.quiet && !a.json { // it is shown
			if refused = p.space.CountLines(ctx, plan); refused != nil {
				return refused
			}
		}
		if _, refused = a.consent(ctx, p, plan, req, flags); refused == nil && !plan.DoesAnything() {
			refused = checkpoint.ErrNothing
		}
		return refused
	}
	done, err := p.space.Rewind(ctx, req, "")
	steps.done()
	switch {
	case errors.Is(refused, checkpoint.ErrNothing):
		return a.nothingDone(plan)
	case refused != nil:
		return refused
	case err != nil:
		return p.explainElsewhere(ctx, req, err)
	}
	a.tellLeftovers(done)
	return a.printApplied(done, "undo", a.carryOn(ctx, p, done))
}

// nothingDone reports a plan that changes nothing.
func (a *app) nothingDone(plan *checkpoint.Plan) error {
	a.say("%s", nothingText(plan))
	return a.printApplied(&checkpoint.Applied{Plan: plan}, "", nil)
}

// consent refuses a plan that is not the one asked for, and one under an agent at work. It
// shows and returns the plan that was agreed to.
func (a *app) consent(ctx context.Context, p *place, plan *checkpoint.Plan, req checkpoint.RewindRequest, flags rewindFlags) (*checkpoint.Plan, error) {
	if flags.plan != "" && flags.plan != plan.Token {
		return nil, fmt.Errorf("%w: the workspace or the request has changed since", checkpoint.ErrStalePlan)
	}
	if plan.DoesAnything() || len(plan.Unchosen()) > 0 {
		if err := a.notUnder(ctx, plan.AtWork, "Rewind", flags.evenIfRunning); err != nil {
			return nil, err
		}
	}
	return a.agree(ctx, p, plan, req, flags)
}

func (a *app) rewindRequest(ctx context.Context, p *place, refs, paths []string, flags rewindFlags) (checkpoint.RewindRequest, error) {
	req := checkpoint.RewindRequest{OnlyTurn: flags.turn, Choice: flags.choice(), Exact: flags.exact, Author: author()}
	req.Elsewhere = a.workspace != "" // -C says where the files of an imported checkpoint are
	var err error
	if req.Conversation, err = a.known(ctx, p); err != nil {
		return req, err
	}
	if req.Paths, err = p.inside(paths); err != nil {
		return req, err
	}
	req.Scope = checkpoint.ScopeOf(flags.files, flags.conversation, paths)
	if flags.conversation && len(paths) > 0 {
		return req, usage(errors.New("a conversation has no paths: omit --conversation or the paths"))
	}
	switch {
	case len(refs) == 1 && flags.turn != 0:
		return req, usage(errors.New("pass either REF or --turn"))
	case len(refs) == 1:
		req.To = refs[0]
	case flags.turn == 0:
		req.To, err = a.pick(ctx, p)
	}
	return req, err
}

// agree shows the plan and asks, about conflicts first. It returns the plan that
// was agreed to.
func (a *app) agree(ctx context.Context, p *place, plan *checkpoint.Plan, req checkpoint.RewindRequest, flags rewindFlags) (*checkpoint.Plan, error) {
	ask := isTerminal(a.in) && !a.json && !flags.sure && flags.plan == ""
	if !a.quiet && !a.json {
		fmt.Fprint(a.err, a.planText(ctx, p, plan, a.err))
	}
	if conflicts := plan.Unchosen(); len(conflicts) > 0 {
		if !ask {
			if !flags.sure && flags.plan == "" {
				return nil, a.confirm(false, "Rewind?")
			}
			err := &checkpoint.ConflictError{Paths: conflicts, Plan: plan}
			return nil, coded(ExitConflict, "%w; nothing was changed; pass %s", err, wayOut(err))
		}
		var err error
		if plan, err = a.resolve(ctx, p, plan, req); err != nil {
			return nil, err
		}
	}
	if !plan.DoesAnything() {
		return plan, nil
	}
	if !ask {
		return plan, a.agreed(ctx, flags.sure || flags.plan != "", question(plan))
	}
	return plan, a.agreedTo(ctx, p, plan)
}

// resolve asks about the conflicts of a plan until all have an answer that can be carried
// out, and shows the plan with these answers.
func (a *app) resolve(ctx context.Context, p *place, plan *checkpoint.Plan, req checkpoint.RewindRequest) (*checkpoint.Plan, error) {
	req.Choices = make(map[string]checkpoint.Choice)
	for len(plan.Unchosen()) > 0 {
		if err := a.chooseAll(ctx, plan, req.Choices); err != nil {
			return nil, err
		}
		var err error
		if plan, err = p.space.Plan(ctx, req); err != nil {
			return nil, err
		}
	}
	fmt.Fprint(a.err, a.planText(ctx, p, plan, a.err))
	return plan, nil
}

// agreedTo asks whether to carry out a plan, and shows how it changes files if that is
// asked for.
func (a *app) agreedTo(ctx context.Context, p *place, plan *checkpoint.Plan) error {
	for {
		answer, err := a.readLine(ctx, question(plan)+" [Y/n] (d shows the diff) ")
		switch {
		case err != nil:
			return err
		case answer == "" || answer == "y" || answer == "yes":
			return nil
		case answer != "d" && answer != "diff":
			return coded(ExitUsage, "nothing was changed")
		}
		text, err := a.planDiff(ctx, p.db.Blobs(), plan)
		if err != nil {
			return err
		}
		fmt.Fprint(a.err, text)
	}
}

func question(plan *checkpoint.Plan) string {
	what := plural(int64(plan.Changes()), "file")
	switch {
	case plan.Moves() && plan.Changes() == 0:
		what = "the conversation"
	case plan.Moves():
		what += " and the conversation"
	}
	if plan.Adopts() != "" {
		return "Adopt " + what + "?"
	}
	return "Rewind " + what + "?"
}

// tellLeftovers reports problems that are not errors.
func (a *app) tellLeftovers(done *checkpoint.Applied) {
	a.tellRecovery(done.Recovered)
	a.tellCleanup(done.CleanupError)
	if len(done.NoSetgid) > 0 {
		a.warn("restored without the set-group-id bit, because you are not in their group: %s", few(done.NoSetgid, 10))
	}
	if len(done.Uncovered) > 0 {
		a.warn("no longer ignored, never captured, and so left alone: %s", few(done.Uncovered, 10))
	}
	if done.IndexError != nil {
		a.warn("the next checkpoint will take longer: %v", done.IndexError)
	}
}
