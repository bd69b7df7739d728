package intake

import (
	"context"
	"fmt"
	"time"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Again makes the passes copy sessions from the beginning whose conversations were
// removed, and with purged also those of which a content was purged, which brings that
// back if the agent's record still has it. It returns m.
func (m *Intake) Again(purged bool) *Intake {
	m.again, m.purged = true, purged
	return m
}

// cutoff finds out whether the session, or one that it belongs to, was cut off: then
// its turns up to that time are left out, and so is the raw record, which has them. It
// returns why the session is left alone, or "". A conversation that exists may have no save.
func (p *pass) cutoff(ctx context.Context, exists, saved bool) (string, error) {
	id := p.session.ID
	cut, version, err := p.store.Cutoff(ctx, id)
	if err != nil {
		return "", err
	}
	// A purge, or a removal, that comes while this pass is at work fails its commits.
	p.rows.guard = kv.Expect{Key: keyspace.Cutoff(id), Version: version}
	if cut.Source != "" && cut.Source != p.session.Agent {
		return "", nil
	}
	inherited := false
	if version == 0 && !saved {
		cut, inherited, err = p.cutOrigin(ctx)
		if err != nil {
			return "", err
		}
	}
	if cut.Until.IsZero() {
		return "", nil
	}
	if p.m.again && (!cut.Purged || p.m.purged) {
		switch {
		case !exists && version != 0:
			p.rows.lift = keyspace.Conversation(id)
			return "", nil
		case !exists:
			return "", nil
		case cut.Removed:
			return skippedLater, nil
		}
	}
	if inherited {
		// The next pass may not be told what the session continues.
		if err := conversation.New(p.m.blobs, p.m.rows, nil).CutOff(ctx, id, cut); err != nil {
			return "", err
		}
		return "", fmt.Errorf("%w: session %s was cut off", kv.ErrConflict, id)
	}
	p.cut = cut
	// The agent's title may be about what is left out.
	p.session.Title, p.session.Started = "", time.Time{}
	return "", nil
}

// cutOrigin returns the cutoff of the session that this one continues, or that started it,
// as its own.
func (p *pass) cutOrigin(ctx context.Context) (conversation.Cutoff, bool, error) {
	for _, origin := range []string{p.session.ForkedFrom, p.session.Parent} {
		if origin == "" {
			continue
		}
		cut, version, err := p.store.Cutoff(ctx, origin)
		if err != nil {
			return conversation.Cutoff{}, false, err
		}
		if version != 0 && (cut.Source == "" || cut.Source == p.session.Agent) {
			cut.Source, cut.Path = p.session.Agent, valid(p.session.Path)
			return cut, true, nil
		}
	}
	return conversation.Cutoff{}, false, nil
}

// leftOut reports whether a turn is older than the cutoff. One without a time may be.
func (p *pass) leftOut(t foreign.Turn) bool {
	return !p.cut.Until.IsZero() && (p.origins[t.ID] || !whole(t.Started).After(p.cut.Until))
}

// findOrigins notes which turns of a session that was cut off come from the one that it
// continues: an agent may give the copies times of their own.
func (p *pass) findOrigins(ctx context.Context) error {
	if p.cut.Until.IsZero() || p.session.ForkedAfter == "" {
		return nil
	}
	seen := map[string]bool{}
	for t, err := range p.m.adapter.Turns(ctx, p.session, "") {
		if foreign.Unreadable(err) {
			continue
		}
		if err != nil {
			return err
		}
		seen[t.ID] = true
		if t.ID == p.session.ForkedAfter {
			p.origins = seen
			return nil
		}
	}
	return nil
}

// nothingNew says why a session without a conversation was not copied.
func (p *pass) nothingNew() string {
	switch {
	case p.cut.Purged:
		return skippedPurged
	case !p.cut.Until.IsZero():
		return skippedRemoved
	}
	return skippedEmpty
}
