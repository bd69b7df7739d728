package mirror

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/meter"
)

// Backlog is what the remote may lack.
type Backlog struct {
	// Blobs and Bytes count what arrived since the mark, in stored form. The remote may
	// already have some of it; only Send finds out.
	Blobs int64
	Bytes int64
	// More means that counting ended early.
	More bool
}

// Backlog counts the blobs of all processes that wait to be sent, up to a number of
// blobs.
func (s *Store) Backlog(ctx context.Context, enough int64) (Backlog, error) {
	var left Backlog
	m, err := s.readMark(ctx)
	if err != nil {
		return left, err
	}
	local, err := s.localOnly(ctx)
	if err != nil {
		return left, err
	}
	for _, value := range local {
		if value != "" {
			left.Blobs++
		}
	}
	for at := m.Mark; ; {
		infos, next, err := s.arrivals.Arrived(ctx, at, page)
		if err != nil {
			return left, fmt.Errorf("find blobs to send: %w", err)
		}
		if next == at {
			return left, nil
		}
		for _, info := range infos {
			if value, ok := local[s.localKey(info.ID)]; ok && value == "" {
				continue
			}
			left.Blobs, left.Bytes = left.Blobs+1, left.Bytes+info.Stored
		}
		if at = next; left.Blobs >= enough {
			left.More = true
			return left, nil
		}
	}
}

// Err returns why the last Send of this process failed, or nil.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

func (s *Store) outcome(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
}

// measuredBlobs limits the counting for one reading of the metrics.
const measuredBlobs = 100_000

// measure reports the backlog as metrics.
func (s *Store) measure() (stop func()) {
	return meter.Of(s.opts.MeterProvider, "github.com/stet-dev/stet/mirror").Gauges(
		func(ctx context.Context) ([]int64, error) {
			left, err := s.Backlog(ctx, measuredBlobs)
			if err != nil {
				return nil, err
			}
			return []int64{left.Blobs, left.Bytes, map[bool]int64{true: 1}[s.Err() != nil]}, nil
		},
		meter.Gauge{Name: "stet.remote.waiting.blobs", Description: "blobs that the remote may lack"},
		meter.Gauge{Name: "stet.remote.waiting.bytes", Description: "their stored bytes"},
		meter.Gauge{Name: "stet.remote.failing", Description: "1 if the last attempt to send failed"})
}

// known remembers what this process sent, so that a remote that needs a request for each
// blob, such as a bucket, is not queried for it again.
type known struct{ ids map[blob.ID]struct{} }

// maxKnown bounds the memory of known; beyond it everything is queried again.
const maxKnown = 1 << 16

func (s *Store) remember(id blob.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.ids == nil || len(s.known.ids) >= maxKnown {
		s.known.ids = make(map[blob.ID]struct{})
	}
	s.known.ids[id] = struct{}{}
}

// unknown returns those of ids that this process did not send.
func (s *Store) unknown(ids []blob.ID) []blob.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []blob.ID
	for _, id := range ids {
		if _, ok := s.known.ids[id]; !ok {
			out = append(out, id)
		}
	}
	return out
}
