package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/timeline"
)

func (a *app) rmCommand() *cobra.Command {
	var yes, subagents bool
	cmd := &cobra.Command{
		Use:     "rm NAME…",
		Short:   "Remove conversations and agents",
		GroupID: groupHouse,
		Long: `Remove conversations with their histories and pins, and cloud agents with their logs.
This cannot be undone. Their content stays on disk until 'stet gc'; checkpoints of
their files stay as well. If a conversation and an agent have the same name, the
conversation is removed.

Agents keep sessions of their own. What the session of a removed conversation has so far
is not copied again, neither by 'stet import' without --again nor by hooks. If the
session goes on, its new turns are a conversation that begins there.

Conversations of subagents stay when the one that started them is removed, and 'stet ls'
then lists them by themselves. --subagents removes them, too.

To remove a damaged or incomplete conversation, name it by its full id.`,
		Example: "  stet rm 01JCX4\n  stet rm --subagents 01JCX4\n  stet rm -y talk-1 talk-2",
		Args:    cobra.MinimumNArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return a.completeConversations(cmd, nil, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error { return a.rm(cmd.Context(), db, args, yes, subagents) })
		},
	}
	cmd.Flags().BoolVar(&subagents, "subagents", false, "also remove the conversations of subagents")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

type rmJSON struct {
	Schema  string   `json:"schema"`
	Removed []string `json:"removed"`
	Left    []string `json:"subagents_left,omitempty"`
}

func (a *app) rm(ctx context.Context, db *stet.DB, names []string, yes, subagents bool) error {
	ids, agents, err := removable(ctx, db, names)
	if err != nil {
		return err
	}
	below, err := subagentsOf(ctx, db, ids)
	if err != nil {
		return err
	}
	if subagents {
		ids, below = slices.Concat(below, ids), nil
	}
	all := slices.Concat(ids, agents)
	question := fmt.Sprintf("Remove %s (%s) permanently?", counted(ids, agents), few(all, 5))
	if len(below) > 0 {
		question = strings.TrimSuffix(question, "?") + fmt.Sprintf(", and leave %s of subagents (--subagents removes them, too)?", plural(int64(len(below)), "conversation"))
	}
	if err := a.agreed(ctx, yes, question); err != nil {
		return err
	}
	value := rmJSON{Schema: "stet.rm.v1", Removed: []string{}, Left: below}
	text := ""
	copies := 0
	for i, id := range all {
		if i < len(ids) {
			info, infoErr := db.Conversations().Get(ctx, id)
			if infoErr == nil && info.Labels[conversation.LabelSource] != "" {
				copies++
			}
			err = removeConversation(ctx, db, id)
		} else {
			err = db.Agents().Delete(ctx, id)
		}
		if err != nil {
			a.say("removed %d of %d before the error", len(value.Removed), len(all))
			return err
		}
		value.Removed = append(value.Removed, id)
		text += "removed " + printable(id) + "\n"
	}
	if copies > 0 {
		text += fmt.Sprintf("left    %s in the records of agents; 'stet import' with --again copies from there again\n", plural(int64(copies), "session"))
	}
	if len(below) > 0 {
		text += fmt.Sprintf("left    %s of subagents (%s); 'stet rm' removes them\n", plural(int64(len(below)), "conversation"), few(below, 5))
	}
	return a.print(value, text)
}

// subagentsOf returns the ids of the conversations that were started by some, those that
// started no others first: what is left after an error is never without the one above it.
func subagentsOf(ctx context.Context, db *stet.DB, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	infos, err := timeline.New(db.Checkpoints(), db.Conversations()).Below(ctx, ids...)
	if err != nil {
		return nil, err
	}
	var below []string
	for _, info := range slices.Backward(infos) {
		below = append(below, info.ID)
	}
	return below, nil
}

// removable returns what names stand for: conversations, and agents for the others.
func removable(ctx context.Context, db *stet.DB, names []string) (conversations, agents []string, err error) {
	for _, name := range names {
		id, err := removableID(ctx, db, name)
		if err == nil {
			conversations = append(conversations, id)
			continue
		}
		if !absentName(err) {
			return nil, nil, err
		}
		agent, agentErr := db.Agents().Find(ctx, name)
		var several *cloudagent.AmbiguousError
		switch {
		case agentErr == nil:
			agents = append(agents, agent.ID)
		case errors.As(agentErr, &several):
			return nil, nil, usage(fmt.Errorf("agent %w", several))
		case errors.Is(agentErr, cloudagent.ErrNotFound):
			return nil, nil, nothingNamed(name, aConversation, anAgent)
		default:
			return nil, nil, agentErr
		}
	}
	return conversations, agents, nil
}

// counted says how many conversations and agents there are.
func counted(conversations, agents []string) string {
	var parts []string
	if n := len(conversations); n > 0 {
		parts = append(parts, plural(int64(n), "conversation"))
	}
	if n := len(agents); n > 0 {
		parts = append(parts, plural(int64(n), "agent"))
	}
	return strings.Join(parts, " and ")
}

func removeConversation(ctx context.Context, db *stet.DB, id string) error {
	return db.Conversations().Delete(ctx, id, &conversation.DeleteOptions{Extend: func(b *kv.Batch) error {
		if err := db.Checkpoints().ForgetImported(ctx, id, b); err != nil {
			return err
		}
		return db.Checkpoints().Append(ctx, &checkpoint.Operation{Kind: "delete", Author: author(), Conversation: id, Description: "remove conversation " + id}, b)
	}})
}

// removableID is conversationID, and also accepts the full id of a conversation of
// which only parts are left.
func removableID(ctx context.Context, db *stet.DB, name string) (string, error) {
	id, err := conversationID(ctx, db, name)
	if !absentName(err) {
		return id, err
	}
	left, leftErr := db.Conversations().Remains(ctx, name)
	if leftErr != nil || !left {
		return "", cmp.Or(leftErr, err)
	}
	return name, nil
}
