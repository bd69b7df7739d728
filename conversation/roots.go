package conversation

import (
	"context"
	"fmt"
	"iter"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Roots yields blobs that must stay, with everything that package graph reaches from
// them. Packages with their own rows provide one for Collect and Check; references
// that graph does not cover are yielded blob by blob, as graph.Bytes. An error that
// is Damaged concerns one row or tree; the caller may go on after it.
type Roots func(ctx context.Context) iter.Seq2[graph.Root, error]

// Roots yields the roots of all conversations: heads, heads of messages, saves and
// pins. For an unreadable row it yields an error and goes on.
func (s *Store) Roots(ctx context.Context) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		for r, err := range s.namedRoots(ctx) {
			if !yield(graph.Root{Kind: graph.State, ID: r.root}, err) {
				return
			}
		}
	}
}

// namedRoot is a root and the conversation that needs it.
type namedRoot struct {
	root         blob.ID
	conversation string
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

// namedRoots yields an error for each unreadable row and goes on.
func (s *Store) namedRoots(ctx context.Context) iter.Seq2[namedRoot, error] {
	return func(yield func(namedRoot, error) bool) {
		for _, table := range rootRows() {
			for row, err := range kv.Each(ctx, s.rows, table.rows, true) {
				if err != nil {
					if !yield(namedRoot{}, fmt.Errorf("read roots: %w", err)) || row.Key == "" {
						return
					}
					continue
				}
				id, conversation, err := table.decode(row)
				if !yield(namedRoot{root: id, conversation: conversation}, err) {
					return
				}
			}
		}
	}
}
