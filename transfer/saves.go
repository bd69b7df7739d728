package transfer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
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
	w := &writer{m: m, there: there, numbers: p.numbers}
	if there.record == nil {
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
	there   *history
	numbers map[uint64]uint64 // of saves at the source → here
	ours    bool              // this writer has taken over the conversation
	shifted bool              // numbers differ from those of the source
}

// create creates the empty conversation.
func (w *writer) create(ctx context.Context, here *history) error {
	if w.m.opts.DryRun {
		return nil
	}
	rec := proto.CloneOf(here.record)
	rec.Epoch, rec.Writer = 1, randomWriter() // writers of the source must not write here
	value, err := encode(rec)
	if err != nil {
		return err
	}
	key := keyspace.Conversation(rec.GetId())
	err = w.m.commit(ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: key}, {Key: keyspace.Head(rec.GetId())}},
		Set:    []kv.Set{{Key: key, Value: value}, {Key: keyspace.ByTime(rec.GetCreatedAtMs(), rec.GetId())}},
	})
	if err != nil {
		return err
	}
	row, err := w.m.to.Rows.Get(ctx, key)
	if err != nil {
		return err
	}
	w.there.record, w.there.version, w.ours = rec, row.Version, true
	return nil
}

func randomWriter() []byte {
	w := make([]byte, 16)
	rand.Read(w) // never fails
	return w
}

// add commits one save. The first one also takes over the conversation, which makes
// other writers stale.
func (w *writer) add(ctx context.Context, s *stetv1.SaveRecord, status Status, refs []blob.ID) error {
	if w.m.opts.DryRun {
		return nil
	}
	next, err := w.renumber(s, status)
	if err != nil {
		return err
	}
	value, err := encode(next)
	if err != nil {
		return err
	}
	id, root := w.there.id, []byte(fmt.Sprintf("%x", next.GetRoot()))
	record := keyspace.Conversation(id)
	b := &kv.Batch{
		Expect: []kv.Expect{{Key: record, Version: w.there.version}, {Key: keyspace.Save(id, next.GetSeq())}},
		Delete: []string{keyspace.ByTime(w.there.listedAt(), id)},
		Set: []kv.Set{
			{Key: keyspace.Head(id), Value: root},
			{Key: keyspace.Save(id, next.GetSeq()), Value: value},
			{Key: keyspace.ByTime(next.GetTimeMs(), id)},
		},
		Refs: refs,
	}
	// A save of another writer does not change the record; its number shows it.
	if after := w.there.head().GetSeq() + 1; after < next.GetSeq() {
		b.Expect = append(b.Expect, kv.Expect{Key: keyspace.Save(id, after)})
	}
	if message := next.GetMessageId(); message != "" {
		b.Set = append(b.Set, kv.Set{Key: keyspace.MessageHead(id, message), Value: root})
	}
	if !w.ours {
		rec := proto.CloneOf(w.there.record)
		if rec.GetEpoch() >= conversation.MaxSeq {
			return errors.New("its epochs at the target are exhausted")
		}
		rec.Epoch, rec.Writer = rec.GetEpoch()+1, randomWriter()
		value, err := encode(rec)
		if err != nil {
			return err
		}
		b.Set = append(b.Set, kv.Set{Key: record, Value: value})
	}
	if err := w.m.commit(ctx, b); err != nil {
		return err
	}
	if !w.ours {
		row, err := w.m.to.Rows.Get(ctx, record)
		if err != nil {
			return err
		}
		w.there.version, w.ours = row.Version, true
	}
	w.numbers[s.GetSeq()] = next.GetSeq()
	w.there.saves = append(w.there.saves, next)
	return nil
}

// renumber assigns a save its place in the target's history. While the numbers of
// both sides agree they are kept, even if the policy of the source has removed some.
func (w *writer) renumber(s *stetv1.SaveRecord, status Status) (*stetv1.SaveRecord, error) {
	next := proto.CloneOf(s)
	last := w.there.head().GetSeq()
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
		next.Branch = w.there.head().GetBranch()
	default:
		next.Branch = fmt.Sprintf("after-%d", next.Parent)
	}
	return next, nil
}
