package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
)

func (a *app) renameCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "rename CONVERSATION TITLE",
		Short:   "Change the title of a conversation",
		GroupID: groupHouse,
		Long: `Change the title of a conversation. Its id stays, and a running agent is not
disturbed.`,
		Example:           "  stet rename 01JCX4 \"retry in checkout\"",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeConversations,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error { return a.rename(cmd.Context(), db, args[0], args[1]) })
		},
	}
}

type renameJSON struct {
	Schema string `json:"schema"`
	ID     string `json:"id"`
	Title  string `json:"title"`
	Before string `json:"before"`
}

func (a *app) rename(ctx context.Context, db *stet.DB, name, title string) error {
	title = strings.TrimSpace(title)
	if title == "" {
		return coded(ExitUsage, "the title is empty")
	}
	id, err := conversationID(ctx, db, name)
	if err != nil {
		return err
	}
	info, err := db.Conversations().Get(ctx, id)
	if err != nil {
		return err
	}
	if err := db.Conversations().SetTitle(ctx, id, title); err != nil {
		return err
	}
	a.say("%s was %q", id, info.Title)
	return a.print(renameJSON{"stet.rename.v1", id, title, info.Title}, id+"  "+printable(title)+"\n")
}
