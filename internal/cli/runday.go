package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
)

// dayOfRuns returns the conversation of a run that names none: the one of all runs of the
// day in the workspace. While another run of it is at work, it is a new one: otherwise a
// rewind of one run would take back the other's work. Its id has a random part, since
// another machine may have a workspace of the same path, and the two may meet in one store.
func dayOfRuns(ctx context.Context, store *conversation.Store, alone conversation.Info, agent string, day time.Time, open checkpoint.Turns) (conversation.Info, error) {
	info := conversation.Info{Title: "runs of " + day.Format("2 Jan 2006"), Agent: cmp.Or(agent, runName), Workspace: alone.Workspace}
	prefix := "run-" + day.Format("2006-01-02") + "-" + checkpoint.WorkspaceID(alone.Workspace)[:6] + "-"
	ids, err := store.IDs(ctx, prefix, 0)
	if err != nil {
		return info, err
	}
	for _, id := range ids {
		have, err := store.Get(ctx, id)
		switch {
		case conversation.Damaged(err) || errors.Is(err, conversation.ErrNotFound):
			continue
		case err != nil:
			return info, err
		case have.Agent != info.Agent || have.Workspace != conversation.WorkspaceName(info.Workspace):
			continue
		case slices.ContainsFunc(open, func(t checkpoint.Turn) bool { return t.Conversation == id }):
			return alone, nil
		}
		info.ID = id
		return info, nil
	}
	info.ID = prefix + strings.ToLower(rand.Text()[:6])
	return info, nil
}

// openOrCreate opens a conversation, or creates it if it does not exist.
func openOrCreate(ctx context.Context, store *conversation.Store, info conversation.Info) (c *conversation.Conversation, made bool, err error) {
	if info.ID != "" {
		if c, err = store.Open(ctx, info.ID); !errors.Is(err, conversation.ErrNotFound) {
			return c, false, err
		}
	}
	c, err = store.Create(ctx, info)
	if info.ID != "" && errors.Is(err, conversation.ErrExists) { // by another run, just now
		c, err = store.Open(ctx, info.ID)
		return c, false, err
	}
	return c, err == nil, err
}
