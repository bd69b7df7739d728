package page

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/usage"
)

const (
	storageFresh = 15 * time.Second // minimum time for which a report is reused
	storageRead  = 1 << 30          // maximum bytes read
	damagedShown = 100              // of what cannot be read
	damagedText  = 500              // characters of each
	shownBacklog = 100_000          // blobs of a remote's backlog that are counted
)

// storageReport is a measurement of a store.
type storageReport struct {
	made  time.Time
	took  time.Duration
	usage *usage.Report
	res   *stetv1.StorageResponse
}

// Storage reports the disk usage of the store. Measuring reads the whole store: a report
// is kept for a while, and an older one is returned while the next is made. Only the
// first call waits.
func (s *Service) Storage(ctx context.Context, _ *stetv1.StorageRequest) (*stetv1.StorageResponse, error) {
	report := s.storage.Load()
	measuring := report == nil || !report.fresh()
	if measuring {
		m := s.measure(ctx)
		if report == nil {
			select {
			case <-m.done:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if m.err != nil {
				return nil, m.err
			}
			report, measuring = m.report, false
		}
	}
	res := proto.CloneOf(report.res)
	res.MeasuredMs, res.Measuring = report.made.UnixMilli(), measuring
	var err error
	res.Remote, err = s.backlog(ctx)
	return res, err
}

// measurement is one that is under way.
type measurement struct {
	done   chan struct{} // closed at its end; then the others are set
	report *storageReport
	err    error
}

// measure returns the measurement that is under way, or begins one. It continues
// after the call, for the next one. If the store is closed meanwhile, it fails.
func (s *Service) measure(ctx context.Context) *measurement {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.measuring != nil {
		return s.measuring
	}
	m := &measurement{done: make(chan struct{})}
	s.measuring = m
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer close(m.done)
		began := time.Now()
		if m.report, m.err = s.measureStorage(ctx); m.err == nil {
			m.report.took = time.Since(began)
			s.storage.Store(m.report)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.measuring = nil
	}()
	return m
}

// backlog returns what the remote may lack, or nil without a remote.
func (s *Service) backlog(ctx context.Context) (*stetv1.RemoteBacklog, error) {
	m := s.db.Mirror()
	if m == nil {
		return nil, nil
	}
	left, err := m.Backlog(ctx, shownBacklog)
	if err != nil {
		return nil, err
	}
	out := &stetv1.RemoteBacklog{Url: m.Name(), Blobs: left.Blobs, Bytes: left.Bytes, More: left.More}
	if err := m.Err(); err != nil && left.Blobs > 0 {
		out.Error = clipped(err.Error(), damagedText)
	}
	return out, nil
}

// fresh reports whether a report can be reused. A slow measurement lasts longer, so
// that an open page costs little.
func (r *storageReport) fresh() bool { return time.Since(r.made) < max(storageFresh, 20*r.took) }

func (s *Service) measureStorage(ctx context.Context) (*storageReport, error) {
	r, err := s.db.Usage().Measure(ctx, &usage.Options{History: true, MaxRead: storageRead})
	if err != nil {
		return nil, err
	}
	return &storageReport{made: time.Now(), usage: r, res: wireUsage(r)}, nil
}

// wireUsage encodes a report.
func wireUsage(r *usage.Report) *stetv1.StorageResponse {
	res := &stetv1.StorageResponse{
		LogicalBytes: r.Logical, ContentBytes: r.Content, StoredBytes: r.Referenced().Bytes, DiskBytes: r.Disk, Partial: r.Partial,
		Unreferenced: &stetv1.KindStats{Kind: "unreferenced", Count: r.Unreferenced.Blobs, Bytes: r.Unreferenced.Bytes},
	}
	for _, k := range r.Kinds {
		res.Kinds = append(res.Kinds, &stetv1.KindStats{Kind: k.Name, Count: k.Blobs, Bytes: k.Bytes})
	}
	for _, p := range r.Points {
		res.Points = append(res.Points, &stetv1.StoragePoint{TimeMs: p.UnixMS, Bytes: p.Bytes})
	}
	for i, bad := range r.Damaged {
		if i == damagedShown {
			res.Damaged = append(res.Damaged, fmt.Sprintf("and %d more", len(r.Damaged)-i))
			break
		}
		res.Damaged = append(res.Damaged, clipped(bad.Error(), damagedText))
	}
	for _, c := range r.Conversations {
		res.Conversations = append(res.Conversations, &stetv1.ConversationSize{Id: c.ID, Title: c.Title, Bytes: c.Bytes, Blobs: c.Blobs})
	}
	return res
}
