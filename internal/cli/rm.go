package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/kv"
)

func (a *app) rmCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "rm CONVERSATION…",
		Short:   "Remove conversations",
		GroupID: groupHouse,
		Long: `Remove conversations with their histories and pins. This cannot be undone. Their
content stays on disk until 'stet gc'; checkpoints of their files stay as well.

A conversation that is damaged or incomplete is removed, too;
name it by its full id.`,
		Example: "  stet rm 01JCX4\n  stet rm -y talk-1 talk-2",
		Args:    cobra.MinimumNArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return a.completeConversations(cmd, nil, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error { return a.rm(cmd.Context(), db, args, yes) })
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

type rmJSON struct {
	Schema  string   `json:"schema"`
	Removed []string `json:"removed"`
}

func (a *app) rm(ctx context.Context, db *stet.DB, names []string, yes bool) error {
	var ids []string
	for _, name := range names {
		id, err := removableID(ctx, db, name)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	question := fmt.Sprintf("Remove %s (%s) permanently?", plural(int64(len(ids)), "conversation"), few(ids, 5))
	if err := a.agreed(ctx, yes, question); err != nil {
		return err
	}
	value := rmJSON{Schema: "stet.rm.v1", Removed: []string{}}
	text := ""
	for _, id := range ids {
		err := db.Conversations().Delete(ctx, id, &conversation.DeleteOptions{Extend: func(b *kv.Batch) error {
			return db.Checkpoints().Append(ctx, &checkpoint.Operation{Kind: "delete", Author: author(), Conversation: id, Description: "remove conversation " + id}, b)
		}})
		if err != nil {
			a.say("%s removed before that", plural(int64(len(value.Removed)), "conversation"))
			return err
		}
		value.Removed = append(value.Removed, id)
		text += "removed " + printable(id) + "\n"
	}
	return a.print(value, text)
}

// removableID is conversationID, and also accepts the full id of a conversation of
// which only parts are left.
func removableID(ctx context.Context, db *stet.DB, name string) (string, error) {
	id, err := conversationID(ctx, db, name)
	var known *codedError
	if !errors.As(err, &known) || known.code != ExitNotFound {
		return id, err
	}
	left, leftErr := db.Conversations().Remains(ctx, name)
	if leftErr != nil || !left {
		return "", cmp.Or(leftErr, err)
	}
	return name, nil
}
