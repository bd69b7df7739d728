package server

import (
	"context"

	"github.com/stet-dev/stet/blame"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/unsaved"
	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server/page"
)

// Blame returns the origins of the lines of a file.
func (s *checkpointService) Blame(ctx context.Context, req *stetv1.BlameRequest) (*stetv1.BlameResponse, error) {
	if err := checkPaths([]string{req.GetPath()}); err != nil {
		return nil, err
	}
	look := unsaved.New(s.db.Blobs(), &unsaved.Options{MaxBytes: lookBytes}) // reading must not store
	defer look.Close()
	at, err := s.recordAt(ctx, look, req)
	if err != nil {
		return nil, err
	}
	reader := blame.New(look, s.db.Checkpoints().Looking(look), s.db.Conversations())
	file, err := reader.File(ctx, at, req.GetPath())
	if err != nil {
		return nil, lost(err)
	}
	told, err := reader.Tell(ctx, file)
	if err != nil {
		return nil, lost(err)
	}
	return page.Blame(told), nil
}

// recordAt returns the checkpoint that a request names. For the current workspace it makes
// one that is not stored; its blobs are only in look. What settling stores is kept,
// so that later calls name the same authors.
func (s *checkpointService) recordAt(ctx context.Context, look blob.Store, m *stetv1.BlameRequest) (rec *checkpoint.Record, err error) {
	if ref := m.GetRef(); ref != "" && ref != "@" {
		return s.resolve(ctx, m.GetWorkspace(), m.GetConversation(), ref)
	}
	if err := s.settle(ctx, m.GetWorkspace()); err != nil {
		return nil, err
	}
	err = s.inBy(ctx, s.db.Checkpoints().Looking(look), m.GetWorkspace(), func(w *checkpoint.Workspace) error {
		seen, err := w.Present(ctx)
		if err == nil {
			rec, err = w.Unsaved(ctx, seen.Tree)
		}
		return err
	})
	return rec, err
}
