package stream

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/lane"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// Delete removes a stream with its appends. The next collection removes its blobs. A
// stream with forks stays for them, and nothing else can use it or its path; it is
// removed with the last of its forks. A new stream under the same path has another
// id, and offsets of the old one are not valid in it unless they happen to be the
// same.
func (s *Store) Delete(ctx context.Context, path string) error {
	return s.remove(ctx, path, func(l loaded) error {
		switch {
		case l.rec.Deleted, s.expired(l) && l.rec.Forks > 0:
			return fmt.Errorf("delete stream %s: %w", path, ErrGone)
		case s.expired(l):
			return fmt.Errorf("delete stream %s: %w: it has expired", path, ErrNotFound)
		}
		return nil
	})
}

// remove removes a stream that ready accepts, or marks it if it has forks.
func (s *Store) remove(ctx context.Context, path string, ready func(loaded) error) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	l := s.lanes.Enter(path)
	defer s.lanes.Leave(l)
	if err := l.Begin(ctx); err != nil {
		return err
	}
	defer l.End()
	return lane.Retry(ctx, func() error {
		now, err := s.find(ctx, path)
		if err != nil {
			return err
		}
		if err := ready(now); errors.Is(err, errUnchanged) {
			return nil
		} else if err != nil {
			return err
		}
		b, err := s.removal(ctx, now)
		if err != nil {
			return err
		}
		if err := s.rows.Commit(ctx, b); err != nil {
			return fmt.Errorf("delete stream %s: %w", path, err)
		}
		return nil
	})
}

// removal returns the commit that removes a stream and every source that was kept
// only for it.
func (s *Store) removal(ctx context.Context, now loaded) (*kv.Batch, error) {
	b := &kv.Batch{Expect: []kv.Expect{now.expect()}}
	if now.access != nil {
		b.Expect = append(b.Expect, *now.access) // a read puts off the expiry
	}
	if now.rec.Forks > 0 {
		kept := proto.CloneOf(now.rec)
		kept.Deleted = true
		return b, put(b, kept)
	}
	for rec := now.rec; ; {
		drop(b, rec)
		if rec.Fork == nil {
			return b, nil
		}
		src, err := s.find(ctx, rec.Fork.Source)
		if errors.Is(err, ErrNotFound) {
			return b, nil // a check reports it
		}
		if err != nil {
			return nil, err
		}
		if src.rec.Id != rec.Fork.SourceId {
			return b, nil
		}
		b.Expect = append(b.Expect, src.expect())
		less := proto.CloneOf(src.rec)
		if less.Forks > 0 {
			less.Forks--
		}
		if !less.Deleted || less.Forks > 0 {
			return b, put(b, less)
		}
		rec = less
	}
}

func put(b *kv.Batch, rec *stetv1.StreamRecord) error {
	set, err := rowformat.Set(keyspace.Stream(rec.Path), rec)
	b.Set = append(b.Set, set)
	return err
}

// drop removes all rows of a stream.
func drop(b *kv.Batch, rec *stetv1.StreamRecord) {
	b.Delete = append(b.Delete, keyspace.Stream(rec.Path), keyspace.StreamAccess(rec.Id))
	b.DeleteRange = append(b.DeleteRange, keyspace.StreamAppends(rec.Id, 0), keyspace.StreamProducers(rec.Id))
}
