package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/attempt"
	"github.com/stet-dev/stet/workspace"
)

func (a *app) adoptCommand() *cobra.Command {
	var flags rewindFlags
	cmd := &cobra.Command{
		Use:     "adopt BRANCH [-- PATH…]",
		Short:   "Bring the files of a try into the workspace",
		GroupID: groupBack,
		Long: `Bring the changes of an attempt of 'stet try' into the workspace. It works like a rewind:
stet shows the plan first, saves the current state, and carries out the plan, all or
nothing; 'stet undo' reverts it. Only files that the attempt changed are touched; with
PATHs, only those at these paths.

A file that changed in the workspace since the attempt began is a conflict. --keep-mine
keeps it, --theirs takes the attempt's version, and --merge merges both changes line by
line; --markers also writes conflict markers where lines collide. --dry-run, --plan, -y and
the exit codes are as in 'stet rewind'. Other attempts are not changed.`,
		Example:           "  stet adopt try-x7k2m9-2\n  stet adopt try-x7k2m9-2 --dry-run --diff\n  stet adopt try-x7k2m9-2 -y -- src/",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeBranches,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, paths, err := splitArgs(cmd, args, 1)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				return usage(errors.New("BRANCH is missing"))
			}
			return a.withPlace(cmd.Context(), false, func(p *place) error {
				req, err := a.adoptRequest(cmd.Context(), p, names[0], paths, flags)
				if err != nil {
					return err
				}
				return a.rewindBy(cmd.Context(), p, req, flags)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.dryRun, "dry-run", false, "show the plan, change nothing")
	f.BoolVar(&flags.diff, "diff", false, "with --dry-run, also show how files change")
	f.StringVar(&flags.plan, "plan", "", "carry out exactly the plan with this token, without asking")
	f.BoolVarP(&flags.sure, "yes", "y", false, "do not ask")
	choiceFlags(cmd, &flags, "use the attempt's version of files that you changed since", "merge your changes and the attempt's line by line")
	evenIfRunningFlag(cmd, &flags.evenIfRunning)
	a.rereadFlag(cmd)
	a.fullFlag(cmd)
	return cmd
}

// adoptRequest describes how the files of a branch come into the workspace.
func (a *app) adoptRequest(ctx context.Context, p *place, name string, paths []string, flags rewindFlags) (checkpoint.RewindRequest, error) {
	req := checkpoint.RewindRequest{Choice: flags.choice(), Author: author()}
	id, err := conversationID(ctx, p.db, name)
	if err != nil {
		return req, err
	}
	one, err := attempt.Get(ctx, p.db.Conversations(), id)
	if err != nil {
		return req, err
	}
	if one.Workspace != conversation.WorkspaceName(p.space.Path()) {
		return req, coded(ExitUsage, "%s is a branch of %s", id, tilde(one.Workspace))
	}
	if !one.Ended {
		a.warn("%s is still running or was killed; using its last checkpoint", id)
	}
	base, last, err := attempt.Ends(ctx, p.service, id)
	if err != nil {
		return req, err
	}
	within, err := p.inside(paths)
	if err != nil {
		return req, err
	}
	changes, err := workspace.Diff(ctx, p.db.Blobs(), base.Tree, last.Tree)
	if err != nil {
		return req, err
	}
	req.Conversation = id
	req.Exchange = &checkpoint.Exchange{To: last.Tree, Last: base.Tree, Adopts: id}
	for _, c := range changes {
		if len(within) == 0 || isWithin(c.Path, within) {
			req.Exchange.Paths = append(req.Exchange.Paths, c.Path)
		}
	}
	for _, path := range within {
		if !touches(req.Exchange.Paths, path) {
			return req, coded(ExitNotFound, "%s did not change %s", id, path)
		}
	}
	return req, nil
}

// isWithin reports whether a path is one of several, or below one.
func isWithin(path string, above []string) bool {
	for _, p := range above {
		if p == "." || path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}

// touches reports whether one of several paths is at or below a path.
func touches(paths []string, path string) bool {
	for _, p := range paths {
		if isWithin(p, []string{path}) {
			return true
		}
	}
	return false
}

// adoptTarget describes the branch of a plan.
func adoptTarget(ctx context.Context, db *stet.DB, plan *checkpoint.Plan) string {
	text := "Adopt " + plan.Adopts()
	if info, err := db.Conversations().Get(ctx, plan.Adopts()); err == nil {
		text += fmt.Sprintf("  %q", clip(info.Title, 60))
	}
	return text + "\n"
}

// completeBranches offers the branches of the workspace.
func (a *app) completeBranches(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault // paths
	}
	if a.useSettings() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.json = true // never ask for a passphrase while completing
	var names []string
	err := a.withPlace(cmd.Context(), false, func(p *place) error {
		all, err := attempt.List(cmd.Context(), p.db.Conversations(), p.space.Path())
		for _, one := range all {
			names = append(names, one.ID+"\t"+endText(one))
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
