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

// How many saves, and how many of their blobs, are added by one commit: many small saves
// take as long as a few large ones.
const (
	groupSaves = 48
	groupBlobs = 256
)

// saves adds the saves that the target lacks, a few per commit: an interrupted transfer
// leaves the target at an earlier complete save, and is resumed from there.
func (m *mover) saves(ctx context.Context, here, there *history, p plan, saves []save, moved *Moved) error {
	w := &writer{m: m, there: service(m.to).Receive(there, m.commit), numbers: p.numbers}
	for from, to := range w.numbers {
		w.shifted = w.shifted || from != to
	}
	if there.Conversation == nil {
		if err := w.create(ctx, here); err != nil {
			return err
		}
	}
	for len(saves) > 0 {
		n, blobs := 1, len(saves[0].ids)
		for n < min(len(saves), groupSaves) && blobs+len(saves[n].ids) <= groupBlobs {
			blobs += len(saves[n].ids)
			n++
		}
		if err := m.some(ctx, w, saves[:n], moved); err != nil {
			return err
		}
		saves = saves[n:]
	}
	return nil
}

// some adds saves with one commit.
func (m *mover) some(ctx context.Context, w *writer, saves []save, moved *Moved) error {
	name := func(s save, err error) error { return fmt.Errorf("save %d: %w", s.rec.GetSeq(), err) }
	var ids []blob.ID
	for _, s := range saves {
		ids = append(ids, s.ids...)
	}
	if err := m.lookFor(ctx, ids); err != nil {
		return name(saves[0], err)
	}
	for _, s := range saves {
		m.root = s.root
		if err := m.send(ctx, s.ids); err != nil {
			return name(s, err)
		}
		m.before = s.root
	}
	m.known = nil
	if err := w.add(ctx, saves, moved.Status); err != nil {
		return name(saves[0], err)
	}
	moved.Saves += len(saves)
	m.progress()
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

// add commits saves.
func (w *writer) add(ctx context.Context, saves []save, status Status) error {
	if w.m.opts.DryRun {
		return nil
	}
	next := make([]conversation.Received, len(saves))
	head := w.there.Have().Head()
	for i, s := range saves {
		rec, err := w.renumber(s.rec, head, status)
		if err != nil {
			return err
		}
		next[i] = conversation.Received{Save: rec, Refs: s.ids}
		w.numbers[s.rec.GetSeq()], head = rec.GetSeq(), rec
	}
	return w.there.AppendAll(ctx, next)
}

// renumber assigns a save its place in the target's history, after head. While the numbers of
// both sides agree they are kept, even if the policy of the source has removed some.
func (w *writer) renumber(s, head *stetv1.SaveRecord, status Status) (*stetv1.SaveRecord, error) {
	next := proto.CloneOf(s)
	last := head.GetSeq()
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
		next.Branch = head.GetBranch()
	default:
		next.Branch = fmt.Sprintf("after-%d", next.Parent)
	}
	return next, nil
}
