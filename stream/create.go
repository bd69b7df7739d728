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

// Config configures a new stream. Creating it again with the same one is harmless.
type Config struct {
	// ContentType is the content type of the appends. If it is empty, it is DefaultType
	// or, for a fork, that of the source.
	ContentType string
	// Expiry is when the stream expires. A fork without one uses that of its source.
	Expiry Expiry
	// Closed means that the stream accepts no appends: it has only its initial content.
	Closed bool
	// Fork, if set, makes the stream a fork.
	Fork *Fork
}

// Fork says where a fork begins.
type Fork struct {
	// Source is the path of the stream that it is a fork of.
	Source string
	// At is the place of the source at which the fork begins; its end if it is nil.
	At *Offset
	// Sub is how many messages (of JSON) or bytes of the append after that place the
	// fork also has.
	Sub uint64
}

// maxDepth is how deep forks of forks may go.
const maxDepth = 256

// Create creates a stream with some initial content. created is false if it already
// existed with the same configuration, whatever its content. It fails with ErrExists
// if the configuration differs, with ErrGone if the path or the source of a fork is
// kept only for forks, with ErrNotFound if there is no such source, and with
// ErrContentType if the source has another type.
func (s *Store) Create(ctx context.Context, path string, c Config, data []byte) (info Info, created bool, err error) {
	if err := CheckPath(path); err != nil {
		return Info{}, false, err
	}
	if len(data) > MaxAppend {
		return Info{}, false, fmt.Errorf("create stream %s: %w: %d bytes; the limit is %d", path, ErrTooLarge, len(data), MaxAppend)
	}
	if _, err := c.Expiry.check(); err != nil {
		return Info{}, false, fmt.Errorf("create stream %s: %w", path, err)
	}
	err = lane.Retry(ctx, func() error {
		info, created, err = s.tryCreate(ctx, path, c, data)
		var missing *kv.MissingBlobsError
		if errors.As(err, &missing) {
			return kv.ErrConflict // a collector removed the content: put it again
		}
		return err
	})
	return info, created, err
}

func (s *Store) tryCreate(ctx context.Context, path string, c Config, data []byte) (Info, bool, error) {
	now, err := s.find(ctx, path)
	if err == nil && !now.rec.Deleted && s.expired(now) && now.rec.Forks == 0 {
		if _, err := s.expire(ctx, path); err != nil {
			return Info{}, false, err
		}
		now, err = s.find(ctx, path)
	}
	switch {
	case err == nil && (now.rec.Deleted || s.expired(now)):
		return Info{}, false, fmt.Errorf("create stream %s: %w", path, ErrGone)
	case err == nil && !c.matches(now.rec):
		return Info{}, false, fmt.Errorf("create stream %s: %w", path, ErrExists)
	case err == nil:
		return infoOf(now.rec), false, nil
	case !errors.Is(err, ErrNotFound):
		return Info{}, false, err
	}
	n := &change{rec: &stetv1.StreamRecord{
		Format: recordFormat, Path: path, Id: newID(), ContentType: c.ContentType, CreatedMs: s.nowMS(), AccessedMs: s.nowMS(),
		TtlSeconds: c.Expiry.TTL, ExpiresAt: c.Expiry.At, Closed: c.Closed, Tail: Offset{}.record(),
	}}
	b := &kv.Batch{}
	if c.Fork != nil {
		if b, err = s.fork(ctx, n, *c.Fork); err != nil {
			return Info{}, false, fmt.Errorf("create stream %s: %w", path, err)
		}
	}
	if n.rec.ContentType == "" {
		n.rec.ContentType = DefaultType
	}
	if n.rec.ExpiresMs, err = (Expiry{At: n.rec.ExpiresAt}).check(); err != nil {
		return Info{}, false, err
	}
	if err := s.initial(ctx, n, data); err != nil {
		return Info{}, false, fmt.Errorf("create stream %s: %w", path, err)
	}
	own, err := n.batch(kv.Expect{Key: keyspace.Stream(path)})
	if err != nil {
		return Info{}, false, err
	}
	own.Expect, own.Set = append(own.Expect, b.Expect...), append(own.Set, b.Set...)
	if err := s.rows.Commit(ctx, own); err != nil {
		return Info{}, false, fmt.Errorf("create stream %s: %w", path, err)
	}
	return infoOf(n.rec), true, nil
}

// initial adds the first content of a new stream.
func (s *Store) initial(ctx context.Context, n *change, data []byte) error {
	parsed, err := contentOf(n.rec.ContentType, data)
	if err != nil {
		return err
	}
	kept, err := s.store(ctx, parsed)
	if err != nil {
		return err
	}
	return n.add(kept, n.rec.CreatedMs)
}

// matches reports whether a stream was created with this configuration.
func (c *Config) matches(rec *stetv1.StreamRecord) bool {
	fork := rec.GetFork()
	if (c.Fork == nil) != (fork == nil) || c.Closed != rec.Closed {
		return false
	}
	if fork == nil {
		wanted := c.ContentType
		if wanted == "" {
			wanted = DefaultType
		}
		return MediaType(wanted) == MediaType(rec.ContentType) && c.Expiry.equal(Expiry{TTL: rec.TtlSeconds, At: rec.ExpiresAt})
	}
	if c.Fork.Source != fork.Source || c.Fork.Sub != fork.Sub || c.Fork.At != nil && *c.Fork.At != offsetOf(fork.At) {
		return false
	}
	if c.ContentType != "" && MediaType(c.ContentType) != MediaType(rec.ContentType) {
		return false
	}
	if c.Expiry.none() {
		return rec.InheritsExpiry
	}
	return c.Expiry.equal(Expiry{TTL: rec.TtlSeconds, At: rec.ExpiresAt})
}

// fork makes a new stream a fork of a source, and returns the changes of the source.
func (s *Store) fork(ctx context.Context, n *change, f Fork) (*kv.Batch, error) {
	src, err := s.load(ctx, f.Source)
	if err != nil {
		return nil, err
	}
	if t := n.rec.ContentType; t != "" && MediaType(t) != MediaType(src.rec.ContentType) {
		return nil, fmt.Errorf("%w: %.64q; the source has %.64q", ErrContentType, t, src.rec.ContentType)
	}
	if n.rec.ContentType == "" {
		n.rec.ContentType = src.rec.ContentType
	}
	if n.rec.TtlSeconds == nil && n.rec.ExpiresAt == "" {
		n.rec.InheritsExpiry = true
		n.rec.TtlSeconds, n.rec.ExpiresAt = src.rec.TtlSeconds, src.rec.ExpiresAt
	}
	at := offsetOf(src.rec.Tail)
	if f.At != nil {
		at = *f.At
	}
	next, err := s.after(ctx, src.rec, at)
	if err != nil {
		return nil, err
	}
	n.rec.Tail = at.record()
	n.rec.Fork = &stetv1.StreamFork{Source: f.Source, SourceId: src.rec.Id, At: at.record(), Sub: f.Sub}
	if n.rec.Inherited = inherited(src.rec, at.Seq); len(n.rec.Inherited) > maxDepth {
		return nil, invalid("more than %d streams would be forks of each other", maxDepth)
	}
	if f.Sub > 0 {
		if err := s.prefix(ctx, n, next, f.Sub); err != nil {
			return nil, err
		}
	}
	changed := proto.CloneOf(src.rec)
	changed.Forks++
	set, err := rowformat.Set(keyspace.Stream(f.Source), changed)
	if err != nil {
		return nil, err
	}
	return &kv.Batch{Expect: []kv.Expect{src.expect()}, Set: []kv.Set{set}}, nil
}

// prefix gives a fork a part of the append that follows its place in the source.
func (s *Store) prefix(ctx context.Context, n *change, next *stetv1.StreamAppend, sub uint64) error {
	if next == nil {
		return invalid("the source has nothing after the place of the fork")
	}
	data, err := s.data(ctx, next)
	if err != nil {
		return err
	}
	part, ok := content{data: data, messages: next.Messages}.first(sub)
	if !ok {
		return invalid("the append of the source after the place of the fork has no %d parts", sub)
	}
	kept, err := s.store(ctx, part)
	if err != nil {
		return err
	}
	return n.add(kept, n.rec.CreatedMs)
}

// inheritedEnd returns the number of the last append that is not in the stream's own rows.
func inheritedEnd(rec *stetv1.StreamRecord) uint64 {
	if n := len(rec.Inherited); n > 0 {
		return rec.Inherited[n-1].End
	}
	return 0
}

// inherited returns where the first appends of a stream are.
func inherited(rec *stetv1.StreamRecord, upTo uint64) []*stetv1.StreamSegment {
	var parts []*stetv1.StreamSegment
	done := uint64(0)
	for _, part := range rec.Inherited {
		if done >= upTo {
			return parts
		}
		done = min(part.End, upTo)
		parts = append(parts, &stetv1.StreamSegment{Id: part.Id, End: done})
	}
	if done < upTo {
		parts = append(parts, &stetv1.StreamSegment{Id: rec.Id, End: upTo})
	}
	return parts
}
