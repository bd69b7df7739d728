package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/document"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/mirror"
	"github.com/stet-dev/stet/stream"
	"github.com/stet-dev/stet/thread"
)

const (
	pageRows  = 256     // rows compared at once
	pageBytes = 2 << 20 // of values committed at once
)

// attached moves the rows that belong to a conversation besides its saves and
// checkpoints: message heads, including those under which an import keeps its sources,
// JSON checkpoints, and tool calls of runs.
func (m *mover) attached(ctx context.Context, id string, at *Moved) error {
	replace := at.Status == Created || at.Status == Updated || at.Status == Forced
	for _, in := range []kv.Range{keyspace.MessageHeads(id), keyspace.JSONCheckpoints(id), keyspace.Execs(id)} {
		n, _, err := m.copyRows(ctx, in, replace)
		if at.Rows += n; err != nil {
			return err
		}
	}
	return nil
}

// copyRows copies the rows of a range that the target lacks, with the blobs that they
// need. Rows that differ at the target are replaced, or left alone and returned.
func (m *mover) copyRows(ctx context.Context, in kv.Range, replace bool) (copied int, left []string, err error) {
	for {
		rows, err := readPage(ctx, m.from.Rows, in)
		if err != nil || len(rows) == 0 {
			return copied, left, err
		}
		last := rows[len(rows)-1].Key
		there, err := rowsIn(ctx, m.to.Rows, kv.Range{Start: rows[0].Key, End: last + "\x00"})
		if err != nil {
			return copied, left, err
		}
		var news []kv.Row
		for _, row := range rows {
			old, ok := there[row.Key]
			switch {
			case ok && bytes.Equal(old.Value, row.Value):
			case ok && !replace:
				left = append(left, row.Key)
			default:
				news = append(news, kv.Row{Key: row.Key, Value: row.Value, Version: old.Version})
			}
		}
		if err := m.commitRows(ctx, news); err != nil {
			return copied, left, err
		}
		copied += len(news)
		in.Start = last + "\x00"
	}
}

// readPage returns the first rows of a range.
func readPage(ctx context.Context, from kv.Store, in kv.Range) ([]kv.Row, error) {
	var rows []kv.Row
	size := 0
	for row, err := range from.Scan(ctx, in, kv.ScanOptions{Limit: pageRows}) {
		if err != nil {
			return nil, err
		}
		if size += len(row.Value); size > pageBytes && len(rows) > 0 {
			break
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// rowsIn returns the rows of a short range by their keys.
func rowsIn(ctx context.Context, from kv.Store, in kv.Range) (map[string]kv.Row, error) {
	rows := make(map[string]kv.Row)
	for row, err := range from.Scan(ctx, in, kv.ScanOptions{}) {
		if err != nil {
			return nil, err
		}
		rows[row.Key] = row
	}
	return rows, nil
}

// commitRows sends the blobs that rows need and then writes the rows, whose versions are
// those at the target.
func (m *mover) commitRows(ctx context.Context, rows []kv.Row) error {
	if len(rows) == 0 {
		return nil
	}
	ids, err := m.neededBy(ctx, rows)
	if err != nil {
		return err
	}
	if err := m.send(ctx, ids); err != nil {
		return err
	}
	if m.opts.DryRun {
		return nil
	}
	b := &kv.Batch{Refs: ids}
	for _, row := range rows {
		b.Expect = append(b.Expect, kv.Expect{Key: row.Key, Version: row.Version})
		b.Set = append(b.Set, kv.Set{Key: row.Key, Value: row.Value})
	}
	return m.commit(ctx, b)
}

// neededBy returns the blobs that rows keep alive, as the collector finds them, without
// those of earlier units. Blobs that the source lacks are counted and left out: the
// target then has as much as the source.
func (m *mover) neededBy(ctx context.Context, rows []kv.Row) ([]blob.ID, error) {
	alone := memkv.New(nil)
	b := &kv.Batch{}
	for _, row := range rows {
		b.Set = append(b.Set, kv.Set{Key: row.Key, Value: row.Value})
	}
	if err := alone.Commit(ctx, b); err != nil {
		return nil, err
	}
	roots := conversation.Readable(ctx, []conversation.Roots{
		conversation.New(m.from.Blobs, alone, nil).Roots, checkpoint.New(m.from.Blobs, alone, nil).Roots,
		cloudagent.New(m.from.Blobs, alone, nil).Roots, thread.New(m.from.Blobs, alone, nil).Roots, document.Open(m.from.Blobs, alone, nil).Roots,
		stream.New(m.from.Blobs, alone, nil).Roots, mirror.Roots(alone),
	}, func(error) { m.report.Missing++ })
	var ids []blob.ID
	err := graph.Walk(ctx, m.from.Blobs, roots, &graph.Options{Seen: m.seen}, func(n graph.Node) error {
		if errors.Is(n.Err, blob.ErrNotFound) || errors.Is(n.Err, blob.ErrCorrupt) {
			m.report.Missing++
			return nil
		}
		ids = m.list(ids, n.ID)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find what rows need: %w", err)
	}
	return m.present(ctx, ids)
}

// present leaves out blobs that the source does not have: a walk does not read leaves.
func (m *mover) present(ctx context.Context, ids []blob.ID) ([]blob.ID, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	has, err := m.from.Blobs.Has(ctx, ids...)
	if err != nil {
		return nil, err
	}
	var out []blob.ID
	for i, id := range ids {
		if has[i] {
			out = append(out, id)
		} else {
			m.report.Missing++
		}
	}
	return out, nil
}

// get returns a row, or one without a version if there is none.
func get(ctx context.Context, from kv.Store, key string) (kv.Row, error) {
	row, err := from.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return kv.Row{Key: key}, nil
	}
	return row, err
}
