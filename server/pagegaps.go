package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// kindForgotten is the kind of an entry that stands for checkpoints which are no
// longer kept. It comes after the entry that they came before.
const kindForgotten = "forgotten"

// gapEntry says that n checkpoints before an entry are gone.
func gapEntry(e *stetv1.TimelineEntry, n uint64) *stetv1.TimelineEntry {
	c := e.GetCheckpoint()
	text := "1 checkpoint no longer kept"
	if n > 1 {
		text = fmt.Sprintf("%d checkpoints no longer kept", n)
	}
	return &stetv1.TimelineEntry{
		Checkpoint: &stetv1.Checkpoint{Id: kindForgotten + "-" + c.GetId(), Kind: kindForgotten, TimeMs: c.GetTimeMs(), Workspace: c.GetWorkspace(), Label: text},
		Gone:       e.GetGone(), GoneMs: e.GetGoneMs(),
	}
}

// gaps finds out how many checkpoints before each of the records are no longer
// kept. Numbers of a workspace have no holes when they are given.
func (s *pageService) gaps(ctx context.Context, newestFirst []*checkpoint.Record, all bool) (map[string]uint64, error) {
	gaps := make(map[string]uint64)
	newer := make(map[string]*checkpoint.Record) // by workspace
	for _, rec := range newestFirst {
		after := newer[rec.Workspace]
		newer[rec.Workspace] = rec
		if after == nil || after.Parent == rec.ID || after.Number <= rec.Number+1 {
			continue
		}
		kept, err := s.between(ctx, rec, after)
		if err != nil {
			return nil, err
		}
		if missing := after.Number - rec.Number - 1; missing > kept {
			gaps[after.ID] = missing - kept
		}
	}
	if !all {
		return gaps, nil
	}
	for _, oldest := range newer {
		n, err := s.missingBefore(ctx, oldest)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			gaps[oldest.ID] = n
		}
	}
	return gaps, nil
}

// between counts the checkpoints that others made between two of a workspace.
func (s *pageService) between(ctx context.Context, older, newer *checkpoint.Record) (n uint64, err error) {
	r := kv.Range{
		Start: keyspace.WorkspaceCheckpoint(older.Workspace, older.ID) + "\x00",
		End:   keyspace.WorkspaceCheckpoint(older.Workspace, newer.ID),
	}
	for _, err := range s.db.Rows().Scan(ctx, r, kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return 0, fmt.Errorf("list checkpoints: %w", err)
		}
		n++
	}
	return n, nil
}

// missingBefore counts what is gone right before the oldest checkpoint of a
// conversation. What came before its first turn was no part of it.
func (s *pageService) missingBefore(ctx context.Context, rec *checkpoint.Record) (uint64, error) {
	if rec.Parent == "" || rec.Turn <= 1 && rec.Side == checkpoint.Before {
		return 0, nil
	}
	r := keyspace.WorkspaceCheckpoints(rec.Workspace)
	r.End = keyspace.WorkspaceCheckpoint(rec.Workspace, rec.ID)
	for row, err := range s.db.Rows().Scan(ctx, r, kv.ScanOptions{Reverse: true, KeysOnly: true, Limit: 1}) {
		if err != nil {
			return 0, fmt.Errorf("list checkpoints: %w", err)
		}
		before, err := s.db.Checkpoints().Get(ctx, keyspace.Last(row.Key))
		if errors.Is(err, checkpoint.ErrNotFound) {
			return 0, nil // it goes at this moment
		}
		if err != nil {
			return 0, err
		}
		return rec.Number - before.Number - 1, nil
	}
	return rec.Number - 1, nil
}
