// Package carry lets an agent's own conversation continue at the target of a rewind.
// It promises that the agent's session stays unchanged: the continuation is a copy
// that ends after the chosen turn. How to continue is stored with the conversation
// until it is rewound again.
package carry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/agents"
	"github.com/stet-dev/stet/foreign/intake"
)

// label keeps a continuation with its conversation.
const label = "carry_on"

// kept is a continuation as it is stored in the label.
type kept struct {
	// Save is the save at which the conversation continues.
	Save         uint64
	Continuation foreign.Continuation
}

// ErrNoSession reports a conversation that is not the copy of an agent's session.
var ErrNoSession = intake.ErrNoSource

// Prepare makes the agent's own conversation continue after the current state of its
// copy, and stores how. A second call for the same state returns the same
// continuation. The error is ErrNoSession if the conversation does not come from an
// agent, and foreign.ErrCannotCut with the reason if its agent cannot continue there.
func Prepare(ctx context.Context, store *conversation.Store, host foreign.Host, conv string) (foreign.Continuation, error) {
	info, err := store.Get(ctx, conv)
	if err != nil {
		return foreign.Continuation{}, err
	}
	if have, ok := Kept(info); ok {
		return have, nil
	}
	c, err := At(ctx, store, host, conv, info.Save)
	if err != nil {
		return foreign.Continuation{}, err
	}
	data, err := json.Marshal(kept{Save: info.Save, Continuation: c})
	if err != nil {
		return foreign.Continuation{}, err
	}
	return c, store.SetLabel(ctx, conv, label, string(data))
}

// Kept returns the continuation of a conversation's current state, if one was prepared.
func Kept(info conversation.Info) (foreign.Continuation, bool) {
	var k kept
	if json.Unmarshal([]byte(info.Labels[label]), &k) != nil || k.Save != info.Save || len(k.Continuation.Command) == 0 {
		return foreign.Continuation{}, false
	}
	return k.Continuation, true
}

// originsLooked is how many conversations Origin looks at: the one that was rewound to be
// continued changed recently.
const originsLooked = 100

// Origin returns the session that a session continues because Prepare made it, and the id of
// the last turn of both. The ids are "" if Prepare did not make it, or if the other one was
// rewound again. Some agents keep no such relation in their records.
func Origin(ctx context.Context, store *conversation.Store, s foreign.Session) (from, after string, err error) {
	page, err := store.List(ctx, &conversation.ListOptions{Agent: s.Agent, Workspace: s.Workspace, Limit: originsLooked})
	if err != nil || s.ID == "" {
		return "", "", err
	}
	for _, info := range page.Conversations {
		var k kept
		if json.Unmarshal([]byte(info.Labels[label]), &k) != nil || k.Continuation.Session != s.ID {
			continue
		}
		save, err := store.SaveAt(ctx, info.ID, k.Save)
		if errors.Is(err, conversation.ErrNotFound) {
			continue // a fork has the labels of its origin
		}
		return info.ID, save.MessageID, err
	}
	return "", "", nil
}

// At makes the agent's own conversation continue after a save, and stores nothing.
func At(ctx context.Context, store *conversation.Store, host foreign.Host, conv string, save uint64) (foreign.Continuation, error) {
	session, err := intake.Session(ctx, store, conv)
	if err != nil {
		return foreign.Continuation{}, err
	}
	adapter, err := agents.Find(session.Agent)
	if errors.Is(err, foreign.ErrUnknownAgent) || errors.Is(err, foreign.ErrImportOnly) {
		return foreign.Continuation{}, ErrNoSession // imported by a release that knows more
	}
	if err != nil {
		return foreign.Continuation{}, err
	}
	var at conversation.Save
	if save > 0 {
		if at, err = store.SaveAt(ctx, conv, save); err != nil {
			return foreign.Continuation{}, err
		}
	}
	if at.Turns == 0 {
		return foreign.Continuation{}, fmt.Errorf("%w: it has no turn; start a new session of %s", foreign.ErrCannotCut, session.Agent)
	}
	if at.Turn == nil {
		return foreign.Continuation{}, fmt.Errorf("%w: the turn was not copied from the agent", foreign.ErrCannotCut)
	}
	return adapter.Cut(ctx, host, session, foreign.Turn{ID: at.MessageID, Cut: at.Turn.Cut, Mark: foreign.Mark(at.Turn.Mark)})
}

// AtRoot is At for the latest save with a root, such as that of a checkpoint.
func AtRoot(ctx context.Context, store *conversation.Store, host foreign.Host, conv string, root blob.ID) (foreign.Continuation, error) {
	found := uint64(0)
	for save, err := range store.History(ctx, conv, nil) {
		if err != nil {
			return foreign.Continuation{}, err
		}
		if save.Root == root {
			found = max(found, save.Seq)
		}
	}
	return At(ctx, store, host, conv, found)
}
