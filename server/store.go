package server

import (
	"context"
	"slices"
	"time"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server/internal/wire"
	"github.com/stet-dev/stet/upkeep"
)

// storeService is stet.v1.StoreService.
type storeService struct {
	db      *stet.DB
	version string
	own     bool // the server has no other store
}

func (s *storeService) Info(ctx context.Context, _ *stetv1.StoreInfoRequest) (*stetv1.StoreInfoResponse, error) {
	res := &stetv1.StoreInfoResponse{Version: s.version, Encrypted: s.db.Ring() != nil, Kind: "remote"}
	if engine := s.db.Engine(); engine != nil {
		res.StoreId, res.Kind = engine.ID(), "embedded"
		if s.own && onThisMachine(ctx) {
			res.Dir = wire.Valid(engine.Dir())
		}
	}
	return res, nil
}

func (s *storeService) Stats(ctx context.Context, _ *stetv1.StatsRequest) (*stetv1.StatsResponse, error) {
	stats, err := s.db.Stats(ctx)
	if err != nil {
		return nil, err
	}
	res := &stetv1.StatsResponse{TotalBytes: stats.DatabaseBytes + stats.LogBytes + stats.InFiles.Bytes}
	add := func(kind string, n, bytes int64) {
		res.Kinds = append(res.Kinds, &stetv1.KindStats{Kind: kind, Count: n, Bytes: bytes})
	}
	add("blobs in the database", stats.InRows.N, stats.InRows.Bytes)
	beside := "blobs in files"
	if s.db.Engine() == nil {
		beside = "blobs in the bucket"
	}
	add(beside, stats.InFiles.N, stats.InFiles.Bytes)
	families := make([]string, 0, len(stats.Rows))
	for family := range stats.Rows {
		families = append(families, family)
	}
	slices.Sort(families)
	for _, family := range families {
		add("rows "+family, stats.Rows[family].N, stats.Rows[family].Bytes)
	}
	return res, nil
}

// grace converts seconds to a Duration. An overflow must not become negative, which
// would mean no grace.
func grace(seconds int64) time.Duration {
	const century = 100 * 365 * 24 * 3600
	return time.Duration(min(max(seconds, -1), century)) * time.Second
}

func (s *storeService) Collect(ctx context.Context, req *stetv1.CollectRequest) (*stetv1.CollectResponse, error) {
	opts := &upkeep.CollectOptions{
		DryRun: req.GetDryRun(), SkipDamaged: req.GetSkipDamaged(),
		Grace: grace(req.GetGraceSeconds()),
	}
	result, err := s.db.Collect(ctx, opts)
	if err != nil {
		return nil, err
	}
	var unreadable []string
	for _, err := range result.Unreadable {
		unreadable = append(unreadable, wire.Valid(err.Error()))
	}
	return &stetv1.CollectResponse{
		Removed: result.Removed, RemovedBytes: result.RemovedBytes, Kept: result.Kept, KeptBytes: result.KeptBytes,
		Live: int64(result.Live), Missing: int64(result.Missing), Damaged: int64(result.Damaged),
		Unreadable: unreadable, Withheld: result.Withheld, WithheldBytes: result.WithheldBytes,
	}, nil
}

// Fsck sends its progress from time to time, because reading a large store takes
// long.
func (s *storeService) Fsck(ctx context.Context, req *stetv1.FsckRequest, stream *connect.ServerStream[stetv1.FsckResponse]) error {
	var sendErr error
	last := time.Now()
	report, err := s.db.Check(ctx, &upkeep.CheckOptions{
		ReadData: req.GetReadData(),
		Progress: func(blobs int64) {
			if sendErr == nil && time.Since(last) > 200*time.Millisecond {
				last = time.Now()
				sendErr = stream.Send(&stetv1.FsckResponse{Checked: blobs})
			}
		},
	})
	if err != nil {
		return err
	}
	if sendErr != nil {
		return sendErr
	}
	res := &stetv1.FsckResponse{Done: true, Ok: report.OK(), Blobs: report.Blobs, Rows: report.Rows, Checked: report.Blobs}
	for _, d := range report.Damage {
		damage := &stetv1.FsckDamage{Kind: d.Kind, Id: d.Key, Conversations: d.Conversations}
		if d.Key == "" {
			damage.Id = d.ID.String()
		}
		if d.Err != nil {
			damage.Detail = d.Err.Error()
		}
		res.Damage = append(res.Damage, damage)
		if len(res.Damage) == wire.PageLimit { // the last message has the rest and the result
			if err := stream.Send(&stetv1.FsckResponse{Checked: report.Blobs, Damage: res.Damage}); err != nil {
				return err
			}
			res.Damage = nil
		}
	}
	return stream.Send(res)
}
