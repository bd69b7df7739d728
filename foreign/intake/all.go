package intake

import (
	"context"
	"errors"
	"iter"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/kv"
)

// Totals is what a pass over many sessions did.
type Totals struct {
	// Sessions counts all sessions, Conversations those that are new or have grown.
	Sessions, Conversations int
	// Turns counts new and grown turns, Read the bytes of the records, and Stored those
	// of the raw record that the store did not have.
	Turns        int
	Read, Stored int64
	Skipped      []Skipped
	// Removed counts the sessions without a conversation that were left alone because
	// theirs was removed here, and Purged those because a content of them was purged.
	Removed, Purged int
}

// Skipped is a session or part that was not copied, with the reason.
type Skipped struct {
	// Session is the session's id, or "" if it cannot be determined.
	Session, Reason string
	// Damage means that something cannot be read. Otherwise there was nothing to copy.
	Damage bool
}

// Damaged counts what was skipped because it cannot be read.
func (t *Totals) Damaged() (n int) {
	for _, s := range t.Skipped {
		if s.Damage {
			n++
		}
	}
	return n
}

// Sessions copies what is new in many sessions. One that cannot be copied is skipped
// and reported; only a failure of the store, or the end of ctx, ends the pass.
// progress, if not nil, is called before each session, and from time to time while
// one is copied: Read is then approximate.
func (m *Intake) Sessions(ctx context.Context, all iter.Seq2[foreign.Session, error], progress func(Totals)) (Totals, error) {
	var t Totals
	for s, err := range all {
		if progress != nil {
			progress(t)
		}
		if err != nil {
			if !foreign.Unreadable(err) {
				return t, err
			}
			t.Skipped = append(t.Skipped, Skipped{Reason: err.Error(), Damage: true})
			continue
		}
		t.Sessions++
		var during func(int64)
		if progress != nil {
			during = func(read int64) {
				now := t
				now.Read += read
				progress(now)
			}
		}
		result, err := m.session(ctx, s, during)
		t.Read += s.Size
		t.Turns += result.Turns + result.Grown
		t.Stored += result.Bytes
		if result.Turns+result.Grown > 0 || result.Created {
			t.Conversations++
		}
		for _, part := range result.Unreadable {
			t.Skipped = append(t.Skipped, Skipped{Session: s.ID, Reason: part.Error(), Damage: true})
		}
		for _, part := range result.Passed {
			t.Skipped = append(t.Skipped, Skipped{Session: s.ID, Reason: part, Damage: true})
		}
		switch {
		case err != nil && ofOneSession(ctx, err):
			t.Skipped = append(t.Skipped, Skipped{Session: s.ID, Reason: err.Error(), Damage: true})
		case err != nil:
			return t, err
		case result.Skipped == skippedRemoved:
			t.Removed++
		case result.Skipped == skippedPurged:
			t.Purged++
		case result.Skipped != "":
			t.Skipped = append(t.Skipped, Skipped{Session: s.ID, Reason: result.Skipped})
		}
	}
	return t, ctx.Err()
}

// ofOneSession reports whether an error concerns only one session.
func ofOneSession(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (foreign.Unreadable(err) || errors.Is(err, conversation.ErrInvalid) ||
		errors.Is(err, kv.ErrInvalidBatch) || kv.Damaged(err) || conversation.Damaged(err))
}
