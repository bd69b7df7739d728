package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
)

func (a *app) moveCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "move OLD NEW",
		Short:   "Move the checkpoints of a renamed directory",
		GroupID: groupBack,
		Long: `Move the checkpoints and the log of the directory OLD to its new path NEW.
Checkpoints belong to a path: after 'mv OLD NEW' they still belong to OLD. No file is
touched.

The command fails if OLD still has content, or if NEW has its own checkpoints. With
--force, it exchanges the two histories, and nothing is lost.`,
		Example: "  mv shop store && stet move shop store",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				return a.moveHistory(cmd.Context(), db, args[0], args[1], force)
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "exchange the histories even if OLD is in use or NEW has checkpoints")
	return cmd
}

func (a *app) moveHistory(ctx context.Context, db *stet.DB, from, to string, force bool) error {
	service, _, err := a.checkpoints(db)
	if err != nil {
		return err
	}
	moved, err := service.Move(ctx, from, to, force)
	if errors.Is(err, checkpoint.ErrInPlace) {
		return coded(ExitConflict, "%w; --force swaps the histories", err)
	}
	if err != nil {
		return err
	}
	value := map[string]any{
		"schema": "stet.move.v1", "from": moved.From, "to": moved.To, "operation": moved.Operation.ID(),
		"checkpoints": moved.Checkpoints, "exchanged": moved.Exchanged,
	}
	return a.print(value, fmt.Sprintf("moved %s from %s to %s\n",
		plural(int64(moved.Checkpoints), "checkpoint"), printable(tilde(moved.From)), printable(tilde(moved.To))))
}

// tellMoved suggests where the checkpoints of a directory without any may be: it may
// have been renamed.
func (a *app) tellMoved(ctx context.Context, p *place) error {
	former, err := p.service.FormerPath(ctx, p.space.Path())
	if err != nil || former == "" {
		return err
	}
	a.warn("the checkpoints of this directory are under its former path %s; run 'stet move %s .' to move them", former, former)
	return nil
}
