package stream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// Expiry says when a stream expires. The zero value means never; at most one field is
// set.
type Expiry struct {
	// TTL is the number of seconds without a read or write after which it expires.
	TTL *uint64
	// At is a time, in the form of RFC 3339.
	At string
}

func (e Expiry) none() bool { return e.TTL == nil && e.At == "" }

func (e Expiry) equal(o Expiry) bool {
	if (e.TTL == nil) != (o.TTL == nil) || e.TTL != nil && *e.TTL != *o.TTL {
		return false
	}
	return e.At == o.At
}

// check returns the time of At in milliseconds, and what is wrong with an expiry.
func (e Expiry) check() (atMS int64, err error) {
	switch {
	case e.TTL != nil && e.At != "":
		return 0, invalid("a stream expires after a time without reads and writes or at a time, not both")
	case e.TTL != nil && *e.TTL > math.MaxInt64/uint64(time.Second):
		return 0, invalid("a stream cannot expire after %d seconds", *e.TTL)
	case e.At == "":
		return 0, nil
	}
	at, err := time.Parse(time.RFC3339, e.At)
	if err != nil {
		return 0, invalid("a stream cannot expire at %.64q: that is not a time of RFC 3339", e.At)
	}
	return at.UnixMilli(), nil
}

// withAccess adds the time of the last read, for a stream that expires without reads.
func (s *Store) withAccess(ctx context.Context, l loaded) (loaded, error) {
	if l.rec.TtlSeconds == nil {
		return l, nil
	}
	key := keyspace.StreamAccess(l.rec.Id)
	row, err := s.rows.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		l.access = &kv.Expect{Key: key}
		return l, nil
	}
	if err != nil {
		return loaded{}, fmt.Errorf("read stream %s: %w", l.rec.Path, err)
	}
	a, err := decodeAccess(row)
	if err != nil {
		return loaded{}, err
	}
	l.accessed = max(l.accessed, a.AccessedMs)
	l.access = &kv.Expect{Key: key, Version: row.Version}
	return l, nil
}

// expired reports whether a stream has expired.
func (s *Store) expired(l loaded) bool {
	now := s.nowMS()
	if l.rec.ExpiresAt != "" && now >= l.rec.ExpiresMs {
		return true
	}
	return l.rec.TtlSeconds != nil && now >= l.accessed+ttlMS(l.rec)
}

func ttlMS(rec *stetv1.StreamRecord) int64 {
	return int64(min(rec.GetTtlSeconds(), math.MaxInt64/uint64(time.Second))) * 1000
}

// accessShare is the fraction of a stream's TTL by which the stored time of the last
// read may be too early: reads in close succession are written once.
const accessShare = 64

// touch postpones the expiry of a stream that is read. If the stream changes
// meanwhile, that was a write, which does the same.
func (s *Store) touch(ctx context.Context, l loaded) error {
	if l.access == nil || s.nowMS()-l.accessed <= ttlMS(l.rec)/accessShare {
		return nil
	}
	set, err := rowformat.Set(l.access.Key, &stetv1.StreamAccess{Format: recordFormat, AccessedMs: s.nowMS()})
	if err != nil {
		return err
	}
	err = s.rows.Commit(ctx, &kv.Batch{Expect: []kv.Expect{l.expect()}, Set: []kv.Set{set}})
	if err != nil && !errors.Is(err, kv.ErrConflict) {
		return fmt.Errorf("note a read of stream %s: %w", l.rec.Path, err)
	}
	return nil
}

// Expire removes the streams that have expired, and returns how many. An expired
// stream cannot be used anyway; this frees its space. One with forks stays.
func (s *Store) Expire(ctx context.Context) (int, error) {
	removed := 0
	for row, err := range kv.Each(ctx, s.rows, keyspace.Streams(), false) {
		if err != nil && row.Key == "" {
			return removed, fmt.Errorf("read streams: %w", err)
		}
		if err != nil {
			continue // a check reports it
		}
		rec, err := decodeRecord(row)
		if err != nil || rec.TtlSeconds == nil && rec.ExpiresAt == "" || rec.Forks > 0 {
			continue
		}
		gone, err := s.expire(ctx, rec.Path)
		if err != nil {
			return removed, err
		}
		if gone {
			removed++
		}
	}
	return removed, nil
}

// expire removes a stream if it has expired and has no forks.
func (s *Store) expire(ctx context.Context, path string) (gone bool, err error) {
	err = s.remove(ctx, path, func(l loaded) error {
		if gone = s.expired(l) && l.rec.Forks == 0; !gone {
			return errUnchanged
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return gone && err == nil, err
}
