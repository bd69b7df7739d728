package checkpoint

import (
	"slices"
	"time"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// turnLife is how long a turn without processes counts as running without a
// checkpoint. A killed agent never reports the end of its turn.
const turnLife = time.Hour

// Holder keeps a turn open. The zero value is an agent that only reports when its
// turns begin and end.
type Holder struct {
	// ID distinguishes concurrent turns of one conversation: a checkpoint continues
	// or ends the turn with the same ID.
	ID string
	// Processes do the work: when all of them are gone, the turn has ended at its
	// last checkpoint. Without processes it ends after an hour without a checkpoint.
	Processes []Process
	// Within are the IDs of holders that run this one and wait for it: their turns end where
	// one of this holder begins. It is not kept.
	Within []string
}

// Turn is a running turn of a conversation in a workspace.
type Turn struct {
	Conversation string
	Number       uint64
	MessageID    string
	Author       string
	// Lost means that the turn ended after the previous checkpoint and before this
	// one or, for a current turn, the next one.
	Lost bool

	// The following fields are set for running turns.

	// Began is the id of the checkpoint that the turn began with.
	Began string
	// Since is when it began, and Seen when it made its last checkpoint.
	Since, Seen time.Time
	Holder      Holder
}

// Turns are the running turns in a workspace: at most one of each conversation and
// holder.
type Turns []Turn

// Observe advances to a checkpoint made by by. It returns the turns that were active
// at any time since the previous checkpoint, for Record.AtWork, and the turns that
// continue. It depends only on its arguments.
//
// A turn ends with a checkpoint on its after side, when its holder begins another
// one, or when its holder is gone. In the latter two cases it ended at its last
// checkpoint, and later changes may or may not be its work. It also ends when a holder
// begins a turn that works inside of it, as an agent does that a supervisor runs.
func (ts Turns) Observe(rec *Record, by Holder, life func(Process) Life) (atWork, after Turns) {
	speaks := rec.Conversation != "" && rec.Kind != Safety && rec.Kind != Rewound
	for _, t := range ts {
		own := speaks && rec.Conversation == t.Conversation && by.ID == t.Holder.ID
		seen := Turn{Conversation: t.Conversation, Number: t.Number, MessageID: t.MessageID, Author: t.Author}
		switch {
		case t.Lost || own && rec.Side == Before:
			seen.Lost = true
		case own && rec.Side == After && !t.newerThan(rec) && !rec.unfinished:
		case speaks && rec.Side == Before && (t.Holder.contains(by) || t.Holder.ID != "" && slices.Contains(by.Within, t.Holder.ID)):
		case own || t.alive(rec.Time, life):
			if own || speaks && rec.Conversation == t.Conversation && t.Holder.ID == "" {
				t.Seen = rec.Time
			}
			after = append(after, t)
		default:
			seen.Lost = true
		}
		atWork = append(atWork, seen)
	}
	if speaks && rec.Side == Before {
		after = append(after, Turn{
			Conversation: rec.Conversation, Number: rec.Turn, MessageID: rec.MessageID, Author: rec.Author,
			Began: rec.ID, Since: rec.Time, Seen: rec.Time, Holder: by,
		})
	}
	return atWork, after
}

// contains reports whether all processes of another holder are among this one's, which has
// more.
func (h *Holder) contains(other Holder) bool {
	if len(other.Processes) == 0 || len(h.Processes) <= len(other.Processes) {
		return false
	}
	for _, p := range other.Processes {
		if !slices.ContainsFunc(h.Processes, p.same) {
			return false
		}
	}
	return true
}

// newerThan reports whether the turn came after the one of a checkpoint: the end of
// an earlier turn in the background is not its end. A holder with an ID has one turn
// at a time.
func (t *Turn) newerThan(rec *Record) bool {
	return t.Holder.ID == "" && rec.Turn != 0 && t.Number > rec.Turn
}

// alive reports whether the turn is running.
func (t *Turn) alive(now time.Time, life func(Process) Life) bool {
	gone := 0
	for _, p := range t.Holder.Processes {
		switch life(p) {
		case Alive:
			return true
		case Gone:
			gone++
		}
	}
	if gone > 0 && gone == len(t.Holder.Processes) {
		return false
	}
	return now.Sub(t.Seen) < turnLife
}

// with adds conversations that have no turn. It is not known when they worked, so
// their turns count as lost: on their own they are blamed for nothing.
func (ts Turns) with(conversations []string) Turns {
	for _, c := range conversations {
		if !slices.ContainsFunc(ts, func(t Turn) bool { return t.Conversation == c }) {
			ts = append(ts, Turn{Conversation: c, Lost: true})
		}
	}
	return ts
}

// conversations lists, sorted, the conversations with lost, or not lost, turns.
func (ts Turns) conversations(lost bool) []string {
	var out []string
	for _, t := range ts {
		if t.Lost == lost {
			out = append(out, t.Conversation)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Running returns the turns of which a process is known to be alive.
func (ts Turns) Running() Turns {
	return slices.DeleteFunc(slices.Clone(ts), func(t Turn) bool {
		return !slices.ContainsFunc(t.Holder.Processes, func(p Process) bool { return p.Life() == Alive })
	})
}

// Living lists the visible running processes of the turn.
func (t *Turn) Living() []Process {
	return slices.DeleteFunc(slices.Clone(t.Holder.Processes), func(p Process) bool { return p.Life() == Gone })
}

// TurnJSON is a running turn in its stable JSON form.
type TurnJSON struct {
	Conversation string        `json:"conversation"`
	Turn         uint64        `json:"turn,omitempty"`
	Since        string        `json:"since"`
	Seen         string        `json:"seen"`
	Processes    []ProcessJSON `json:"processes"`
}

// ProcessJSON is a process in its stable JSON form.
type ProcessJSON struct {
	PID     int    `json:"pid"`
	Command string `json:"command,omitempty"`
}

// JSON returns the turns in their stable JSON form, with their running processes.
func (ts Turns) JSON() []TurnJSON {
	out := make([]TurnJSON, 0, len(ts))
	for _, t := range ts {
		j := TurnJSON{Conversation: t.Conversation, Turn: t.Number, Since: stamp(t.Since), Seen: stamp(t.Seen), Processes: []ProcessJSON{}}
		for _, p := range t.Living() {
			j.Processes = append(j.Processes, ProcessJSON{p.PID, p.Command})
		}
		out = append(out, j)
	}
	return out
}

func (ts Turns) encode() *stetv1.TurnsAtWork {
	m := &stetv1.TurnsAtWork{}
	for _, t := range ts {
		out := &stetv1.TurnAtWork{
			Conversation: t.Conversation, Turn: t.Number, MessageId: t.MessageID, Author: t.Author, Lost: t.Lost,
			Began: t.Began, Holder: t.Holder.ID,
		}
		if !t.Since.IsZero() {
			out.SinceMs, out.SeenMs = t.Since.UnixMilli(), t.Seen.UnixMilli()
		}
		for _, p := range t.Holder.Processes {
			out.Processes = append(out.Processes, &stetv1.TurnProcess{
				Boot: p.Boot, PidNamespace: p.Namespace, Pid: uint64(p.PID), Start: p.Start, Command: p.Command,
			})
		}
		m.Turns = append(m.Turns, out)
	}
	return m
}

func decodeTurns(m *stetv1.TurnsAtWork) Turns {
	var ts Turns
	for _, in := range m.GetTurns() {
		t := Turn{
			Conversation: in.GetConversation(), Number: in.GetTurn(), MessageID: in.GetMessageId(), Author: in.GetAuthor(), Lost: in.GetLost(),
			Began: in.GetBegan(), Holder: Holder{ID: in.GetHolder()},
		}
		if in.GetSinceMs() != 0 {
			t.Since, t.Seen = time.UnixMilli(in.GetSinceMs()), time.UnixMilli(in.GetSeenMs())
		}
		for _, p := range in.GetProcesses() {
			t.Holder.Processes = append(t.Holder.Processes, Process{
				PID: int(p.GetPid()), Start: p.GetStart(), Boot: p.GetBoot(), Namespace: p.GetPidNamespace(), Command: p.GetCommand(),
			})
		}
		ts = append(ts, t)
	}
	return ts
}
