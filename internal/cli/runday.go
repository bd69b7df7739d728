package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
)

// dayOfRuns returns the conversation of a run that names none: the one of all runs of the
// day in the workspace. While another run of it is at work, it is a new one: otherwise a
// rewind of one run would take back the other's work.
func dayOfRuns(alone conversation.Info, agent string, day time.Time, open checkpoint.Turns) conversation.Info {
	id := "run-" + day.Format("2006-01-02") + "-" + checkpoint.WorkspaceID(alone.Workspace)[:6]
	if agent != "" {
		id += "-" + plainName(agent)
	}
	if slices.ContainsFunc(open, func(t checkpoint.Turn) bool { return t.Conversation == id }) {
		return alone
	}
	return conversation.Info{ID: id, Title: "runs of " + day.Format("2 Jan 2006"), Agent: cmp.Or(agent, runName), Workspace: alone.Workspace}
}

// plainName makes a name a part of an id that people type.
func plainName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, name)
	return plain[:min(len(plain), 40)]
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
	return c, true, err
}
