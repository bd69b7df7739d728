package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// Strip removes files from checkpoints of a workspace; files has their paths by
// checkpoint id. The trees are stored again without them, and the lists of what was
// not captured name them with workspace.ReasonPurged: a rewind leaves such a path
// alone and reports it. It returns the blobs that the old trees have and the new ones
// do not; they stay until they are collected. Each checkpoint is one commit. A crash
// leaves some of them changed; calling Strip again changes the rest.
func (s *Service) Strip(ctx context.Context, ws string, files map[string][]string) (gone []blob.ID, err error) {
	unlock, err := s.lock(ctx, ws)
	if err != nil {
		return nil, fmt.Errorf("strip checkpoints of workspace %s: %w", ws, err)
	}
	defer unlock()
	for _, id := range slices.Sorted(maps.Keys(files)) {
		err := s.record(ctx, func(ctx context.Context) error {
			old, err := s.strip(ctx, id, files[id])
			gone = append(gone, old...)
			return err
		})
		if err != nil && !errors.Is(err, ErrNotFound) {
			return gone, fmt.Errorf("strip checkpoint %s: %w", id, err)
		}
	}
	// The index and the recalled results hold hashes of the removed contents. The index
	// does not fit the new tree, so it would be dropped anyway.
	if s.opts.IndexDir == "" {
		return gone, nil
	}
	if err := os.Remove(s.file(ws, ".index")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return gone, fmt.Errorf("strip checkpoints of workspace %s: %w", ws, err)
	}
	if err := s.recalled().Drop(); err != nil {
		return gone, fmt.Errorf("strip checkpoints of workspace %s: %w", ws, err)
	}
	return gone, nil
}

// strip removes files from one checkpoint.
func (s *Service) strip(ctx context.Context, id string, paths []string) (gone []blob.ID, err error) {
	rec, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	removals := make(map[string]*workspace.Entry, len(paths))
	for _, path := range paths {
		if _, err := workspace.Lookup(ctx, s.blobs, rec.Tree, path); err == nil {
			removals[path] = nil
		}
	}
	if len(removals) == 0 {
		return nil, nil
	}
	before := rec.Tree
	// The new nodes must not be stored as differences from the old ones, which are
	// removed.
	if rec.Tree, err = workspace.Edit(ctx, unlike{s.blobs}, before, removals); err != nil {
		return nil, err
	}
	b := &kv.Batch{Expect: []kv.Expect{{Key: keyspace.Checkpoint(rec.ID), Version: rec.version}}}
	if err := s.putPurged(ctx, rec, slices.Sorted(maps.Keys(removals)), b); err != nil {
		return nil, err
	}
	refs, err := newRefs(ctx, s.blobs, before, rec.Tree)
	if err == nil {
		gone, err = newRefs(ctx, s.blobs, rec.Tree, before)
	}
	if err != nil {
		return nil, err
	}
	// If the row has changed since, the commit fails.
	row, err := s.rows.Get(ctx, keyspace.Checkpoint(rec.ID))
	if err != nil {
		return nil, err
	}
	rec.original = rewritten(row.Value, rec.original)
	data, err := rec.encode()
	if err != nil {
		return nil, err
	}
	b.Refs = append(b.Refs, refs...)
	b.Set = []kv.Set{{Key: keyspace.Checkpoint(rec.ID), Value: data}}
	return gone, s.rows.Commit(ctx, b)
}

// putPurged adds paths to the list of what a checkpoint did not capture.
func (s *Service) putPurged(ctx context.Context, rec *Record, paths []string, b *kv.Batch) error {
	list, err := s.skippedList(ctx, rec)
	if err != nil {
		return err
	}
	out := &stetv1.NotCapturedList{}
	if list != nil {
		out = proto.CloneOf(list)
	}
	for _, path := range paths {
		out.Entries = append(out.Entries, &stetv1.NotCaptured{Path: []byte(path), Reason: string(workspace.ReasonPurged)})
	}
	slices.SortFunc(out.Entries, func(a, b *stetv1.NotCaptured) int { return cmp.Compare(string(a.Path), string(b.Path)) })
	data, err := marshal(out)
	if err != nil {
		return fmt.Errorf("encode what was purged: %w", err)
	}
	content := blob.New(data)
	if err := s.blobs.Put(ctx, content); err != nil {
		return fmt.Errorf("store what was purged: %w", err)
	}
	rec.notCaptured, rec.NotCaptured = content.ID, uint64(len(out.Entries))
	b.Refs = append(b.Refs, content.ID)
	return nil
}

// unlike stores blobs without the hint that they are like others.
type unlike struct{ blob.Store }

// Put implements blob.Store.
func (u unlike) Put(ctx context.Context, blobs ...blob.Blob) error {
	for i := range blobs {
		blobs[i].Like = blob.ID{}
	}
	return u.Store.Put(ctx, blobs...)
}
