package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
)

func (a *app) pinCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "pin [NAME REF]",
		Short:   "Name a checkpoint, or list the names",
		GroupID: groupBack,
		Long: `Name a checkpoint. It is found as pin:NAME, and retention policies keep it.
A name that another checkpoint has is moved. For
"@" a checkpoint of the present is made first. Without arguments the names are
listed. 'stet help diff' lists the forms of REF.`,
		Example:           "  stet pin before-retry c2\n  stet pin works @\n  stet rewind pin:works",
		Args:              cobra.MatchAll(cobra.MaximumNArgs(2), notOne),
		ValidArgsFunction: a.completePinArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.withStore(cmd.Context(), false, func(db *stet.DB) error { return a.listPins(cmd.Context(), db) })
			}
			return a.withPlace(cmd.Context(), false, func(p *place) error { return a.pin(cmd.Context(), p, args[0], args[1]) })
		},
	}
}

func notOne(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		return errors.New("NAME needs a REF")
	}
	return nil
}

func (a *app) completePinArgs(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return a.refNames(cmd), cobra.ShellCompDirectiveNoFileComp
	}
	return a.completePins(cmd, args, prefix)
}

func (a *app) pin(ctx context.Context, p *place, name, ref string) error {
	rec, err := a.record(ctx, p, ref)
	if err != nil {
		return err
	}
	if err := p.service.Pin(ctx, name, rec.ID, author()); err != nil {
		return err
	}
	a.say("pin:%s is %s", name, rec.Name())
	return a.print(map[string]any{"schema": "stet.pin.v1", "name": name, "id": rec.ID}, rec.ID+"\n")
}

// record returns the checkpoint of a reference, and makes one of the present.
func (a *app) record(ctx context.Context, p *place, ref string) (*checkpoint.Record, error) {
	conv, err := a.named(ctx, p.db)
	if err != nil {
		return nil, err
	}
	rec, err := p.space.Resolve(ctx, ref, conv)
	if err != nil || rec != nil {
		return rec, err
	}
	res, err := p.space.Checkpoint(ctx, checkpoint.Request{Conversation: conv, Author: author()})
	if err != nil {
		return nil, err
	}
	if res.Record == nil {
		return nil, coded(ExitError, "no checkpoint was created: %s", res.Skipped)
	}
	return res.Record, nil
}

func (a *app) listPins(ctx context.Context, db *stet.DB) error {
	for pin, err := range db.Checkpoints().Pins(ctx) {
		if err != nil {
			return err
		}
		value := map[string]any{"schema": "stet.pin.v1", "name": pin.Name, "id": pin.Checkpoint, "time": stamp(pin.Time)}
		if err := a.print(value, fmt.Sprintf("%s  %s  %s\n", pad(printable(pin.Name), 20), pin.Checkpoint, when(pin.Time, now()))); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) unpinCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "unpin NAME",
		Short:             "Remove a name; the checkpoint stays",
		GroupID:           groupBack,
		Example:           "  stet unpin before-retry",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePins,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				err := db.Checkpoints().Unpin(cmd.Context(), args[0], author())
				if errors.Is(err, checkpoint.ErrNotFound) {
					return coded(ExitNotFound, "no pin %q; 'stet pin' lists all", args[0])
				}
				if err != nil {
					return err
				}
				return a.print(map[string]any{"schema": "stet.pin.v1", "name": args[0], "removed": true}, "")
			})
		},
	}
}

func (a *app) forkCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "fork REF",
		Short:   "Start a new conversation at a checkpoint",
		GroupID: groupBack,
		Long: `Start a new conversation with the state that another one had at a checkpoint, and
print its id. Both share their common content. Files stay unchanged. REF may
also be a conversation; then its current state is used.`,
		Example:           "  stet fork c5\n  stet fork 01JCX4",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRefs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPlace(cmd.Context(), false, func(p *place) error { return a.fork(cmd.Context(), p, args[0]) })
		},
	}
}

func (a *app) fork(ctx context.Context, p *place, ref string) error {
	conv, err := a.named(ctx, p.db)
	if err != nil {
		return err
	}
	id, err := p.space.Fork(ctx, ref, conv, author())
	switch {
	case errors.Is(err, checkpoint.ErrNotFound):
		if id, err = a.forkConversation(ctx, p.db, ref); err != nil {
			return err
		}
	case errors.Is(err, checkpoint.ErrNoConversations):
		return coded(ExitNotFound, "checkpoint %s has no saved state of a conversation, so there is nothing to fork", ref)
	case err != nil:
		return err
	}
	info, err := p.db.Conversations().Get(ctx, id)
	if err != nil {
		return err
	}
	a.say("forked from %s with %s", info.ForkedFrom, plural(int64(info.Turns), "turn"))
	return a.print(infoJSON(info), id+"\n")
}

// forkConversation forks the current state of a conversation.
func (a *app) forkConversation(ctx context.Context, db *stet.DB, ref string) (string, error) {
	id, err := conversationID(ctx, db, ref)
	if code, _ := Code(err); code == ExitNotFound {
		return "", coded(ExitNotFound, "no checkpoint or conversation %q", ref)
	}
	if err != nil {
		return "", err
	}
	if _, err := headOf(ctx, db, id); err != nil {
		return "", err
	}
	c, err := db.Conversations().Fork(ctx, id, 0, conversation.Info{})
	if err != nil {
		return "", err
	}
	return c.ID(), db.Checkpoints().Log(ctx, &checkpoint.Operation{
		Kind: checkpoint.OpFork, Author: author(), Conversation: c.ID(), Description: "fork of " + id,
	})
}
