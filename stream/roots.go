package stream

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// pollOf is how long a follower of a stream waits without a hint: short enough that
// the stream does not expire while it is followed.
func (s *Store) pollOf(info Info) time.Duration {
	if ttl := info.Expiry.TTL; ttl != nil && *ttl < 60 {
		return min(s.opts.Poll, time.Duration(*ttl)*time.Second/4+time.Millisecond)
	}
	return s.opts.Poll
}

// List yields the streams in the order of their paths, including those that are kept
// for their forks and those that have expired. For an unreadable row it yields an
// error and continues.
func (s *Store) List(ctx context.Context) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for row, err := range kv.Each(ctx, s.rows, keyspace.Streams(), false) {
			var rec *stetv1.StreamRecord
			if err == nil {
				rec, err = decodeRecord(row)
			}
			if err != nil {
				if !yield(Info{}, fmt.Errorf("read streams: %w", err)) || row.Key == "" {
					return
				}
				continue
			}
			if !yield(infoOf(rec), nil) {
				return
			}
		}
	}
}

// Roots yields the blobs that streams keep, for a collector: the contents of large
// appends. For an unreadable row it yields an error and continues.
func (s *Store) Roots(ctx context.Context) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		for row, err := range kv.Each(ctx, s.rows, keyspace.AllStreamAppends(), false) {
			var rec *stetv1.StreamAppend
			if err == nil {
				rec, err = decodeAppend(row)
			}
			if err != nil {
				if !yield(graph.Root{}, fmt.Errorf("read streams: %w", err)) || row.Key == "" {
					return
				}
				continue
			}
			if len(rec.Blob) > 0 && !yield(graph.Root{Kind: graph.Bytes, ID: blob.ID(rec.Blob)}, nil) {
				return
			}
		}
	}
}
