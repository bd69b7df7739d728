package transfer

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
)

// save is a save that the target lacks, with its blobs.
type save struct {
	rec  *stetv1.SaveRecord
	root blob.ID
	ids  []blob.ID // without those of earlier units
}

// lookAtSaves finds the blobs of the saves to be added.
func (m *mover) lookAtSaves(ctx context.Context, p plan) ([]save, error) {
	if p.base != nil {
		if err := m.skip(ctx, p.base); err != nil {
			return nil, err
		}
	}
	saves := make([]save, 0, len(p.add))
	for _, rec := range p.add {
		root, err := blob.IDFromBytes(rec.GetRoot())
		if err != nil {
			return nil, fmt.Errorf("%w: save %d: %w", kv.ErrCorrupt, rec.GetSeq(), err)
		}
		ids, err := m.state(ctx, root)
		if err != nil {
			return nil, fmt.Errorf("save %d: %w", rec.GetSeq(), err)
		}
		saves = append(saves, save{rec, root, ids})
	}
	return saves, nil
}

// saves adds the saves that the target lacks, each with its own commit: an
// interrupted transfer leaves the target at an earlier complete save, and is resumed
// from there.
func (m *mover) saves(ctx context.Context, here, there *history, p plan, saves []save, moved *Moved) error {
	w := &writer{m: m, there: service(m.to).Receive(there, m.commit), numbers: p.numbers}
	if there.Conversation == nil {
		if err := w.create(ctx, here); err != nil {
			return err
		}
	}
	for _, s := range saves {
		m.root = s.root
		err := m.send(ctx, s.ids)
		if m.before = s.root; err == nil {
			err = w.add(ctx, s.rec, moved.Status, s.ids)
		}
		if err != nil {
			return fmt.Errorf("save %d: %w", s.rec.GetSeq(), err)
		}
		moved.Saves++
		m.progress()
	}
	return nil
}

// skip marks everything that a save refers to as known: the target has that save, and
// so everything below it.
func (m *mover) skip(ctx context.Context, s *stetv1.SaveRecord) error {
	root, err := blob.IDFromBytes(s.GetRoot())
	if err != nil {
		return fmt.Errorf("%w: save %d: %w", kv.ErrCorrupt, s.GetSeq(), err)
	}
	m.before = root
	raw, err := m.from.Blobs.Get(ctx, root)
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
		return nil // nothing can be skipped
	}
	if err != nil {
		return err
	}
	refs, err := graph.Refs(graph.State, raw)
	if err != nil {
		return nil // the walk that needs it reports the error
	}
	for _, r := range refs {
		m.seen.Add(r.ID, r.Kind)
	}
	return nil
}

// writer adds saves to the target's history.
type writer struct {
	m       *mover
	there   *conversation.Receiver
	numbers map[uint64]uint64 // of saves at the source → here
	shifted bool              // numbers differ from those of the source
}

// create creates the empty conversation.
func (w *writer) create(ctx context.Context, here *history) error {
	if w.m.opts.DryRun {
		return nil
	}
	return w.there.Create(ctx, here.Conversation)
}

// add commits one save.
func (w *writer) add(ctx context.Context, s *stetv1.SaveRecord, status Status, refs []blob.ID) error {
	if w.m.opts.DryRun {
		return nil
	}
	next, err := w.renumber(s, status)
	if err != nil {
		return err
	}
	if err := w.there.Append(ctx, next, refs); err != nil {
		return err
	}
	w.numbers[s.GetSeq()] = next.GetSeq()
	return nil
}

// renumber assigns a save its place in the target's history. While the numbers of
// both sides agree they are kept, even if the policy of the source has removed some.
func (w *writer) renumber(s *stetv1.SaveRecord, status Status) (*stetv1.SaveRecord, error) {
	next := proto.CloneOf(s)
	last := w.there.Have().Head().GetSeq()
	for from, to := range w.numbers {
		w.shifted = w.shifted || from != to
	}
	if !w.shifted && status != Forced && s.GetSeq() > last {
		return next, nil
	}
	w.shifted = true
	if last >= conversation.MaxSeq {
		return nil, fmt.Errorf("%w: the history of the target is full", kv.ErrInvalidBatch)
	}
	next.Seq = last + 1
	next.Parent = w.numbers[s.GetParent()]
	next.RewoundFrom = w.numbers[s.GetRewoundFrom()]
	switch {
	case next.Branch != "":
	case next.Parent == last:
		next.Branch = w.there.Have().Head().GetBranch()
	default:
		next.Branch = fmt.Sprintf("after-%d", next.Parent)
	}
	return next, nil
}
