package page

import (
	"context"
	"errors"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/attempt"
	"github.com/stet-dev/stet/server/internal/wire"
	"github.com/stet-dev/stet/timeline"
)

// Attempts returns the attempts of a try.
func (s *Service) Attempts(ctx context.Context, req *stetv1.AttemptsRequest) (*stetv1.AttemptsResponse, error) {
	all, err := attempt.OfTry(ctx, s.db.Conversations(), req.GetTry())
	if err != nil {
		return nil, err
	}
	reader := timeline.New(s.db.Checkpoints(), s.db.Conversations())
	res := &stetv1.AttemptsResponse{}
	for _, one := range all {
		out := &stetv1.Attempt{
			Id: wire.Valid(one.ID), Number: uint32(one.Number), Workspace: wire.Valid(one.Workspace), Command: wire.Valid(one.Command), Agent: wire.Valid(one.Agent),
			BeganMs: one.Began.UnixMilli(), Ended: one.Ended, ExitCode: int32(one.Exit), End: wire.Valid(one.End), Score: one.Score,
			DurationMs: one.Duration.Milliseconds(), Files: uint32(one.Files), Added: uint32(one.Added), Removed: uint32(one.Removed), Words: wire.Valid(one.Words),
		}
		if one.Words != "" {
			spent, err := reader.Spent(ctx, one.Words)
			if err != nil {
				return nil, err
			}
			out.Spent = Spent(spent)
		}
		base, last, err := attempt.Ends(ctx, s.db.Checkpoints(), one.ID)
		switch {
		case err == nil:
			out.Base, out.Last = base.ID, last.ID
		case !errors.Is(err, attempt.ErrForgotten):
			return nil, err
		}
		res.Attempts = append(res.Attempts, out)
	}
	if best := attempt.Best(all); best >= 0 {
		place := uint32(best)
		res.Best = &place
	}
	return res, nil
}
