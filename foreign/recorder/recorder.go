// Package recorder turns the events of a connected agent into checkpoints and turns.
// It promises that the checkpoint before a turn is taken before the agent continues,
// that the one after it holds what the turn left, that the turn's words are copied
// into the store even if the agent records them after it reported the end, and that a
// change without a certain author is attributed to nobody. It is independent of
// agents: adapters decode events and read sessions.
//
// Events inside a turn only need package spool, which is fast. The events for which
// Boundary is true need an open store.
package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/intake"
	"github.com/stet-dev/stet/foreign/spool"
	"github.com/stet-dev/stet/kv"
)

// Recorder records the sessions of one agent in one store.
type Recorder struct {
	Adapter foreign.Adapter
	Host    foreign.Host
	Blobs   blob.Store
	Rows    kv.Store
	// Spool is the directory of the spool.
	Spool string
	// Space opens the workspace of a directory in which the agent works. It returns nil
	// if nothing is captured there.
	Space func(ctx context.Context, dir string) (*checkpoint.Workspace, error)
	// Author is kept with checkpoints.
	Author string
	// Origin returns the session that a new one continues, and the last turn of both, for
	// agents whose records do not say that; "" for none. It may be nil.
	Origin func(ctx context.Context, s foreign.Session) (from, after string, err error)
	// Within reports whether the agent runs inside of a command, whose open turn it is, that
	// waits for it. That turn ends where one of the agent begins. It may be nil.
	Within func(t checkpoint.Turn) bool
}

// Outcome is the result of an event.
type Outcome struct {
	// Conversation is the conversation of the session.
	Conversation string
	// Checkpoint is the checkpoint that was taken, or nil. Result says what it lacks.
	Checkpoint *checkpoint.Record
	Result     *checkpoint.Result
	// Turns counts turns that were copied.
	Turns int
	// Wordless means that the agent has not yet recorded the words of a turn that ended.
	// Words copies them later, as does the next event of the session.
	Wordless bool
	// Unreadable are parts of the session that could not be read.
	Unreadable []error
}

// Boundary reports whether an event begins or ends something, so that Record has work
// to do for it.
func Boundary(e foreign.Event) bool {
	switch e.Kind {
	case foreign.TurnStart:
		return e.Subagent == ""
	case foreign.TurnEnd, foreign.TaskEnd, foreign.SessionEnd:
		return true
	}
	return false
}

// Record handles an event. The processes are the agent's; when they are gone, the turn
// has ended. A failure to copy the session does not prevent the checkpoint; both errors
// are returned.
func (r *Recorder) Record(ctx context.Context, e foreign.Event, agent ...checkpoint.Process) (Outcome, error) {
	if !Boundary(e) {
		return Outcome{}, nil
	}
	if e.Session == "" {
		return Outcome{}, fmt.Errorf("%w: it names no session", foreign.ErrEvent)
	}
	out := Outcome{Conversation: e.Session}
	unlock, err := r.spool(e).Lock(ctx) // an agent may report two events at once
	if ctx.Err() != nil {
		return out, err
	}
	if err == nil { // without a spool the checkpoint is taken all the same
		defer unlock()
	}
	if e.Workspace, err = r.place(ctx, e); err != nil {
		return out, err
	}
	copied := r.copy(ctx, e, &out)
	info, err := r.conversation(ctx, e)
	if err != nil {
		return out, errors.Join(copied, err)
	}
	space, err := r.Space(ctx, e.Workspace)
	if err != nil || space == nil {
		return out, errors.Join(copied, err)
	}
	req := checkpoint.Request{
		Conversation: info.ID, Root: info.Root, Author: r.Author, Auto: true,
		Holder: checkpoint.Holder{ID: e.Session, Processes: agent},
		Beside: r.beside(space, e),
	}
	if _, err := r.completeWords(ctx, space, info.ID); err != nil {
		copied = errors.Join(copied, err)
	}
	ask := r.begin
	if e.Kind != foreign.TurnStart {
		ask = r.end
	}
	wanted, err := ask(ctx, space, info, e, &req)
	if err == nil && wanted {
		if out.Result, err = space.Checkpoint(ctx, req); err == nil {
			copied = errors.Join(copied, out.Result.StateError) // the files are captured
		}
	}
	if err == nil && wanted && e.Kind == foreign.TurnStart {
		err = r.recorded(ctx, space, e, req)
	}
	if out.Result != nil {
		out.Checkpoint = out.Result.Record
	}
	if err == nil && wanted && req.Side == checkpoint.After {
		var have words
		have, err = r.completeWords(ctx, space, info.ID)
		out.Wordless = have == none
	}
	return out, errors.Join(copied, err, space.Close())
}

// place returns the directory that an event concerns. A turn ends where it began: its
// agent may have gone to another directory since.
func (r *Recorder) place(ctx context.Context, e foreign.Event) (string, error) {
	if e.Kind == foreign.TurnStart {
		return e.Workspace, nil
	}
	turn, err := r.ending(ctx, e)
	if err != nil || turn == nil {
		return e.Workspace, err
	}
	for _, entry := range turn.Events {
		if entry.Kind == foreign.TurnStart && entry.Workspace != "" {
			return entry.Workspace, nil
		}
	}
	return e.Workspace, nil
}

func (r *Recorder) spool(e foreign.Event) *spool.Spool {
	return spool.Open(r.Spool, r.Adapter.Name(), e.Session)
}

// read reads a turn of the spool. One that cannot be read is empty: adding events to
// it reports the error.
func (r *Recorder) read(ctx context.Context, turn func(context.Context) (spool.Turn, error)) (spool.Turn, error) {
	t, err := turn(ctx)
	if err != nil && ctx.Err() == nil {
		return spool.Turn{}, nil
	}
	return t, err
}

// endDelay is how long the end of a turn may wait to be handled. Until then what the
// workspace has is what the turn left.
const endDelay = 10 * time.Second

// begin fills in the request for the checkpoint before a turn. A turn of the session
// that is still open ends first. If its end was reported just now, by an event that is
// still to be handled or whose background task has ended since, its checkpoint is taken
// here. Otherwise it was interrupted: what its edit tools wrote is captured as its
// work. Other changes since its last checkpoint may be the work of others and are
// attributed to nobody.
func (r *Recorder) begin(ctx context.Context, space *checkpoint.Workspace, info conversation.Info, e foreign.Event, req *checkpoint.Request) (bool, error) {
	open, err := space.AtWork(ctx)
	if err != nil {
		return false, err
	}
	tip, err := r.lastBefore(ctx, info.ID, e)
	if err != nil {
		return false, err
	}
	current, err := r.read(ctx, r.spool(e).Turn)
	if err != nil || current.Recorded || superseded(current, e) {
		return false, err
	}
	previous, err := r.read(ctx, r.spool(e).Previous)
	if err != nil {
		return false, err
	}
	req.Side, req.Turn, req.MessageID, req.Root = checkpoint.Before, tip.Turns+1, e.Turn, tip.Root
	last := checkpoint.Turn{Number: tip.Turns}
	ended, interrupted := false, previous.Ends() == 0 // also if its agent was killed, so that it is not open
	for _, t := range open {
		if t.Conversation != info.ID {
			if r.Within != nil && r.Within(t) {
				req.Holder.Within = append(req.Holder.Within, t.Holder.ID)
			}
			continue
		}
		req.Turn = max(req.Turn, t.Number+1)
		if t.Holder.ID == e.Session {
			last, interrupted = t, true
			if ended, err = r.justEnded(ctx, space, t, previous); err != nil {
				return false, err
			}
		}
	}
	switch {
	case ended:
		after := *req
		if err := r.after(ctx, space, info, last, previous, e.Workspace, &after); err != nil {
			return false, err
		}
		after.MessageID = cmp.Or(after.MessageID, last.MessageID)
		_, err = space.Checkpoint(ctx, after)
	case interrupted:
		err = r.interrupted(ctx, space, last, previous, e, *req)
	}
	return true, err
}

// justEnded reports whether the end of an open turn was reported just now, and no checkpoint
// was taken since.
func (r *Recorder) justEnded(ctx context.Context, space *checkpoint.Workspace, t checkpoint.Turn, events spool.Turn) (bool, error) {
	at := events.Ended()
	if !at.After(time.Now().Add(-endDelay)) {
		return false, nil
	}
	last, err := latest(ctx, space)
	if err != nil {
		return false, err
	}
	return !endOf(last, t) || last.Time.Before(at.Truncate(time.Millisecond)), nil
}

// endOf reports whether a checkpoint, which may be nil, is one after a turn.
func endOf(rec *checkpoint.Record, t checkpoint.Turn) bool {
	return rec != nil && rec.Conversation == t.Conversation && rec.Turn == t.Number && rec.Side == checkpoint.After
}

// latest returns the latest checkpoint of a workspace, or nil.
func latest(ctx context.Context, space *checkpoint.Workspace) (*checkpoint.Record, error) {
	for rec, err := range space.List(ctx, nil) {
		return rec, err
	}
	return nil, nil
}

// after fills in the request for the checkpoint after a turn. It has no message if the
// turn is not copied.
func (r *Recorder) after(ctx context.Context, space *checkpoint.Workspace, info conversation.Info, turn checkpoint.Turn, events spool.Turn, dir string, req *checkpoint.Request) error {
	req.Touched, req.Shared = r.written(space.Path(), dir, events)
	req.Side, req.Turn, req.MessageID = checkpoint.After, turn.Number, ""
	if info.Save == 0 || info.Turns != turn.Number {
		return nil
	}
	// The copied turn has the id that the record uses, which some events lack.
	last, err := conversation.New(r.Blobs, r.Rows, nil).SaveAt(ctx, info.ID, info.Save)
	req.MessageID = last.MessageID
	return err
}

// lastBefore returns the last copied save before the turn that an event begins. Some
// agents record a turn before they report it, and an event that is handled late finds
// its turn copied.
func (r *Recorder) lastBefore(ctx context.Context, conv string, e foreign.Event) (conversation.Save, error) {
	store := conversation.New(r.Blobs, r.Rows, nil)
	tip, err := intake.Tip(ctx, store, conv)
	for err == nil && e.Turn != "" && tip.Seq > 0 {
		before, err := turnBefore(ctx, store, conv, tip)
		if err != nil {
			return tip, err
		}
		begun, err := r.begun(ctx, e, tip, before)
		if err != nil || !begun {
			return tip, err
		}
		tip = before
	}
	return tip, err
}

// turnBefore returns the last save before the turn of a save, which may have several.
func turnBefore(ctx context.Context, store *conversation.Store, conv string, of conversation.Save) (conversation.Save, error) {
	for at := of; at.Parent != 0; {
		var err error
		if at, err = store.SaveAt(ctx, conv, at.Parent); err != nil || at.MessageID != of.MessageID {
			return at, err
		}
	}
	return conversation.Save{}, nil
}

// begun reports whether a save is of the turn that an event begins. Only the record of
// the agent says how events name a turn, so the turn is read again; not if it was done
// before the event, as the last turn usually is.
func (r *Recorder) begun(ctx context.Context, e foreign.Event, save, before conversation.Save) (bool, error) {
	if save.MessageID == e.Turn || save.Kind != conversation.KindImport || save.Turn == nil {
		return save.MessageID == e.Turn, nil
	}
	current, err := r.read(ctx, r.spool(e).Turn)
	if err != nil {
		return false, err
	}
	over := func(start spool.Entry) bool {
		return start.Kind == foreign.TurnStart && save.Turn.Done && !save.Turn.Ended.IsZero() && save.Turn.Ended.Before(start.Time)
	}
	if slices.ContainsFunc(current.Events, over) {
		return false, nil
	}
	mark := foreign.Mark("")
	if before.Turn != nil {
		mark = foreign.Mark(before.Turn.Mark)
	}
	for s, err := range r.sessions(ctx, e) {
		if err != nil || s.ID != e.Session {
			continue // copy reported the error
		}
		for t, err := range r.Adapter.Turns(ctx, s, mark) {
			if err == nil && t.ID == save.MessageID {
				return t.EventID == e.Turn, nil
			}
		}
	}
	return false, ctx.Err()
}

// superseded reports whether another turn of the session has begun since an event that is
// handled late.
func superseded(current spool.Turn, e foreign.Event) bool {
	return current.Has(foreign.TurnStart, nil) && !current.Has(e.Kind, e.Raw)
}

// recorded records that the store has the beginning of a turn. If its checkpoint was
// taken late, after the turn had ended, the turn ends: later changes of others are
// not its work. The event of the end is in the spool before it is handled, so either
// it is seen here, or its handler finds the turn open.
func (r *Recorder) recorded(ctx context.Context, space *checkpoint.Workspace, e foreign.Event, req checkpoint.Request) error {
	current, err := r.read(ctx, r.spool(e).Turn)
	if err != nil {
		return err
	}
	if current.Ends() > 0 {
		return space.Release(ctx, req.Conversation, req.Holder)
	}
	if !current.Has(foreign.TurnStart, e.Raw) {
		return nil // not in the spool, or another turn has begun
	}
	return current.SetRecorded(time.Now())
}

// end fills in the request for the checkpoint after a turn. A background task that
// continues keeps the turn open. Of a turn whose beginning the store does not have, and of
// one that was interrupted before its session ended, only what its edit tools wrote is
// captured as its work.
func (r *Recorder) end(ctx context.Context, space *checkpoint.Workspace, info conversation.Info, e foreign.Event, req *checkpoint.Request) (bool, error) {
	turn, ok, err := r.open(ctx, space, info.ID, e.Session)
	if err != nil {
		return false, err
	}
	current, err := r.ending(ctx, e)
	if err != nil || current == nil {
		return false, err
	}
	if !ok && e.Continued { // the turn that has ended goes on
		last, err := latest(ctx, space)
		if err != nil {
			return false, err
		}
		if last != nil {
			turn = checkpoint.Turn{Conversation: info.ID, Number: last.Turn, MessageID: last.MessageID}
			ok = endOf(last, turn) && current.Recorded
		}
	}
	if !ok { // it has ended, or nobody saw it begin
		if current.Recorded || e.Kind == foreign.TaskEnd || current.Ends() > 1 {
			return false, nil
		}
		return false, r.interrupted(ctx, space, checkpoint.Turn{Number: info.Turns, MessageID: e.Turn}, *current, e, *req)
	}
	if e.Kind == foreign.SessionEnd {
		ended, err := r.justEnded(ctx, space, turn, *current)
		if err == nil && !ended {
			if err = r.interrupted(ctx, space, turn, *current, e, *req); err == nil {
				err = space.Release(ctx, req.Conversation, req.Holder)
			}
		}
		if err != nil || !ended {
			return false, err
		}
	}
	tasks, ended := e.Background, false
	for _, entry := range current.Events {
		ended = ended || entry.Kind == foreign.TurnEnd
		if e.Kind == foreign.TaskEnd {
			tasks += map[foreign.EventKind]int{foreign.TaskStart: 1, foreign.TaskEnd: -1}[entry.Kind]
		}
	}
	if e.Kind == foreign.TaskEnd && !ended {
		return false, nil // the turn goes on
	}
	if err := r.after(ctx, space, info, turn, *current, e.Workspace, req); err != nil {
		return false, err
	}
	req.MessageID = cmp.Or(req.MessageID, e.Turn, turn.MessageID)
	req.Unfinished = tasks > 0 && e.Kind != foreign.SessionEnd
	return true, nil
}

// ending returns the turn that an event ends, or nil if the store has a later one.
func (r *Recorder) ending(ctx context.Context, e foreign.Event) (*spool.Turn, error) {
	current, err := r.read(ctx, r.spool(e).Turn)
	if err != nil || !superseded(current, e) {
		return &current, err
	}
	if current.Recorded {
		return nil, nil
	}
	current, err = r.read(ctx, r.spool(e).Previous)
	return &current, err
}

// open returns the turn of a session that is open in a workspace.
func (r *Recorder) open(ctx context.Context, space *checkpoint.Workspace, conv, holder string) (checkpoint.Turn, bool, error) {
	turns, err := space.AtWork(ctx)
	for _, t := range turns {
		if t.Conversation == conv && t.Holder.ID == holder {
			return t, true, err
		}
	}
	return checkpoint.Turn{}, false, err
}

// conversation returns the session's conversation. The record of a new session may
// not exist yet; then the conversation is created without turns, and named after the
// first prompt that a person typed. A conversation that was removed begins again with the
// next turn, not with the end of one.
func (r *Recorder) conversation(ctx context.Context, e foreign.Event) (conversation.Info, error) {
	store := conversation.New(r.Blobs, r.Rows, nil)
	fresh := intake.Info(foreign.Session{
		Agent: r.Adapter.Name(), ID: e.Session, Path: e.Transcript, Workspace: e.Workspace,
	}, foreign.Turn{Prompt: e.Prompt, Automatic: e.Automatic})
	info, err := store.Get(ctx, e.Session)
	if err == nil && info.Title == "" && fresh.Title != "" {
		info.Title = fresh.Title
		return info, store.SetTitle(ctx, info.ID, info.Title)
	}
	if !errors.Is(err, conversation.ErrNotFound) {
		return info, err
	}
	if e.Kind != foreign.TurnStart {
		cut, _, err := store.Cutoff(ctx, e.Session)
		if err != nil || cut.Removed {
			return conversation.Info{ID: e.Session}, err
		}
	}
	_, err = store.Create(ctx, fresh)
	if err != nil && !errors.Is(err, conversation.ErrExists) {
		return info, err
	}
	return store.Get(ctx, e.Session)
}

// copy copies what is new in the session and its subagents.
func (r *Recorder) copy(ctx context.Context, e foreign.Event, out *Outcome) error {
	var errs []error
	m := intake.New(r.Blobs, r.Rows, r.Adapter)
	for s, err := range r.sessions(ctx, e) {
		if errors.Is(err, fs.ErrNotExist) {
			continue // a new session has no record yet
		}
		if err != nil {
			out.Unreadable = append(out.Unreadable, err)
			continue
		}
		if s.ID == e.Session {
			s, err = r.withOrigin(ctx, s, e)
			errs = append(errs, err)
		}
		result, err := m.Session(ctx, s)
		out.Turns += result.Turns
		out.Unreadable = append(out.Unreadable, result.Unreadable...)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// withOrigin completes a new session whose record does not say that it continues another one.
func (r *Recorder) withOrigin(ctx context.Context, s foreign.Session, e foreign.Event) (foreign.Session, error) {
	if r.Origin == nil || s.ForkedFrom != "" {
		return s, nil
	}
	_, err := conversation.New(r.Blobs, r.Rows, nil).Get(ctx, s.ID)
	if !errors.Is(err, conversation.ErrNotFound) {
		return s, err
	}
	asked := s
	asked.Workspace = cmp.Or(s.Workspace, e.Workspace)
	from, after, err := r.Origin(ctx, asked)
	if err != nil || from == "" || after == "" {
		return s, err
	}
	for t, err := range r.Adapter.Turns(ctx, s, "") {
		if err == nil && t.ID == after { // a copy may have other ids
			s.ForkedFrom, s.ForkedAfter = from, after
			break
		}
	}
	return s, nil
}

// sessions finds the record of an event's session. A session that has none yet is not an
// error.
func (r *Recorder) sessions(ctx context.Context, e foreign.Event) iter.Seq2[foreign.Session, error] {
	if e.Transcript != "" {
		return r.Adapter.SessionAt(ctx, r.Host, e.Transcript)
	}
	return func(yield func(foreign.Session, error) bool) {
		for s, err := range r.Adapter.Sessions(ctx, r.Host) {
			own := err == nil && (s.ID == e.Session || s.Parent == e.Session)
			if own && !yield(s, nil) {
				return
			}
		}
	}
}
