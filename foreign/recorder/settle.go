package recorder

import (
	"context"
	"errors"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/intake"
	"github.com/stet-dev/stet/foreign/spool"
)

// Settle ends an open turn of a session of the agent if the agent's record says that someone
// interrupted it. No hook reports that, so the turn would have whatever anyone does until
// the next event of the session. What its edit tools wrote is captured as its work.
func (r *Recorder) Settle(ctx context.Context, space *checkpoint.Workspace, t checkpoint.Turn) error {
	e := foreign.Event{Session: t.Holder.ID, Workspace: space.Path()}
	// Waiting could wait for a process that waits for this one, and who records the session
	// now knows more.
	unlock, ok, err := r.spool(e).TryLock()
	if !ok {
		return err
	}
	defer unlock()
	// The session may have gone on to its next turn since the caller looked.
	if now, ok, err := r.open(ctx, space, t.Conversation, t.Holder.ID); err != nil || !ok || now.Began != t.Began {
		return err
	}
	current, err := r.read(ctx, r.spool(e).Turn)
	if err != nil {
		return err
	}
	if e.Transcript = r.transcript(current); e.Transcript == "" {
		return nil
	}
	copied := r.copy(ctx, e, &Outcome{})
	store := conversation.New(r.Blobs, r.Rows, nil)
	tip, err := intake.Tip(ctx, store, t.Conversation)
	if err != nil || tip.Turn == nil || !tip.Turn.Interrupted || tip.Turns != t.Number {
		return errors.Join(copied, err)
	}
	err = r.interrupted(ctx, space, t, current, e, checkpoint.Request{
		Conversation: t.Conversation, Root: tip.Root, Author: r.Author, Auto: true, Holder: t.Holder, Beside: r.beside(space, e),
	})
	if err == nil {
		err = space.Release(ctx, t.Conversation, t.Holder)
	}
	return errors.Join(copied, err)
}

// transcript returns the path of the record that the beginning of a turn names, or "".
func (r *Recorder) transcript(t spool.Turn) string {
	for _, entry := range t.Events {
		if entry.Kind == foreign.TurnStart && entry.Payload != nil {
			if e, err := r.Adapter.Event(entry.Name, entry.Payload); err == nil {
				return e.Transcript
			}
		}
	}
	return ""
}
