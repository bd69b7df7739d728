package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
)

func (a *app) forkCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "fork REF",
		Short:   "Start a new conversation at a checkpoint",
		GroupID: groupBack,
		Long: `Start a new conversation with the state that another one had at a checkpoint, and
print its id. The two share their common content. Files are not changed. REF may also
be a conversation; then its current state is used.`,
		Example:           "  stet fork c5\n  stet fork 01JCX4",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRefs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withView(cmd.Context(), func(p *place) error { return a.fork(cmd.Context(), p, args[0]) })
		},
	}
}

func (a *app) fork(ctx context.Context, p *place, ref string) error {
	about, err := a.subject(ctx, p, ref)
	if err != nil {
		return err
	}
	var id string
	switch {
	case about.conversation != "":
		id, err = a.forkConversation(ctx, p.db, about.conversation)
	case about.checkpoint != nil:
		id, err = p.space.Fork(ctx, about.checkpoint.ID, "", author())
	default:
		id, err = p.space.Fork(ctx, ref, "", author()) // says that the present has no state
	}
	switch {
	case errors.Is(err, checkpoint.ErrNoConversations):
		return coded(ExitNotFound, "checkpoint %s has no saved conversation, so there is nothing to fork", ref)
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
func (a *app) forkConversation(ctx context.Context, db *stet.DB, id string) (string, error) {
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
