package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

const (
	hasBatch  = 1024    // ids in one query
	sendBytes = 4 << 20 // content put at once
	sendBlobs = 256     // blobs put at once
	refsBatch = 20_000  // blobs named by one commit: their ids fit into a message
)

// mover is a running transfer.
type mover struct {
	from, to Side
	opts     Options
	report   *Report
	seen     *graph.Set           // reached by earlier units, or known to be at the target
	listed   map[blob.ID]struct{} // sent, or found at the target
	sizes    map[blob.ID]int64    // of contents, as trees claim them
	sent     map[blob.ID]struct{} // names sent in stored form
	known    map[blob.ID]bool     // what the target was asked for, and whether it has it
	root     blob.ID              // the state being sent
	before   blob.ID              // the previous state at the target
	lacks    []blob.ID            // what a dry run would send
	absent   []blob.ID            // what the source lacks
	arrived  map[blob.ID]int64    // sizes of blobs that came with the rows, if any did
	damaged  []error              // why damaged parts were left out
}

// forget drops all knowledge of the target, after an examined unit was not sent.
func (m *mover) forget() {
	m.seen, m.listed, m.sent = new(graph.Set), make(map[blob.ID]struct{}), make(map[blob.ID]struct{})
	m.sizes = make(map[blob.ID]int64)
}

func (m *mover) progress() {
	if m.opts.Progress != nil {
		report := *m.report
		report.Conversations = slices.Clone(report.Conversations)
		m.opts.Progress(report)
	}
}

// state returns the blobs that a root reaches, without those of earlier units.
func (m *mover) state(ctx context.Context, root blob.ID) ([]blob.ID, error) {
	var ids []blob.ID
	roots := graph.Roots(graph.Root{Kind: graph.State, ID: root})
	err := graph.Walk(ctx, m.from.Blobs, roots, &graph.Options{Seen: m.seen}, func(n graph.Node) error {
		if errors.Is(n.Err, blob.ErrNotFound) {
			m.absent = append(m.absent, n.ID)
			return fmt.Errorf("%w: %s %s: %w", ErrIncomplete, cmp.Or(n.Field, n.Kind.String()), n.ID.Short(), n.Err)
		}
		if n.Err != nil {
			return fmt.Errorf("%s %s: %w", cmp.Or(n.Field, n.Kind.String()), n.ID.Short(), n.Err)
		}
		ids = m.list(ids, n.ID)
		return nil
	})
	return ids, err
}

// tree returns the blobs that a captured tree needs, and the given others.
func (m *mover) tree(ctx context.Context, tree blob.ID, more ...blob.ID) ([]blob.ID, error) {
	var ids []blob.ID
	err := workspace.SizedRefs(ctx, m.from.Blobs, tree, func(id blob.ID, size int64) bool {
		if size >= 0 {
			m.sizes[id] = size
		}
		before := len(ids)
		ids = m.list(ids, id)
		return len(ids) > before
	})
	if errors.Is(err, blob.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	if err != nil {
		return nil, err
	}
	for _, id := range more {
		if !id.IsZero() {
			ids = m.list(ids, id)
		}
	}
	return ids, nil
}

// list adds an id that is new to this transfer.
func (m *mover) list(ids []blob.ID, id blob.ID) []blob.ID {
	if _, ok := m.listed[id]; ok {
		return ids
	}
	m.listed[id] = struct{}{}
	return append(ids, id)
}

// send puts the blobs that the target lacks.
func (m *mover) send(ctx context.Context, ids []blob.ID) error {
	for batch := range slices.Chunk(ids, hasBatch) {
		has, err := m.has(ctx, batch)
		if err != nil {
			return err
		}
		var lacking []blob.ID
		for i, id := range batch {
			if size, ok := m.arrived[id]; ok {
				if err := m.checkSize(id, size); err != nil {
					return err
				}
			}
			if has[i] {
				m.report.Present++
			} else {
				lacking = append(lacking, id)
			}
		}
		if err := m.copy(ctx, lacking); err != nil {
			return err
		}
		m.progress()
	}
	return nil
}

// lookFor queries which blobs the target has, for the calls of send that follow.
func (m *mover) lookFor(ctx context.Context, ids []blob.ID) error {
	m.known = make(map[blob.ID]bool, len(ids))
	for batch := range slices.Chunk(ids, hasBatch) {
		has, err := m.to.Blobs.Has(ctx, batch...)
		if err != nil {
			return err
		}
		for i, id := range batch {
			m.known[id] = has[i]
		}
	}
	return nil
}

// has reports which blobs the target has.
func (m *mover) has(ctx context.Context, ids []blob.ID) ([]bool, error) {
	has := make([]bool, len(ids))
	for i, id := range ids {
		known, ok := m.known[id]
		if !ok {
			return m.to.Blobs.Has(ctx, ids...)
		}
		has[i] = known
	}
	return has, nil
}

// copy puts blobs, many at once.
func (m *mover) copy(ctx context.Context, ids []blob.ID) error {
	if m.opts.DryRun {
		m.report.Blobs += len(ids)
		m.lacks = append(m.lacks, ids...)
		return nil
	}
	plain := &parcel{m: m, put: m.to.Blobs.Put}
	var asStored *parcel
	if m.alike() {
		asStored = &parcel{m: m, put: m.to.Stored.Put}
	}
	for _, id := range ids {
		data, err := m.from.Blobs.Get(ctx, id)
		if err != nil {
			return incomplete(err)
		}
		if err := m.checkSize(id, int64(len(data))); err != nil {
			return err
		}
		if asStored != nil {
			chain, err := m.stored(ctx, id)
			if err != nil {
				return incomplete(err)
			}
			if chain != nil {
				if err := asStored.add(ctx, chain...); err != nil {
					return err
				}
				continue
			}
		}
		one := blob.Blob{ID: id, Data: data}
		if id == m.root && id != m.before { // otherwise each save of a long conversation would be stored whole
			one.Like = m.before
		}
		if err := plain.add(ctx, one); err != nil {
			return err
		}
	}
	if asStored != nil {
		if err := asStored.send(ctx); err != nil {
			return err
		}
	}
	return plain.send(ctx)
}

// checkSize compares the size of a content with the claims of trees.
func (m *mover) checkSize(id blob.ID, size int64) error {
	if claimed, ok := m.sizes[id]; ok && claimed != size {
		return fmt.Errorf("%w: a tree claims %d bytes for %s, which has %d", workspace.ErrBadNode, claimed, id, size)
	}
	return nil
}

func incomplete(err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		return fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	return err
}

// parcel collects blobs that are put together.
type parcel struct {
	m     *mover
	put   func(context.Context, ...blob.Blob) error
	blobs []blob.Blob
	size  int
}

func (p *parcel) add(ctx context.Context, blobs ...blob.Blob) error {
	for _, b := range blobs {
		p.blobs, p.size = append(p.blobs, b), p.size+len(b.Data)
	}
	if p.size < sendBytes && len(p.blobs) < sendBlobs {
		return nil
	}
	return p.send(ctx)
}

func (p *parcel) send(ctx context.Context) error {
	if len(p.blobs) == 0 {
		return nil
	}
	if err := p.put(ctx, p.blobs...); err != nil {
		return err
	}
	p.m.report.Blobs += len(p.blobs)
	p.m.report.Bytes += int64(p.size)
	p.blobs, p.size = nil, 0
	p.m.progress()
	return nil
}

// commit applies a batch to the target. It sends again blobs that a collector has
// removed since their Put.
func (m *mover) commit(ctx context.Context, b *kv.Batch) error {
	for len(b.Refs) > refsBatch {
		if err := m.commit(ctx, &kv.Batch{Refs: b.Refs[:refsBatch]}); err != nil {
			return err
		}
		b.Refs = b.Refs[refsBatch:]
	}
	err := m.to.Rows.Commit(ctx, b)
	var missing *kv.MissingBlobsError
	if errors.As(err, &missing) {
		clear(m.sent) // their bases may be gone as well
		if err := m.copy(ctx, missing.IDs); err != nil {
			return err
		}
		err = m.to.Rows.Commit(ctx, b)
	}
	if errors.Is(err, kv.ErrConflict) {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}
