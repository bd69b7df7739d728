package claudecode

import (
	"context"
	"slices"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/turns"
)

// origin finds the session that a session was forked from. A cut copy keeps the id of the
// old session in its lines: of a copy that went on and was cut again, that is the last one.
// A fork that Claude Code makes keeps only the uuids: it begins with the first line of its
// origin, under a later time.
func (a Adapter) origin(ctx context.Context, h *head, heads []head) {
	s := &h.session
	if s.Parent != "" {
		return
	}
	var from *head
	var owners []string
	if s.ForkedFrom != "" {
		owners = copied(ctx, *s)
	}
	last := -1
	for i := range heads {
		other := &heads[i]
		switch {
		case other.session.ID == s.ID || other.session.Parent != "":
		case s.ForkedFrom != "":
			if n := slices.Index(owners, other.session.ID); n > last {
				from, last = other, n
			}
		case h.root != "" && other.root == h.root && other.session.ForkedFrom == "" && other.first.Before(h.first):
			if from == nil || other.first.Before(from.first) {
				from = other
			}
		}
	}
	if from != nil {
		s.ForkedFrom = from.session.ID
		s.ForkedAfter = a.shared(ctx, from.session, *s)
	}
}

// copied returns the sessions from which the lines before a session's own were copied.
func copied(ctx context.Context, s foreign.Session) []string {
	return turns.Origins(ctx, s.Path, func(data []byte) (string, bool) {
		l, err := decode(data)
		if err != nil || l.Session == s.ID {
			return "", err != nil
		}
		return l.Session, true
	})
}

// shared returns the last turn that a fork begins with and its origin has.
func (a Adapter) shared(ctx context.Context, origin, fork foreign.Session) (last string) {
	has := map[string]bool{}
	for t, err := range a.Turns(ctx, origin, "") {
		if err == nil {
			has[t.ID] = true
		}
	}
	for t, err := range a.Turns(ctx, fork, "") {
		if err != nil {
			continue
		}
		if !has[t.ID] {
			break
		}
		last = t.ID
	}
	return last
}
