package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/checkpoint"
)

// takenOver reports whether the command is an agent whose hooks record its turns. They know
// more than a run does: which turn, which tool, and what is not the agent's. The run's own
// turn has ended then.
func (s *supervised) takenOver(ctx context.Context) bool {
	if len(s.sessions) > 0 {
		return true
	}
	if s.first == nil || s.conv == nil {
		return false
	}
	open, err := s.p.space.AtWork(ctx)
	if err != nil || slices.ContainsFunc(open, s.own) {
		return false
	}
	_ = s.look(ctx) // if the checkpoints cannot be read, the run goes on
	return len(s.sessions) > 0
}

func (s *supervised) own(t checkpoint.Turn) bool {
	return t.Conversation == s.conv.ID() && t.Holder.ID == s.by.ID
}

// look finds the turns of other conversations that began since the run did, the first one of
// each, and the latest checkpoint.
func (s *supervised) look(ctx context.Context) error {
	var began []checkpoint.Place // newest first
	last := s.first
	for rec, err := range s.p.space.List(ctx, nil) {
		if err != nil {
			return err
		}
		if rec.ID == s.first.ID {
			break
		}
		if last == s.first {
			last = rec
		}
		if rec.Side == checkpoint.Before && rec.Conversation != "" && rec.Conversation != s.conv.ID() {
			began = slices.DeleteFunc(began, func(p checkpoint.Place) bool { return p.Conversation == rec.Conversation })
			began = append(began, checkpoint.Place{Conversation: rec.Conversation, Turn: rec.Turn})
		}
	}
	slices.Reverse(began)
	s.sessions, s.last = began, last
	return nil
}

// leave ends a run whose turn was taken over: its sessions have the changes. The run keeps
// only what they do not have, an exit code or an output.
func (s *supervised) leave(ctx context.Context, code int) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	if s.empty = code == 0 && !s.printed.any(); s.empty {
		return s.dropEmpty(ctx)
	}
	s.unsaid = s.record(ctx, code)
	return nil
}

// revert returns the command that takes back what the run did.
func (s *supervised) revert() string {
	switch len(s.sessions) {
	case 0:
		return "stet rewind " + s.first.Name()
	case 1:
		first := s.sessions[0]
		return fmt.Sprintf("stet rewind -c %s before:turn:%d", s.app.short(first.Conversation), first.Turn)
	}
	return "stet log --all"
}

type sessionJSON struct {
	Conversation string `json:"conversation"`
	Turn         uint64 `json:"turn"`
}

func (s *supervised) sessionsJSON() []sessionJSON {
	out := []sessionJSON{}
	for _, p := range s.sessions {
		out = append(out, sessionJSON{p.Conversation, p.Turn})
	}
	return out
}
