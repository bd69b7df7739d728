package conversation

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Roots yields blobs that must stay, with everything that package graph reaches from
// them. Packages with their own rows provide one for package upkeep; references
// that graph does not cover are yielded blob by blob, as graph.Bytes. An error that
// is Damaged concerns one row or tree; the caller may go on after it.
type Roots func(ctx context.Context) iter.Seq2[graph.Root, error]

// Roots yields the roots of all conversations: heads, heads of messages, saves and
// pins. For an unreadable row it yields an error and goes on.
func (s *Store) Roots(ctx context.Context) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		for r, err := range s.RootRows(ctx) {
			if !yield(graph.Root{Kind: graph.State, ID: r.Root}, err) {
				return
			}
		}
	}
}

// RootRow is a row that names a root, and the conversation that needs it.
type RootRow struct {
	Key          string
	Root         blob.ID
	Conversation string
}

// rootRows lists the rows that name roots and how to read them. Saves come newest
// first: each state of a history contains most of the one before, so this order reads
// the least twice.
func rootRows() []struct {
	rows   kv.Range
	decode func(kv.Row) (blob.ID, string, error)
} {
	pointer := func(decode func(kv.Row) (blob.ID, error)) func(kv.Row) (blob.ID, string, error) {
		return func(row kv.Row) (blob.ID, string, error) {
			id, err := decode(row)
			return id, keyspace.Parts(row.Key)[2], err
		}
	}
	return []struct {
		rows   kv.Range
		decode func(kv.Row) (blob.ID, string, error)
	}{
		{keyspace.Heads(), pointer(decodeHead)},
		{keyspace.AllMessageHeads(), pointer(decodeMessageHead)},
		{keyspace.AllSaves(), func(row kv.Row) (blob.ID, string, error) {
			save, err := decodeSave(row)
			return save.Root, keyspace.Parts(row.Key)[2], err
		}},
		{keyspace.Pins(), func(row kv.Row) (blob.ID, string, error) {
			pin, err := decodePin(row)
			return pin.Root, pin.Conversation, err
		}},
	}
}

// RootRows yields the rows that name roots. An error with a key concerns that row, and
// the rows after it follow; an error without a key is the last.
func (s *Store) RootRows(ctx context.Context) iter.Seq2[RootRow, error] {
	return func(yield func(RootRow, error) bool) {
		for _, table := range rootRows() {
			for row, err := range kv.Each(ctx, s.rows, table.rows, true) {
				found := RootRow{Key: row.Key}
				if err == nil {
					found.Root, found.Conversation, err = table.decode(row)
				} else {
					err = fmt.Errorf("read roots: %w", err)
				}
				if !yield(found, err) || row.Key == "" {
					return
				}
			}
		}
	}
}

// Readable yields the roots of several sources, one after the other. It skips damaged
// ones and calls damaged for each.
func Readable(ctx context.Context, all []Roots, damaged func(error)) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		for _, roots := range all {
			for r, err := range roots(ctx) {
				if err != nil && ctx.Err() == nil && (Damaged(err) || errors.Is(err, blob.ErrNotFound)) {
					damaged(err)
					continue
				}
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}
