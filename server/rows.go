package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/server/internal/wire"
)

// rowService is stet.v1.RowService.
type rowService struct {
	db    *stet.DB
	audit *auditing
}

func (s *rowService) Get(ctx context.Context, req *stetv1.GetRowRequest) (*stetv1.GetRowResponse, error) {
	row, err := s.db.Rows().Get(ctx, string(req.GetKey()))
	if err != nil {
		return nil, err
	}
	return &stetv1.GetRowResponse{Row: wireRow(row)}, nil
}

func wireRow(row kv.Row) *stetv1.Row {
	return &stetv1.Row{Key: []byte(row.Key), Value: row.Value, Version: row.Version}
}

func keyRange(r *stetv1.KeyRange) kv.Range {
	return kv.Range{Start: string(r.GetStart()), End: string(r.GetEnd())}
}

// Scan ends a page early when it grows large, so that a message stays within the
// limits of every peer.
func (s *rowService) Scan(ctx context.Context, req *stetv1.ScanRowsRequest) (*stetv1.ScanRowsResponse, error) {
	limit := wire.PageSize(req.GetLimit())
	opts := kv.ScanOptions{Reverse: req.GetReverse(), KeysOnly: req.GetKeysOnly(), Limit: limit + 1}
	res := &stetv1.ScanRowsResponse{}
	size := 0
	for row, err := range s.db.Rows().Scan(ctx, keyRange(req.GetRange()), opts) {
		if err != nil {
			return nil, err
		}
		if len(res.Rows) == limit || len(res.Rows) > 0 && size > wire.MaxMessage/2 {
			res.More = true
			break
		}
		res.Rows = append(res.Rows, wireRow(row))
		size += len(row.Key) + len(row.Value)
	}
	return res, nil
}

func (s *rowService) Commit(ctx context.Context, req *stetv1.CommitRequest) (*stetv1.CommitResponse, error) {
	b := &kv.Batch{}
	for _, key := range req.GetDelete() {
		b.Delete = append(b.Delete, string(key))
	}
	for _, e := range req.GetExpect() {
		b.Expect = append(b.Expect, kv.Expect{Key: string(e.GetKey()), Version: e.GetVersion()})
	}
	for _, r := range req.GetDeleteRange() {
		b.DeleteRange = append(b.DeleteRange, keyRange(r))
	}
	for _, row := range req.GetSet() {
		set, err := checkpoint.MarkReceived(kv.Set{Key: string(row.GetKey()), Value: row.GetValue()})
		if err != nil {
			return nil, fmt.Errorf("%w: refused: %v", kv.ErrInvalidBatch, err)
		}
		b.Set = append(b.Set, set)
	}
	for _, raw := range req.GetRefs() {
		id, err := blob.IDFromBytes(raw)
		if err != nil {
			return nil, err
		}
		b.Refs = append(b.Refs, id)
	}
	keys, err := s.lost(ctx, b)
	if err != nil {
		return nil, err
	}
	commit := func() error { return s.db.Rows().Commit(ctx, b) }
	if len(keys) == 0 {
		err = commit()
	} else {
		err = s.audit.around(ctx, stetv1connect.RowServiceCommitProcedure, fmt.Sprintf("%d rows overwritten or removed", len(keys)), keys, commit)
	}
	if err != nil {
		return nil, err
	}
	return &stetv1.CommitResponse{}, nil
}

// lost lists the keys of the rows that a batch overwrites or removes. An unreadable
// row is one of them.
func (s *rowService) lost(ctx context.Context, b *kv.Batch) ([]string, error) {
	keys := slices.Clone(b.Delete)
	for _, r := range b.DeleteRange {
		for row, err := range s.db.Rows().Scan(ctx, r, kv.ScanOptions{KeysOnly: true}) {
			if err != nil {
				return nil, err
			}
			keys = append(keys, row.Key)
		}
	}
	for _, set := range b.Set {
		if _, err := s.db.Rows().Get(ctx, set.Key); !errors.Is(err, kv.ErrNotFound) {
			keys = append(keys, set.Key)
		}
	}
	return keys, nil
}

// Watch sends its first message at once, so that the caller knows that it misses
// nothing from now on.
func (s *rowService) Watch(ctx context.Context, req *stetv1.WatchRequest, stream *connect.ServerStream[stetv1.WatchResponse]) error {
	if req.GetRange() == nil {
		return missing("the range is missing")
	}
	changes := s.db.Rows().Watch(ctx, keyRange(req.GetRange()))
	for {
		if err := stream.Send(&stetv1.WatchResponse{}); err != nil {
			return err
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
