package cloudagent

import (
	"context"
	"fmt"
	"iter"

	"github.com/stet-dev/stet/conversation/graph"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Roots yields the blobs that agents keep, for a collector: current states, and
// everything in the logs, which followers can request at any time. The import keeps
// the blobs of an imported agent that has not changed since. For an unreadable row it
// yields an error and continues.
func (s *Store) Roots(ctx context.Context) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		for row, err := range kv.Each(ctx, s.rows, keyspace.Agents(), false) {
			var rec *stetv1.AgentRecord
			if err == nil {
				rec, err = decodeRecord(row)
			}
			if err != nil && (!yield(graph.Root{}, fmt.Errorf("read agents: %w", err)) || row.Key == "") {
				return
			}
			// The log of an agent exists even if its record cannot be read.
			if err == nil && !yieldAll(yield, rootsOfRecord(rec)) || !s.logRoots(ctx, keyspace.Last(row.Key), yield) {
				return
			}
		}
	}
}

// logRoots reports whether the caller wants more.
func (s *Store) logRoots(ctx context.Context, agent string, yield func(graph.Root, error) bool) bool {
	for row, err := range kv.Each(ctx, s.rows, keyspace.AgentEvents(agent, 0), false) {
		var e event
		if err == nil {
			e, err = decodeEvent(row)
		}
		if err != nil {
			if !yield(graph.Root{}, fmt.Errorf("read agents: %w", err)) || row.Key == "" {
				return false
			}
			continue
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
