package agenttools

import (
	"cmp"
	"context"
	"errors"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
)

// unnamed is the author of what an unknown agent does.
const unnamed = "mcp"

// caller is the session that calls a tool.
type caller struct {
	// id is its conversation, "" if unknown.
	id string
	// author is the agent's name, for the log.
	author string
	// turn is its running turn here, nil if it has none.
	turn *checkpoint.Turn
}

// caller determines the calling session: the one that the user named, the one whose
// turn the agent's process holds open, or the one in which the agent started the
// server.
func (t *Tools) caller(ctx context.Context, p *Place) (caller, error) {
	open, err := p.Space.AtWork(ctx)
	if err != nil {
		return caller{}, err
	}
	c := caller{id: cmp.Or(t.opts.Session, t.held(open), t.opts.Started), author: unnamed}
	if c.id == "" {
		return c, nil
	}
	if c.id, err = p.conversation(ctx, c.id); err != nil {
		return caller{}, err
	}
	for i := range open {
		if open[i].Conversation == c.id {
			c.turn = &open[i]
		}
	}
	info, err := p.DB.Conversations().Get(ctx, c.id)
	if err != nil && !errors.Is(err, conversation.ErrNotFound) {
		return caller{}, err
	}
	c.author = cmp.Or(info.Agent, unnamed)
	return c, nil
}

// held returns the only conversation with a turn that the agent's process holds open,
// or "". If an agent has several, its process does not show which of them is calling.
func (t *Tools) held(open checkpoint.Turns) string {
	found := ""
	for _, turn := range open {
		for _, process := range turn.Holder.Processes {
			if !same(process, t.opts.Agent) {
				continue
			}
			if found != "" && found != turn.Conversation {
				return ""
			}
			found = turn.Conversation
		}
	}
	return found
}

// same reports whether two processes are the same. It ignores their commands, which
// are for people.
func same(a, b checkpoint.Process) bool {
	a.Command, b.Command = "", ""
	return a == b && a.PID != 0
}

// conversation returns the id of a conversation that an id or its beginning names. A
// name that no conversation has is returned unchanged: checkpoints may have it.
func (p *Place) conversation(ctx context.Context, name string) (string, error) {
	id, err := p.DB.Conversations().Find(ctx, name)
	if errors.Is(err, conversation.ErrNotFound) {
		return name, nil
	}
	return id, err
}

// knows reports whether a conversation has checkpoints in the workspace.
func (p *Place) knows(ctx context.Context, id string) (bool, error) {
	for _, err := range p.Space.List(ctx, &checkpoint.ListOptions{Conversation: id, Limit: 1}) {
		return err == nil, err
	}
	return false, nil
}
