package cli

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign/agents"
	"github.com/stet-dev/stet/foreign/recorder"
	"github.com/stet-dev/stet/foreign/spool"
)

// idleJSON is an agent that is open between turns.
type idleJSON struct {
	Agent     string `json:"agent"`
	Session   string `json:"session"`
	PID       int    `json:"pid"`
	LastEvent string `json:"last_event,omitempty"`
}

// idleAgents returns the agents that are open in a workspace and wait for a prompt. Those
// with a running turn are at work. What cannot be read names nobody.
func (a *app) idleAgents(root string, atWork checkpoint.Turns) []spool.OpenSession {
	dir, err := a.hookDir()
	if err != nil {
		return nil
	}
	open, err := spool.Opened(dir)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(open, func(o spool.OpenSession) bool {
		working := slices.ContainsFunc(atWork, func(t checkpoint.Turn) bool { return t.Holder.ID == o.Session })
		return working || !recorder.Inside(root, o.Workspace)
	})
}

func idleText(o spool.OpenSession) string {
	return fmt.Sprintf("%s (pid %d), session %s, between turns since %s", printable(o.Agent), o.Process.PID, shortSession(o.Session), when(o.Last, now()))
}

// idleMeaning says what a plan is to an agent that still holds the turns; see hookNotice.
// Only turns that a rewind takes out of the files are reported: neither a single turn nor
// some paths are, no other conversation's turns, and no conversation that moves alone. What
// an undo brings back is reported if its rewind was, which is unknown here.
func idleMeaning(o spool.OpenSession, plan *checkpoint.Plan) string {
	req := plan.Request()
	adapter, err := agents.Find(o.Agent)
	told := err == nil && adapter.Notice("x") != nil
	switch {
	case plan.Adopts() != "":
		return ": it is not told what changes"
	case !plan.Concerns(o.Session) || req.To != "" && plan.Changes() == 0 || req.OnlyTurn != 0 || len(req.Paths) > 0 || req.Lines != nil:
		return ": it is not told what was reverted"
	case !told:
		return ": it is not told what was reverted; continue with 'stet resume'"
	case req.To == "":
		return ""
	}
	return ": its next prompt reports what was reverted"
}

func idleValues(open []spool.OpenSession) (out []idleJSON) {
	for _, o := range open {
		out = append(out, idleJSON{o.Agent, o.Session, o.Process.PID, stamp(o.Last)})
	}
	return out
}

// shortSession shortens the id of an agent's session to what tells it from others: a time,
// or random digits. Ids of other forms stay.
func shortSession(id string) string {
	if len(id) == 26 {
		return id[:10]
	}
	if parsed, err := uuid.Parse(id); err != nil || len(id) != 36 {
		return clip(id, 40)
	} else if parsed.Version() == 4 {
		return id[:8]
	}
	return id[:13]
}
