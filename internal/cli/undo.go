package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
)

func (a *app) undoCommand() *cobra.Command {
	return a.backCommand("undo", "Undo the last rewind", `Undo the last rewind of this workspace, files and conversation. Repeat it to
go further back; 'stet redo' reverts an undo. The current state is saved
first, so nothing is lost. A conversation that the rewind did not move, or that
went on without it, stays where it is.

If the undo would change a file that you have changed since, nothing happens and the
exit code is 4; pass --keep-mine, --theirs or --merge. If an agent is at work here,
you are asked first, as with 'stet rewind'.`, (*checkpoint.Workspace).Undo, "redo")
}

func (a *app) redoCommand() *cobra.Command {
	return a.backCommand("redo", "Redo the last undone rewind", `Redo what the last 'stet undo' reverted. After another rewind, there is nothing
left to redo. Conflicts are handled as in 'stet undo'.`, (*checkpoint.Workspace).Redo, "undo")
}

type backFunc func(*checkpoint.Workspace, context.Context, *checkpoint.UndoOptions) (*checkpoint.Applied, error)

func (a *app) backCommand(name, short, long string, run backFunc, back string) *cobra.Command {
	var flags rewindFlags
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		GroupID: groupBack,
		Long:    long,
		Example: "  stet " + name + "\n  stet " + name + " --merge",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withPlace(cmd.Context(), false, func(p *place) error {
				open, err := p.space.AtWork(cmd.Context())
				if err == nil {
					err = a.notUnder(cmd.Context(), open, strings.ToUpper(name[:1])+name[1:], flags.evenIfRunning)
				}
				if err != nil {
					return err
				}
				done, err := run(p.space, cmd.Context(), &checkpoint.UndoOptions{Choice: flags.choice(), Author: author()})
				var conflict *checkpoint.ConflictError
				if errors.As(err, &conflict) {
					return coded(ExitConflict, "%w; nothing was changed; pass %s", err, wayOut(conflict))
				}
				if err != nil {
					return err
				}
				a.tellLeftovers(done)
				if !a.quiet && !a.json {
					a.tellDone(cmd.Context(), p, done.Plan)
				}
				return a.printApplied(done, back, nil)
			})
		},
	}
	reverted := map[string]string{"undo": "rewind", "redo": "undo"}[name]
	choiceFlags(cmd, &flags, "use the version before the "+reverted+" of files that you changed since",
		"revert only the lines that the "+reverted+" changed in files that you changed since")
	cmd.Flags().BoolVarP(&flags.sure, "yes", "y", false, "accepted as in 'stet rewind'; "+name+" asks only if an agent is at work")
	evenIfRunningFlag(cmd, &flags.evenIfRunning)
	a.rereadFlag(cmd)
	a.fullFlag(cmd)
	return cmd
}

// tellDone shows an executed plan.
func (a *app) tellDone(ctx context.Context, p *place, plan *checkpoint.Plan) {
	if err := p.space.CountLines(ctx, plan); err != nil {
		a.warn("lines were not counted: %v", err)
	}
	fmt.Fprint(a.err, a.planText(ctx, p, plan, a.err))
}

func (a *app) opCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "op",
		Short:   "Show the log of operations",
		GroupID: groupBack,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.opLog())
	return cmd
}

func (a *app) opLog() *cobra.Command {
	var limit int
	var everywhere bool
	cmd := &cobra.Command{
		Use:   "log",
		Short: "List rewinds, undos, forks, pins and collections",
		Long: `List the operations, newest first: author, time, kind, and the number of changed
files. Operations that 'stet undo' can undo have a checkpoint before and
after them. --everywhere includes the operations of other workspaces.`,
		Example: "  stet op log\n  stet op log --json | jq 'select(.kind==\"rewind\")'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				return a.operations(cmd.Context(), db, limit, everywhere)
			})
		},
	}
	countFlag(cmd.Flags(), &limit, "limit", "n", 0, "show at most this many (0: all)")
	cmd.Flags().BoolVar(&everywhere, "everywhere", false, "include operations of other workspaces")
	return cmd
}

type operationJSON struct {
	Schema       string `json:"schema"`
	ID           string `json:"id"`
	Kind         string `json:"kind"`
	Author       string `json:"author"`
	Time         string `json:"time"`
	Description  string `json:"description"`
	Workspace    string `json:"workspace,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	Before       string `json:"before,omitempty"`
	After        string `json:"after,omitempty"`
	Target       string `json:"target,omitempty"`
	Of           uint64 `json:"of,omitempty"`
	Files        uint64 `json:"files"`
}

func newOperationJSON(op *checkpoint.Operation) operationJSON {
	return operationJSON{
		Schema: "stet.operation.v1", ID: op.ID(), Kind: op.Kind, Author: op.Author, Time: stamp(op.Time),
		Description: op.Description, Workspace: op.Workspace, Conversation: op.Conversation,
		Before: op.Before, After: op.After, Target: op.Target, Of: op.Of, Files: op.Files,
	}
}

func (a *app) operations(ctx context.Context, db *stet.DB, limit int, everywhere bool) error {
	dir, err := a.findWorkspace(ctx, db)
	if err != nil {
		return err
	}
	here, p, n := checkpoint.WorkspaceID(dir), a.paint(), 0
	for op, err := range db.Checkpoints().Operations(ctx) {
		if err != nil {
			return err
		}
		if !everywhere && op.Workspace != "" && op.Workspace != here {
			continue
		}
		value := newOperationJSON(op)
		changed := ""
		if op.After != "" {
			changed = "  " + plural(int64(op.Files), "file")
		}
		at, by, room := when(op.Time, now()), pad(clip(op.Author, 20), 10), 80
		if isTerminal(a.out) {
			room = min(room, max(10, a.width()-columns(pad(op.ID(), 5)+at+by+changed)-6))
		}
		line := fmt.Sprintf("%s  %s  %s  %s%s\n", p.yellow(pad(op.ID(), 5)), p.dim(at), by, clip(op.Description, room), changed)
		if err := a.print(value, line); err != nil {
			return err
		}
		if n++; n == limit {
			break
		}
	}
	if n == 0 {
		a.say("no operations yet")
	}
	return nil
}
