package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign/spool"
)

// takenOver reports whether an agent whose hooks record its turns has the run's turn now. They
// know more than a run does: which turn, which tool, and what is not the agent's. The run's own
// turn has ended then.
func (s *supervised) takenOver(ctx context.Context) bool {
	if !s.away(ctx) {
		return false
	}
	_ = s.look(ctx) // if the checkpoints cannot be read, the run goes on
	return len(s.sessions) > 0
}

// away reports whether the run's turn is not open. It notes the agents that are at work.
func (s *supervised) away(ctx context.Context) bool {
	if s.first == nil || s.conv == nil {
		return false
	}
	open, err := s.p.space.AtWork(ctx)
	if err != nil {
		return false
	}
	if slices.ContainsFunc(open, s.own) {
		s.quiet = 0
		return false
	}
	for _, t := range open {
		s.note(t.Holder.Processes...)
	}
	return true
}

func (s *supervised) own(t checkpoint.Turn) bool {
	return t.Conversation == s.conv.ID() && t.Holder.ID == s.by.ID
}

// note keeps those of the processes that the command started.
func (s *supervised) note(processes ...checkpoint.Process) {
	var above map[int]int
	for _, p := range processes {
		same := func(q checkpoint.Process) bool { q.Command = p.Command; return p == q }
		switch {
		case slices.ContainsFunc(s.by.Processes, same):
			s.whole = true
		case slices.ContainsFunc(s.agents, same) || len(s.by.Processes) < 2:
		default:
			if above == nil {
				above, _ = processesAbove() // where they are not known, nothing is within a run
			}
			if ancestors(above, p.PID, s.by.Processes[1].PID) != nil {
				s.agents = append(s.agents, p)
			}
		}
	}
}

// resumed begins another turn of a run whose command goes on after the agents that it started
// have ended, and reports whether it did. While an agent waits for its next prompt, changes
// are the user's as those beside any agent; what changed between its last turn and now may be
// the command's, too, and is nobody's. ended says that the command has ended.
func (s *supervised) resumed(ctx context.Context, ended bool) bool {
	if s.whole || len(s.agents) == 0 && !ended && s.quiet < 1 {
		s.quiet++ // a session that came and went unseen may be the command's own
		return false
	}
	running := func(p checkpoint.Process) bool { return p.Life() == checkpoint.Alive }
	if slices.ContainsFunc(s.agents, running) {
		return false
	}
	if dir, err := s.app.hookDir(); err == nil { // an agent may have begun a session without a turn
		opened, _ := spool.Opened(dir)
		for _, o := range opened {
			s.note(o.Process)
		}
		if s.whole || slices.ContainsFunc(s.agents, running) {
			return false
		}
	}
	if err := s.look(ctx); err != nil || len(s.sessions) == 0 {
		return false
	}
	if s.did(ctx) {
		if err := s.record(ctx, 0); err != nil {
			s.unsaid = err
			return false
		}
		s.turn++
	}
	err := s.save(ctx, checkpoint.Request{
		Side:   checkpoint.Before,
		Beside: func(context.Context) ([]string, error) { return []string{s.conv.ID()}, nil },
	})
	if err != nil {
		return false
	}
	s.part, s.changed = s.last, nil
	return true
}

// did reports whether the run's current turn, which was taken over, has changes.
func (s *supervised) did(ctx context.Context) bool {
	for rec, err := range s.p.space.List(ctx, nil) {
		if err != nil || rec.ID == s.part.ID {
			break
		}
		if by := rec.Writer(); by.Class == checkpoint.ByConversation && by.Conversation == s.conv.ID() && rec.FilesChanged > 0 {
			s.worked = true
			return true
		}
	}
	return false
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
// only what they do not have, its own changes before them, an exit code or an output.
func (s *supervised) leave(ctx context.Context, code int) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	if s.empty = code == 0 && !s.printed.any() && !s.did(ctx); s.empty {
		return s.dropEmpty(ctx)
	}
	s.unsaid = s.record(ctx, code)
	return nil
}

// revert returns the command that takes back what the run did, and its agents.
func (s *supervised) revert() string {
	own := "stet rewind " + s.first.Name()
	switch len(s.sessions) {
	case 0:
		return own
	case 1:
		first := s.sessions[0]
		theirs := fmt.Sprintf("stet rewind -c %s before:turn:%d", s.app.short(first.Conversation), first.Turn)
		if s.worked {
			return theirs + " and " + own
		}
		return theirs
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
