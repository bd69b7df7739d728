package purge

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stet-dev/stet/conversation"
)

// Session is a session of an agent from which a conversation was copied, and which may
// bring back what is removed.
type Session struct {
	// Conversation is the id of both.
	Conversation string
	// Source is the agent, Path its own record.
	Source, Path string
	// Holds means that the record, which a purge does not change, holds the bytes.
	Holds bool
	cut   bool // off by Remove
}

// lookAtSessions finds the sessions whose conversation or whose record holds the bytes.
// A part of a record may not be copied yet, and a removed conversation may be copied again.
func (p *Plan) lookAtSessions(ctx context.Context) error {
	talks, known := p.find.s.stores.Conversations, make(map[string]record)
	opts := &conversation.ListOptions{Limit: 1000, Match: func(info conversation.Info) bool { return info.Labels[conversation.LabelSource] != "" }}
	seen := make(map[string]bool)
	for {
		page, err := talks.List(ctx, opts)
		if err != nil {
			return fmt.Errorf("purge: %w", err)
		}
		for _, info := range page.Conversations {
			seen[info.ID] = true
			held := slices.ContainsFunc(p.Conversations, func(c Conversation) bool { return c.ID == info.ID }) || p.find.contents.in([]byte(info.Title))
			s := Session{Conversation: info.ID, Source: info.Labels[conversation.LabelSource], Path: info.Labels[conversation.LabelPath]}
			if err := p.lookAtSession(ctx, s, held, known); err != nil {
				return err
			}
		}
		if opts.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	for id, err := range talks.SessionsCutOff(ctx) {
		if err != nil {
			return fmt.Errorf("purge: %w", err)
		}
		if seen[id] {
			continue
		}
		if err := p.lookAtSession(ctx, Session{Conversation: id}, false, known); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) lookAtSession(ctx context.Context, s Session, held bool, known map[string]record) error {
	cut, _, err := p.find.s.stores.Conversations.Cutoff(ctx, s.Conversation)
	if err != nil && !conversation.Damaged(err) {
		return fmt.Errorf("purge: %w", err)
	}
	s.Source, s.Path = cmp.Or(s.Source, cut.Source), cmp.Or(s.Path, cut.Path)
	rec, ok := known[s.Path]
	if !ok {
		rec = p.searchRecord(ctx, s.Path)
		known[s.Path] = rec
	}
	if s.Holds = rec.holds; held || s.Holds {
		// One that was cut off for an earlier purge and has not changed since needs nothing.
		s.cut = held || !cut.Purged || rec.changed.After(cut.Until.Add(-coarse))
		p.Sessions = append(p.Sessions, s)
	}
	return ctx.Err()
}

// record is what the agent's own record shows. Several sessions may share one.
type record struct {
	changed time.Time
	holds   bool
}

// coarse is how far the time of a file may be behind that of its last change.
const coarse = 2 * time.Second

// searchRecord looks for the bytes in an agent's own record. One that is not here, or that
// cannot be read, shows nothing: it is not a part of the store.
func (p *Plan) searchRecord(ctx context.Context, path string) (rec record) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil || !filepath.IsAbs(path) {
		return rec
	}
	_ = eachFile(ctx, path, func(path string) error {
		n, _, err := p.find.raw(path)
		rec.holds = rec.holds || err == nil && n > 0
		if info, err := os.Stat(path); err == nil && info.ModTime().After(rec.changed) {
			rec.changed = info.ModTime()
		}
		return nil
	})
	return rec
}

// cutOff makes imports and hooks leave out what the sessions have so far, before anything is
// removed: their agents' records still hold it.
func (s *Service) cutOff(ctx context.Context, plan *Plan) error {
	for _, one := range plan.Sessions {
		if !one.cut {
			continue
		}
		err := s.stores.Conversations.CutOff(ctx, one.Conversation, conversation.Cutoff{Source: one.Source, Path: one.Path, Until: time.Now(), Purged: true})
		if err != nil {
			return err
		}
	}
	return nil
}
