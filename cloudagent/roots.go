package cloudagent

import (
	"context"
	"fmt"
	"iter"

	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// rootRows is how many rows are read at once for Roots.
const rootRows = 512

// Roots gives the blobs that agents keep, for a collector: current states, and
// everything in the logs, which a follower can ask for at any time. An agent that
// was imported and not changed since is kept by its import.
func (s *Store) Roots(ctx context.Context) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		for row, err := range s.paged(ctx, keyspace.Agents()) {
			if err != nil {
				yield(graph.Root{}, err)
				return
			}
			rec, err := decodeRecord(row)
			if err != nil {
				yield(graph.Root{}, err)
				return
			}
			if !yieldAll(yield, rootsOfRecord(rec)) || !s.logRoots(ctx, rec.Id, yield) {
				return
			}
		}
	}
}

// logRoots reports whether the caller wants more.
func (s *Store) logRoots(ctx context.Context, agent string, yield func(graph.Root, error) bool) bool {
	for row, err := range s.paged(ctx, keyspace.AgentEvents(agent, 0)) {
		if err != nil {
			yield(graph.Root{}, err)
			return false
		}
		e, err := decodeEvent(row)
		if err != nil {
			yield(graph.Root{}, err)
			return false
		}
		if !yieldAll(yield, rootsOfEvent(e.rec)) {
			return false
		}
	}
	return true
}

func yieldAll(yield func(graph.Root, error) bool, roots []graph.Root) bool {
	for _, r := range roots {
		if !yield(r, nil) {
			return false
		}
	}
	return true
}

// paged gives the rows of a range a page at a time, so that no scan is open while
// the caller reads.
func (s *Store) paged(ctx context.Context, in kv.Range) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		page := make([]kv.Row, 0, rootRows)
		for {
			page = page[:0]
			for row, err := range s.rows.Scan(ctx, in, kv.ScanOptions{Limit: rootRows}) {
				if err != nil {
					yield(kv.Row{}, fmt.Errorf("read agents: %w", err))
					return
				}
				page = append(page, row)
			}
			for _, row := range page {
				if !yield(row, nil) {
					return
				}
			}
			if len(page) < rootRows {
				return
			}
			in.Start = page[len(page)-1].Key + "\x00"
		}
	}
}
