package server

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
)

const (
	storageFresh         = 15 * time.Second // how long a report is as good as a new one, at least
	storageSaves         = 64               // of a conversation that are looked at: the states of one are alike
	storageTrees         = 4000             // of the workspaces together
	storagePoints        = 160              // of a plot
	storageConversations = 1000             // that are listed, the largest
	storageRead          = 1 << 30          // bytes that are read at the most
)

// storageReport is what was found out about a store.
type storageReport struct {
	made   time.Time
	took   time.Duration
	stored map[blob.ID]int64
	res    *stetv1.StorageResponse
}

// moment is a point of time at which something was saved.
type moment struct {
	time         time.Time
	conversation string
	root, tree   blob.ID // one of them
}

// Storage walks through everything that was saved, in the order of time, and counts
// each blob when it is first met. That takes as long as reading the store does, so
// a report is kept for a while.
func (s *pageService) Storage(ctx context.Context, _ *connect.Request[stetv1.StorageRequest]) (*connect.Response[stetv1.StorageResponse], error) {
	s.making.Lock()
	defer s.making.Unlock()
	report := s.storage.Load()
	if report == nil || !report.fresh() {
		began := time.Now()
		var err error
		if report, err = s.measureStorage(ctx); err != nil {
			return nil, err
		}
		report.took = time.Since(began)
		s.storage.Store(report)
	}
	return connect.NewResponse(proto.CloneOf(report.res)), nil
}

// fresh reports whether a report is as good as a new one. What took long to find
// out holds longer, so that a page which is left open costs little.
func (r *storageReport) fresh() bool { return time.Since(r.made) < max(storageFresh, 20*r.took) }

func (s *pageService) measureStorage(ctx context.Context) (*storageReport, error) {
	m := &measure{db: s.db, stored: make(map[blob.ID]int64), totals: make(map[blob.ID]int64), room: storageRead}
	unreferenced, err := s.inventory(ctx, m.stored)
	if err != nil {
		return nil, err
	}
	titles, moments, err := s.moments(ctx)
	if err != nil {
		return nil, err
	}
	var points []*stetv1.StoragePoint
	sizes := make(map[string]*stetv1.ConversationSize)
	res := &stetv1.StorageResponse{}
	for _, at := range moments {
		before, blobs := m.storedBytes, m.blobs
		total, err := m.moment(ctx, at)
		if err != nil {
			return nil, err
		}
		res.LogicalBytes += total
		size := sizes[at.conversation]
		if size == nil {
			size = &stetv1.ConversationSize{Id: at.conversation, Title: titles[at.conversation]}
			sizes[at.conversation] = size
		}
		size.Bytes += m.storedBytes - before
		size.Blobs += m.blobs - blobs
		points = append(points, &stetv1.StoragePoint{TimeMs: at.time.UnixMilli(), Bytes: m.byKind()})
	}
	for id := range m.counted() {
		unreferenced.Count--
		unreferenced.Bytes -= m.stored[id]
	}
	res.Unreferenced = unreferenced
	res.ContentBytes, res.StoredBytes, res.Partial = m.contentBytes, m.storedBytes, m.room <= 0
	res.Kinds = m.kindStats()
	res.Points = thinned(points, storagePoints)
	for _, size := range sizes {
		res.Conversations = append(res.Conversations, size)
	}
	slices.SortFunc(res.Conversations, func(a, b *stetv1.ConversationSize) int {
		return cmp.Or(cmp.Compare(b.GetBytes(), a.GetBytes()), cmp.Compare(a.GetId(), b.GetId()))
	})
	res.Conversations = res.Conversations[:min(len(res.Conversations), storageConversations)]
	if engine := s.db.Engine(); engine != nil {
		if res.DiskBytes, err = diskBytes(engine.Dir()); err != nil {
			return nil, err
		}
	}
	return &storageReport{made: time.Now(), stored: m.stored, res: res}, nil
}

// inventory fills in how large the blobs are in the store, and counts them. A store
// that cannot tell is measured by contents alone.
func (s *pageService) inventory(ctx context.Context, stored map[blob.ID]int64) (*stetv1.KindStats, error) {
	all := &stetv1.KindStats{Kind: "unreferenced"}
	if s.db.Inventory() == nil {
		return all, nil
	}
	err := s.db.Inventory().List(ctx, blob.ID{}, func(info blob.Info) error {
		stored[info.ID] = info.Stored
		all.Count++
		all.Bytes += info.Stored
		return nil
	})
	return all, err
}

// moments lists what was saved, oldest first.
func (s *pageService) moments(ctx context.Context) (map[string]string, []moment, error) {
	titles := make(map[string]string)
	var all []moment
	opts := &conversation.ListOptions{Limit: 500}
	for {
		page, err := s.db.Conversations().List(ctx, opts)
		if err != nil {
			return nil, nil, err
		}
		for _, info := range page.Conversations {
			titles[info.ID] = info.Title
			var saves []moment
			for save, err := range s.db.Conversations().History(ctx, info.ID, nil) {
				if conversation.Damaged(err) {
					break // what can be read is measured; the list names the conversation
				}
				if err != nil {
					return nil, nil, err
				}
				saves = append(saves, moment{time: save.Time, conversation: info.ID, root: save.Root})
			}
			all = append(all, thinned(saves, storageSaves)...)
		}
		if page.Next == "" {
			break
		}
		opts.Cursor = page.Next
	}
	trees, err := s.trees(ctx)
	if err != nil {
		return nil, nil, err
	}
	all = append(all, thinned(trees, storageTrees)...)
	slices.SortStableFunc(all, func(a, b moment) int { return a.time.Compare(b.time) })
	return titles, all, nil
}

// trees lists the checkpoints of all workspaces, newest first.
func (s *pageService) trees(ctx context.Context) ([]moment, error) {
	var trees []moment
	for rec, err := range (&checkpointService{s.db}).everything(ctx, "") {
		if errors.Is(err, checkpoint.ErrNotFound) || kv.Damaged(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		trees = append(trees, moment{time: rec.Time, conversation: rec.Conversation, tree: rec.Tree})
	}
	return trees, nil
}

// thinned takes at most n elements out of a list, evenly, the first and the last
// among them.
func thinned[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	out := make([]T, n)
	for i := range out {
		out[i] = list[i*(len(list)-1)/(n-1)]
	}
	return out
}

// diskBytes adds up the files below a directory.
func diskBytes(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a file that went meanwhile takes nothing
		}
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	return total, err
}
