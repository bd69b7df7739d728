package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/workspace"
)

// The names of kinds, as they are printed.
const (
	States      = "states"
	Turns       = "turns"
	Steps       = "steps"
	Messages    = "messages"
	Files       = "files"
	Directories = "directories"
	Other       = "other"
)

// kindNames maps each kind of blob to the name under which it is counted.
var kindNames = map[graph.Kind]string{
	graph.State: States, graph.CloudState: States, graph.Archive: States,
	graph.Turn: Turns, graph.AgentTurn: Turns,
	graph.Step: Steps, graph.UserMessage: Messages, graph.Prompt: Messages, graph.Text: Messages,
}

// maxDepth bounds how far one blob leads to the next: a chain can have any length, and
// the stack of a goroutine cannot.
const maxDepth = 10_000

// errEnough says that the caller's read limit was reached.
var errEnough = errors.New("enough was read")

// meter counts blobs by kind while walks meet them.
type meter struct {
	book     *ledger
	blobs    *limited
	contents bool // contents are read for their size
	tooDeep  atomic.Bool

	mu      sync.Mutex // guards what follows
	kinds   []Kind     // in the order in which they were met
	sum     Count
	content int64
	damaged []error
}

func newMeter(blobs blob.Store, book *ledger, o *Options) *meter {
	return &meter{book: book, blobs: &limited{Store: blobs, limit: o.MaxRead}, contents: o.History || !book.listed}
}

// limited is a store that is only read up to a limit.
type limited struct {
	blob.Store
	limit int64 // 0 for none
	read  atomic.Int64
}

// Get implements blob.Store.
func (l *limited) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if l.limit > 0 && l.read.Load() >= l.limit {
		return nil, errEnough
	}
	data, err := l.Store.Get(ctx, id)
	l.read.Add(int64(len(data)))
	return data, err
}

// get reads a blob and counts it. ok is false for one that is lost or damaged; a
// damaged one still takes space.
func (m *meter) get(ctx context.Context, kind string, id blob.ID) (data []byte, ok bool, err error) {
	data, err = m.blobs.Get(ctx, id)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return nil, false, nil
	case errors.Is(err, blob.ErrCorrupt):
		m.count(kind, id, 0)
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	m.count(kind, id, int64(len(data)))
	return data, true, nil
}

// count counts a blob of a kind, once. full is its own size.
func (m *meter) count(kind string, id blob.ID, full int64) {
	bytes, first := m.book.count(id, full)
	if !first {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.kinds, func(k Kind) bool { return k.Name == kind })
	if i < 0 {
		i = len(m.kinds)
		m.kinds = append(m.kinds, Kind{Name: kind})
	}
	m.kinds[i].add(bytes)
	m.sum.add(bytes)
	m.content += full
}

func (m *meter) damage(err error) {
	if err == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.damaged = append(m.damaged, err)
}

// byBytes returns the places of the kinds, the largest first.
func (m *meter) byBytes() []int {
	order := make([]int, len(m.kinds))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(m.kinds[b].Bytes, m.kinds[a].Bytes), cmp.Compare(m.kinds[a].Name, m.kinds[b].Name))
	})
	return order
}

// graph measures a blob of a conversation and what is below it, and returns the size
// of both in full. What is lost or damaged has none.
func (m *meter) graph(ctx context.Context, ref graph.Ref, depth int) (int64, error) {
	if ref.ID.IsZero() || !m.book.Add(ref.ID, ref.Kind) {
		return m.book.total(ref.ID), nil
	}
	if depth > maxDepth {
		m.tooDeep.Store(true)
		return 0, nil
	}
	kind := cmp.Or(kindNames[ref.Kind], Other)
	data, ok, err := m.get(ctx, kind, ref.ID)
	if err != nil {
		return 0, err
	}
	if !ok {
		m.lost(kind, ref.ID)
		return 0, nil
	}
	total := int64(len(data))
	refs, _ := graph.Refs(ref.Kind, data) // returns the references before the damage
	for _, r := range refs {
		below, err := m.graph(ctx, r, depth+1)
		if err != nil {
			return 0, err
		}
		total += below
	}
	m.book.setTotal(ref.ID, total)
	return total, nil
}

// tree measures a directory and returns its size in full.
func (m *meter) tree(ctx context.Context, id blob.ID, depth int) (int64, error) {
	if id.IsZero() || !m.book.meet(id, directoryMark) {
		return m.book.total(id), nil
	}
	if depth > maxDepth {
		m.tooDeep.Store(true)
		return 0, nil
	}
	data, ok, err := m.node(ctx, Directories, id)
	if err != nil || !ok {
		return 0, err
	}
	entries, err := workspace.DecodeNode(data)
	if err != nil {
		m.damage(fmt.Errorf("read directory %s: %w", id, err))
		return 0, nil
	}
	total := int64(len(data))
	for _, e := range entries {
		below := e.Size
		if e.Kind == workspace.Dir {
			below, err = m.tree(ctx, e.ID, depth+1)
		} else {
			err = m.file(ctx, e)
		}
		if err != nil {
			return 0, err
		}
		total += below
	}
	m.book.setTotal(id, total)
	return total, nil
}

// node is get for a part of a tree, and reports one that is lost or damaged: files
// below it are not counted.
func (m *meter) node(ctx context.Context, kind string, id blob.ID) (data []byte, ok bool, err error) {
	if data, ok, err = m.get(ctx, kind, id); err == nil && !ok {
		m.lost("tree", id)
	}
	return data, ok, err
}

// lost reports a blob that is needed but cannot be read.
func (m *meter) lost(what string, id blob.ID) {
	m.damage(fmt.Errorf("read %s: blob %s is missing or damaged: %w", what, id, blob.ErrCorrupt))
}

// file counts the content of a file; only the list of a large one is read.
func (m *meter) file(ctx context.Context, e workspace.Entry) error {
	if !e.Chunked {
		if m.book.meet(e.ID, leafMark) {
			m.count(Files, e.ID, e.Size)
		}
		return nil
	}
	if !m.book.meet(e.ID, chunkedMark) {
		return nil
	}
	data, ok, err := m.node(ctx, Files, e.ID)
	if err != nil || !ok {
		return err
	}
	chunks, err := workspace.DecodeChunks(data)
	if err != nil {
		m.damage(fmt.Errorf("read chunks %s: %w", e.ID, err))
		return nil
	}
	for _, c := range chunks {
		if m.book.meet(c.ID, leafMark) {
			m.count(Files, c.ID, c.Size)
		}
	}
	return nil
}

// walk counts everything that roots reach and that was not met before.
func (m *meter) walk(ctx context.Context, roots iter.Seq2[graph.Root, error]) error {
	opts := &graph.Options{Seen: m.book, ReadLeaves: m.contents}
	return graph.Walk(ctx, m.blobs, m.readable(ctx, roots), opts, func(n graph.Node) error {
		kind := cmp.Or(kindNames[n.Kind], Other)
		if !errors.Is(n.Err, blob.ErrNotFound) {
			m.count(kind, n.ID, int64(len(n.Data)))
		}
		if errors.Is(n.Err, blob.ErrNotFound) || errors.Is(n.Err, blob.ErrCorrupt) {
			m.lost(kind, n.ID)
		}
		return nil
	})
}

// readable skips what is damaged, and records it for the report.
func (m *meter) readable(ctx context.Context, roots iter.Seq2[graph.Root, error]) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		for r, err := range roots {
			if err != nil && ctx.Err() == nil && conversation.Damaged(err) {
				m.damage(err)
				continue
			}
			if r.ID.IsZero() && err == nil {
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// rest counts what was not met yet, in the order of rows: what a collector keeps.
func (s *Store) rest(ctx context.Context, m *meter) error {
	if err := m.walk(ctx, s.Conversations.Roots(ctx)); err != nil {
		return err
	}
	if err := m.walk(ctx, s.Agents.Roots(ctx)); err != nil {
		return err
	}
	for _, roots := range s.Others {
		if err := m.walk(ctx, roots(ctx)); err != nil {
			return err
		}
	}
	return m.walk(ctx, s.checkpointRoots(ctx, m))
}

// checkpointRoots counts trees, and yields what else checkpoints refer to.
func (s *Store) checkpointRoots(ctx context.Context, m *meter) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		for needs, err := range s.Checkpoints.Needs(ctx) {
			if err == nil {
				_, err = m.tree(ctx, needs.Tree, 0)
			}
			if err != nil {
				if !yield(graph.Root{}, err) {
					return
				}
				continue
			}
			for _, id := range needs.States {
				if !yield(graph.Root{Kind: graph.State, ID: id}, nil) {
					return
				}
			}
			for _, id := range needs.Others {
				if !yield(graph.Root{Kind: graph.Bytes, ID: id}, nil) {
					return
				}
			}
		}
	}
}
