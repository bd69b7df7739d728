// Package intake copies the sessions of other people's agents into a store, as
// conversations. It promises that a second pass adds only what is new, that an
// interrupted pass loses nothing and the next one continues it, that a session that
// grows, or that its agent rewinds, forks or rewrites, keeps everything it ever had,
// and that the raw record is kept beside what was understood.
//
// One session is one conversation under the session's own id. Each turn is one save:
// its message id is the turn's id, its details hold the model, times, tokens and
// cost, what the agent needs to continue after the turn, and where reading continues.
// The saves of many turns are one commit, so a pass that is killed always stops
// between two turns. Memory does not depend on the size of a session.
//
//	m := intake.New(db.Blobs(), db.Rows(), adapter)
//	for s, err := range adapter.Sessions(ctx, host) {
//		...
//		result, err := m.Session(ctx, s)
//	}
//
// A session that was cut off (see conversation.Cutoff), because its conversation was removed
// or a content of it was purged, is copied only from later turns on, without its raw record.
// So is a session that continues it. [Intake.Again] copies removed ones from the beginning.
//
// Adapters find sessions, and the caller decides when to copy them.
package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/kv"
)

// Labels of a conversation that is copied from a session.
const (
	// LabelSource is the name of the adapter, LabelPath the path of the record.
	LabelSource = conversation.LabelSource
	LabelPath   = conversation.LabelPath
	// LabelUnreadable has the parts before the mark that cannot be read, as a list in JSON.
	LabelUnreadable = "source_unreadable"
	// LabelParent and LabelSubagent are those of a session that a tool call started.
	LabelParent   = conversation.LabelParent
	LabelSubagent = conversation.LabelSubagent
)

// Intake copies sessions of one agent. It is safe for concurrent use.
type Intake struct {
	blobs   blob.Store
	rows    kv.Store
	adapter foreign.Adapter
	// batch is how many bytes of turns share a commit.
	batch         int
	again, purged bool // see Again
}

// New returns an intake into the blobs and rows of a store.
func New(blobs blob.Store, rows kv.Store, a foreign.Adapter) *Intake {
	return &Intake{blobs: blobs, rows: rows, adapter: a, batch: gatherBytes}
}

// Result is what a pass over one session did.
type Result struct {
	// Conversation is the id of the conversation, "" if the session is empty.
	Conversation string
	// Created means that the conversation is new.
	Created bool
	// Turns counts new turns, and Grown those that had been copied and have grown.
	Turns, Grown int
	// Bytes counts the bytes of the raw record that were stored.
	Bytes int64
	// Skipped is why nothing was copied, or "".
	Skipped string
	// Unreadable are the parts of the record that could not be read.
	Unreadable []error
	// Passed are the parts that earlier passes could not read, and that this one did not
	// read again because the turns behind them were copied.
	Passed []string
}

// Reasons for Skipped.
const (
	skippedOther     = "the store has a conversation with this id that comes from elsewhere"
	skippedContinued = "it was continued here since it was copied"
	skippedEmpty     = "it has no turns"
	skippedRemoved   = "its conversation was removed here"
	skippedPurged    = "a content of it was purged here, which its agent's record may still have"
	skippedLater     = "the store has what it got after its conversation was removed; 'stet rm' that first to copy all of it"
)

// Session copies what is new in a session.
func (m *Intake) Session(ctx context.Context, s foreign.Session) (Result, error) {
	return m.session(ctx, s, nil)
}

// session is Session with a function that is called with the approximate number of
// bytes read.
func (m *Intake) session(ctx context.Context, s foreign.Session, progress func(read int64)) (Result, error) {
	const attempts = 3
	for i := 0; ; i++ {
		p := &pass{m: m, session: s, rows: gather(m.rows), progress: progress}
		p.store = conversation.New(m.blobs, p.rows, &conversation.Options{Now: func() time.Time { return p.now }})
		err := p.run(ctx)
		if again(err) && i < attempts {
			continue
		}
		if err != nil {
			return p.result, fmt.Errorf("copy session %s: %w", s.ID, err)
		}
		return p.result, nil
	}
}

// again reports whether another attempt can help: another process copies the same session,
// or a collector removed blobs before their commit.
func again(err error) bool {
	var missing *kv.MissingBlobsError
	return errors.Is(err, conversation.ErrStale) || errors.Is(err, conversation.ErrExists) || errors.Is(err, kv.ErrConflict) ||
		errors.As(err, &missing)
}

// pass is one pass over one session.
type pass struct {
	m        *Intake
	session  foreign.Session
	rows     *gathered
	store    *conversation.Store // over rows
	now      time.Time           // of what is copied
	progress func(read int64)    // may be nil
	result   Result

	waiting struct {
		turns, grown, bytes int
		since               time.Time
	} // what was saved and not flushed
	read int64 // bytes of turns so far

	conv   *conversation.Conversation // nil until something is written
	head   conversation.Save          // the current save
	known  map[string]uint64          // turns that were copied: the latest save of each
	last   string                     // the turn that was copied last; see Tip
	shared map[string]bool            // turns of the origin of a fork that come again
	exists bool
	path   string // where the session was when it was copied last
	lost   lost   // what could not be read
	// cut is where the session was cut off, zero if it was not, and origins are the turns
	// of the session that it continues.
	cut     conversation.Cutoff
	origins map[string]bool
	title   string // of the conversation

	origin   string // of a conversation that is a fork
	forkedAt uint64 // save of the origin
}

func (p *pass) run(ctx context.Context) error {
	if reason, err := p.load(ctx); err != nil || reason != "" {
		p.result.Skipped, p.result.Passed = reason, p.lost.passed
		return err
	}
	err := p.turns(ctx, p.mark())
	if errors.Is(err, foreign.ErrMark) && p.mark() != "" {
		err = p.turns(ctx, "")
	}
	if err != nil {
		return err
	}
	if !p.exists {
		p.result.Skipped = p.nothingNew()
		return nil
	}
	p.result.Conversation = p.session.ID
	if err := p.place(ctx); err != nil {
		return err
	}
	if err := p.keepLost(ctx); err != nil {
		return err
	}
	return p.raw(ctx)
}

// place stores where the session is: a conversation may have been created before its
// record existed, and agents move records.
func (p *pass) place(ctx context.Context) error {
	if p.path == valid(p.session.Path) {
		return nil
	}
	if err := p.store.SetLabel(ctx, p.session.ID, LabelPath, valid(p.session.Path)); err != nil {
		return err
	}
	return p.rows.flush(ctx)
}

// load reads what the store has of the session. It returns why the session is left alone,
// or "".
func (p *pass) load(ctx context.Context) (string, error) {
	p.known = map[string]uint64{}
	info, err := p.store.Get(ctx, p.session.ID)
	if errors.Is(err, conversation.ErrNotFound) {
		return p.cutoff(ctx, false, false)
	}
	if err != nil {
		return "", err
	}
	if info.Labels[LabelSource] != p.session.Agent {
		return skippedOther, nil
	}
	if reason, err := p.cutoff(ctx, true, info.Save != 0); err != nil || reason != "" {
		return reason, err
	}
	p.exists, p.path, p.title = true, info.Labels[LabelPath], info.Title
	p.lost.read(info.Labels[LabelUnreadable])
	p.origin, p.forkedAt = info.ForkedFrom, info.ForkedFromSave
	for save, err := range p.store.History(ctx, p.session.ID, nil) {
		if err != nil {
			return "", err
		}
		if save.Seq > p.head.Seq {
			p.head = save
			if save.Kind != conversation.KindRewind {
				p.last = save.MessageID
			}
		}
		if save.MessageID != "" && save.Seq > p.known[save.MessageID] {
			p.known[save.MessageID] = save.Seq
		}
	}
	if p.head.Kind == conversation.KindSave {
		return skippedContinued, nil
	}
	return "", nil
}

// mark is where reading continues: after the last turn that was copied, which after a
// rewind is not the current one.
func (p *pass) mark() foreign.Mark {
	if p.head.Turn == nil || p.head.Kind != conversation.KindImport {
		return ""
	}
	return foreign.Mark(p.head.Turn.Mark)
}

// turns copies the turns from a mark on. Turns that were read before an error stay.
func (p *pass) turns(ctx context.Context, from foreign.Mark) error {
	err := p.copyTurns(ctx, from)
	return cmp.Or(err, p.flush(ctx))
}

func (p *pass) copyTurns(ctx context.Context, from foreign.Mark) error {
	if from == "" {
		p.lost.again()
		if err := p.recall(ctx); err != nil {
			return err
		}
		if err := p.findOrigins(ctx); err != nil {
			return err
		}
	}
	for t, err := range p.m.adapter.Turns(ctx, p.session, from) {
		if foreign.Unreadable(err) {
			p.result.Unreadable = append(p.result.Unreadable, err)
			p.lost.found(err)
			continue
		}
		if err != nil {
			return err
		}
		if p.leftOut(t) {
			continue
		}
		if err := p.turn(ctx, t); err != nil {
			return err
		}
		p.lost.pass()
	}
	return nil
}

// turn copies one turn, unless the store has it.
func (p *pass) turn(ctx context.Context, t foreign.Turn) error {
	p.now = cmp.Or(whole(t.Ended), whole(t.Started), whole(p.session.Updated), whole(p.session.Started), time.Now())
	made, err := NewTurn(p.session.Agent, t)
	if err != nil {
		return fmt.Errorf("turn %s: %w", t.ID, err)
	}
	if err := p.create(ctx, t); err != nil {
		return err
	}
	if err := p.entitle(ctx, t); err != nil {
		return err
	}
	if p.shared[t.ID] {
		return nil
	}
	if seq, ok := p.known[t.ID]; ok {
		return p.again(ctx, t, made, seq)
	}
	if err := p.open(ctx); err != nil {
		return err
	}
	if err := p.follow(ctx, t); err != nil {
		return err
	}
	if err := p.conv.AppendTurn(ctx, made); err != nil {
		return err
	}
	p.waiting.turns++
	return p.save(ctx, t)
}

// again handles a turn that was copied before. The last one may have grown since; an
// earlier one stays as it was copied, also if a rewind went back to it, and the raw record
// has what changed. A save of it would be the end of the session's record.
func (p *pass) again(ctx context.Context, t foreign.Turn, made conversation.Turn, seq uint64) error {
	if seq != p.head.Seq || t.ID != p.last {
		return nil
	}
	old, err := p.lastTurn(ctx)
	if err != nil {
		return err
	}
	details := detailsOf(t)
	if old == made.Structure.ID() && p.head.Turn != nil && p.head.Turn.Done == details.Done && p.head.Turn.Mark == details.Mark {
		return nil
	}
	if err := p.open(ctx); err != nil {
		return err
	}
	if old != made.Structure.ID() {
		p.waiting.grown++
		if err := p.dropLast(ctx); err != nil {
			return err
		}
		if err := p.conv.AppendTurn(ctx, made); err != nil {
			return err
		}
	}
	return p.save(ctx, t)
}

// save saves the turn that was appended.
func (p *pass) save(ctx context.Context, t foreign.Turn) error {
	if timing := timingOf(t); timing != nil {
		if err := p.conv.SetTiming(ctx, timing); err != nil {
			return err
		}
	}
	save, err := p.conv.Save(ctx, &conversation.SaveOptions{MessageID: t.ID, Kind: conversation.KindImport, Turn: detailsOf(t)})
	if err != nil {
		return err
	}
	p.head, p.known[t.ID], p.last = save, save.Seq, t.ID
	return p.full(ctx, sizeOf(t))
}

// full flushes if enough waits, after a turn of some bytes was saved.
func (p *pass) full(ctx context.Context, bytes int) error {
	if p.waiting.bytes == 0 {
		p.waiting.since = time.Now()
	}
	p.waiting.bytes += bytes
	p.read += int64(bytes)
	if p.waiting.bytes < p.m.batch && p.rows.commits < gatherSaves && time.Since(p.waiting.since) < gatherTime {
		return nil
	}
	return p.flush(ctx)
}

// flush makes what was saved durable.
func (p *pass) flush(ctx context.Context) error {
	if err := p.rows.flush(ctx); err != nil {
		return err
	}
	p.result.Turns += p.waiting.turns
	p.result.Grown += p.waiting.grown
	p.waiting.turns, p.waiting.grown, p.waiting.bytes = 0, 0, 0
	if p.progress != nil {
		p.progress(min(p.read, p.session.Size))
	}
	return nil
}

// sizeOf returns the approximate size of a turn, at least 1.
func sizeOf(t foreign.Turn) int {
	n := 1 + len(t.Prompt)
	for _, s := range t.Steps {
		n += len(s.Text) + len(s.Thinking)
		if s.Call != nil {
			n += len(s.Call.Input) + len(s.Call.Output)
		}
	}
	return n
}

// raw copies the raw record. That of a session that was cut off stays as it is: it would
// bring back what was removed.
func (p *pass) raw(ctx context.Context) error {
	if !p.cut.Until.IsZero() {
		return nil
	}
	r, err := openRaw(ctx, p.m.blobs, p.m.rows, p.session.ID)
	if err != nil {
		return err
	}
	r.guard = p.rows.guard
	for f, err := range p.m.adapter.Files(ctx, p.session) {
		if err == nil {
			err = r.add(ctx, f)
		}
		if foreign.Unreadable(err) {
			p.result.Unreadable = append(p.result.Unreadable, err)
			continue
		}
		if err != nil {
			return err
		}
	}
	p.result.Bytes = r.bytes
	return r.commit(ctx)
}
