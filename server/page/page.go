package page

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/server/internal/wire"
	"github.com/stet-dev/stet/timeline"
)

// Describe converts the records of one answer to messages.
type Describe func(ctx context.Context, rec *checkpoint.Record) (*stetv1.Checkpoint, error)

// Service is stet.v1.PageService: the requests of the page that no other service
// answers.
type Service struct {
	db        *stet.DB
	describer func(ctx context.Context) (Describe, error)

	mu        sync.Mutex   // guards measuring
	measuring *measurement // nil while the store is not measured
	storage   atomic.Pointer[storageReport]
}

// New returns the service over a store. The describer is called once for each answer
// that has checkpoints, and encodes them as the other services do.
func New(db *stet.DB, describer func(ctx context.Context) (Describe, error)) *Service {
	return &Service{db: db, describer: describer}
}

// overviewRows is how many conversations the page gets at once: each costs a scan
// of its checkpoints.
const overviewRows = 200

// overviewCheckpoints limits that scan.
const overviewCheckpoints = 5000

// Overview returns the rows of the first page.
func (s *Service) Overview(ctx context.Context, req *stetv1.OverviewRequest) (*stetv1.OverviewResponse, error) {
	return wire.Fitting(req.GetPage().GetLimit(), func(limit int) (*stetv1.OverviewResponse, error) {
		if limit == 0 || limit > overviewRows {
			limit = overviewRows
		}
		page, err := s.db.Conversations().List(ctx, &conversation.ListOptions{Cursor: req.GetPage().GetCursor(), Limit: limit})
		if err != nil {
			return nil, err
		}
		res := &stetv1.OverviewResponse{NextCursor: page.Next, Damaged: wire.Damaged(page.Damaged)}
		for _, info := range page.Conversations {
			row := &stetv1.OverviewRow{
				Id: info.ID, Title: info.Title, Workspace: info.Workspace, Agent: info.Agent, Turns: uint32(info.Turns), Saves: info.Save,
				CreatedMs: info.Created.UnixMilli(), UpdatedMs: info.Updated.UnixMilli(), Parent: info.ForkedFrom,
				Model: timeline.SpentOf(info.Turn).Model, SubagentOf: info.SubagentOf(),
			}
			var work timeline.Changes
			for rec, err := range s.db.Checkpoints().ListConversation(ctx, info.ID) {
				if kv.Damaged(err) {
					damaged := conversation.Unreadable{ID: info.ID, Err: err} // show what was counted so far
					res.Damaged = append(res.Damaged, wire.Damaged([]conversation.Unreadable{damaged})...)
					break
				}
				if err != nil {
					return nil, err
				}
				if row.Checkpoints++; row.Checkpoints > overviewCheckpoints {
					break
				}
				work.Add(rec)
			}
			row.Files, row.Added, row.Removed = uint32(work.Files), uint32(work.Added), uint32(work.Removed)
			res.Rows = append(res.Rows, row)
		}
		return res, nil
	})
}
