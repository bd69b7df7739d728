package server

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/workspace"
)

// measure counts blobs once, by what they are.
type measure struct {
	db     *stet.DB
	stored map[blob.ID]int64 // size in the store
	totals map[blob.ID]int64 // size of a blob and of all below it, in full
	room   int64             // bytes that may still be read

	kinds                            []*stetv1.KindStats
	blobs, contentBytes, storedBytes int64
}

// storageKinds says under which name each kind of blob is counted.
var storageKinds = map[graph.Kind]string{
	graph.State: "states", graph.CloudState: "states", graph.Archive: "states",
	graph.Turn: "turns", graph.AgentTurn: "turns",
	graph.Step: "steps", graph.UserMessage: "messages", graph.Prompt: "messages", graph.Text: "messages",
}

const (
	kindFiles   = "files"
	kindFolders = "directories"
	kindOther   = "other"
)

// moment measures one save: its full size, whoever shares it.
func (m *measure) moment(ctx context.Context, at moment) (int64, error) {
	if !at.tree.IsZero() {
		return m.tree(ctx, at.tree)
	}
	return m.graph(ctx, graph.Ref{Kind: graph.State, ID: at.root})
}

// graph measures a blob of a conversation and what is below it. What is lost or
// damaged counts nothing: fsck tells of it.
func (m *measure) graph(ctx context.Context, ref graph.Ref) (int64, error) {
	if total, ok := m.totals[ref.ID]; ok || ref.ID.IsZero() {
		return total, nil
	}
	m.totals[ref.ID] = 0 // a loop ends here
	data, err := m.read(ctx, ref.ID)
	if err != nil || data == nil {
		return 0, err
	}
	m.count(cmp.Or(storageKinds[ref.Kind], kindOther), ref.ID, int64(len(data)))
	total := int64(len(data))
	refs, _ := graph.Refs(ref.Kind, data) // what comes before the damage is there
	for _, r := range refs {
		below, err := m.graph(ctx, r)
		if err != nil {
			return 0, err
		}
		total += below
	}
	m.totals[ref.ID] = total
	return total, nil
}

// tree measures a directory.
func (m *measure) tree(ctx context.Context, node blob.ID) (int64, error) {
	if total, ok := m.totals[node]; ok || node.IsZero() {
		return total, nil
	}
	m.totals[node] = 0
	data, err := m.read(ctx, node)
	if err != nil || data == nil {
		return 0, err
	}
	m.count(kindFolders, node, int64(len(data)))
	entries, err := workspace.DecodeNode(data)
	if err != nil {
		return 0, nil
	}
	total := int64(len(data))
	for _, e := range entries {
		if e.Kind == workspace.Dir {
			below, err := m.tree(ctx, e.ID)
			if err != nil {
				return 0, err
			}
			total += below
			continue
		}
		total += e.Size
		if err := m.file(ctx, e); err != nil {
			return 0, err
		}
	}
	m.totals[node] = total
	return total, nil
}

// file counts the content of a file; only the list of a large one is read.
func (m *measure) file(ctx context.Context, e workspace.Entry) error {
	if _, ok := m.totals[e.ID]; ok {
		return nil
	}
	m.totals[e.ID] = e.Size
	if !e.Chunked {
		m.count(kindFiles, e.ID, e.Size)
		return nil
	}
	data, err := m.read(ctx, e.ID)
	if err != nil || data == nil {
		return err
	}
	m.count(kindFiles, e.ID, int64(len(data)))
	chunks, err := workspace.DecodeChunks(data)
	if err != nil {
		return nil
	}
	for _, c := range chunks {
		if _, ok := m.totals[c.ID]; !ok {
			m.totals[c.ID] = c.Size
			m.count(kindFiles, c.ID, c.Size)
		}
	}
	return nil
}

// read returns nil for what cannot be read, or when enough was read.
func (m *measure) read(ctx context.Context, id blob.ID) ([]byte, error) {
	if m.room <= 0 {
		return nil, ctx.Err()
	}
	data, err := m.db.Blobs().Get(ctx, id)
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
		return nil, nil
	}
	m.room -= int64(len(data))
	return data, err
}

// count adds a blob that was met for the first time.
func (m *measure) count(kind string, id blob.ID, size int64) {
	stored, ok := m.stored[id]
	if !ok {
		stored = size
	}
	i := slices.IndexFunc(m.kinds, func(k *stetv1.KindStats) bool { return k.GetKind() == kind })
	if i < 0 {
		i = len(m.kinds)
		m.kinds = append(m.kinds, &stetv1.KindStats{Kind: kind})
	}
	m.kinds[i].Count++
	m.kinds[i].Bytes += stored
	m.blobs++
	m.contentBytes += size
	m.storedBytes += stored
}

// counted gives the blobs of the store that were met.
func (m *measure) counted() iter.Seq[blob.ID] {
	return func(yield func(blob.ID) bool) {
		for id := range m.totals {
			if _, ok := m.stored[id]; ok && !yield(id) {
				return
			}
		}
	}
}

// byKind is a point of the plot, in the order in which kinds were met.
func (m *measure) byKind() []int64 {
	out := make([]int64, len(m.kinds))
	for i, k := range m.kinds {
		out[i] = k.GetBytes()
	}
	return out
}

func (m *measure) kindStats() []*stetv1.KindStats { return m.kinds }
