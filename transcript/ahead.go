package transcript

import (
	"context"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// ReadAhead reads turns, by their numbers from 1, with one reader of the store, so that Messages
// finds them in the store's memory. Without it each part of a turn is a separate read, which takes
// several times as long. Messages reports what cannot be read; ReadAhead returns only the error of
// a done context.
func (t *Transcript) ReadAhead(ctx context.Context, turns []int) error {
	if !t.paged {
		return nil // they are in memory
	}
	err := blob.ReadMany(ctx, t.reader.blobs, func(from blob.Reader) error {
		for _, n := range turns {
			if n > 0 && n <= len(t.ids) && !t.ids[n-1].IsZero() {
				readTurn(ctx, from, t.ids[n-1])
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		return nil // the store cannot be read, as Messages will say
	}
	return err
}

// readTurn reads a turn and its parts.
func readTurn(ctx context.Context, from blob.Reader, id blob.ID) {
	data, err := from.Get(ctx, id)
	var m agentv1.ConversationTurnStructure
	if err != nil || wirelimit.Unmarshal(data, &m, nil) != nil {
		return
	}
	parts := append([][]byte{
		m.GetAgentConversationTurn().GetUserMessage(), m.GetShellConversationTurn().GetShellCommand(), m.GetShellConversationTurn().GetShellOutput(),
	}, m.GetAgentConversationTurn().GetSteps()...)
	for _, part := range parts {
		if id, err := blob.IDFromBytes(part); err == nil {
			_, _ = from.Get(ctx, id) // for the store's memory
		}
	}
}
