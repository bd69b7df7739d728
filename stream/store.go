package stream

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/lane"
	"github.com/stet-dev/stet/kv"
)

// Store keeps streams in a blob store and a row store. It is safe for concurrent use;
// several processes may use the same rows.
type Store struct {
	blobs blob.Store
	rows  kv.Store
	opts  Options
	lanes lane.Set[queue]
	tails tails
}

// Options configure a Store; nil gives the defaults.
type Options struct {
	// Now is the clock; time.Now by default. Streams expire by it.
	Now func() time.Time
	// Poll is how often followers look for appends without a hint, 1 s by default.
	Poll time.Duration
}

// New returns the store of the streams in the given blobs and rows.
func New(blobs blob.Store, rows kv.Store, opts *Options) *Store {
	s := &Store{blobs: blobs, rows: rows}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.Poll <= 0 {
		s.opts.Poll = time.Second
	}
	return s
}

// MaxPath is the longest path in bytes.
const MaxPath = 512

// CheckPath returns an error for a text that cannot be the path of a stream.
func CheckPath(path string) error {
	switch {
	case path == "":
		return invalid("the path of a stream is empty")
	case len(path) > MaxPath:
		return invalid("the path of a stream has %d bytes; the limit is %d", len(path), MaxPath)
	case !utf8.ValidString(path):
		return invalid("the path of a stream is not UTF-8")
	case strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return invalid("the path of a stream holds a control character")
	}
	return nil
}

// Info describes a stream.
type Info struct {
	Path string
	// ID names this stream, not one that is created under its path later.
	ID          string
	ContentType string
	Created     time.Time
	Expiry      Expiry
	// Tail is the place after the last append.
	Tail   Offset
	Closed bool
	// Source is the path of the stream that this is a fork of; empty if it is not a
	// fork.
	Source string
	// Forks is the number of its own forks.
	Forks uint64
	// Gone means that the stream was deleted or has expired, and is kept for its forks.
	Gone bool
}

func infoOf(rec *stetv1.StreamRecord) Info {
	return Info{
		Path: rec.Path, ID: rec.Id, ContentType: rec.ContentType, Created: time.UnixMilli(rec.CreatedMs),
		Expiry: Expiry{TTL: rec.TtlSeconds, At: rec.ExpiresAt}, Tail: offsetOf(rec.Tail), Closed: rec.Closed,
		Source: rec.GetFork().GetSource(), Forks: rec.Forks, Gone: rec.Deleted,
	}
}

// Info returns what is known about a stream. It is not a read: it does not postpone
// the expiry.
func (s *Store) Info(ctx context.Context, path string) (Info, error) {
	now, err := s.load(ctx, path)
	if err != nil {
		return Info{}, err
	}
	return infoOf(now.rec), nil
}

// loaded is a record as it was read, with the conditions for changing it.
type loaded struct {
	rec      *stetv1.StreamRecord
	version  uint64
	accessed int64      // last read or write, in milliseconds
	access   *kv.Expect // of the row with the last read; nil if it cannot matter
}

// load reads the record of a stream that can be used.
func (s *Store) load(ctx context.Context, path string) (loaded, error) {
	now, err := s.find(ctx, path)
	switch {
	case err != nil:
		return loaded{}, err
	case now.rec.Deleted, s.expired(now) && now.rec.Forks > 0:
		return loaded{}, fmt.Errorf("stream %s: %w", path, ErrGone)
	case s.expired(now):
		return loaded{}, fmt.Errorf("stream %s: %w: it has expired", path, ErrNotFound)
	}
	return now, nil
}

// find reads the record of a stream in any state.
func (s *Store) find(ctx context.Context, path string) (loaded, error) {
	if err := CheckPath(path); err != nil {
		return loaded{}, err
	}
	row, err := s.rows.Get(ctx, keyspace.Stream(path))
	if errors.Is(err, kv.ErrNotFound) {
		return loaded{}, fmt.Errorf("stream %s: %w", path, ErrNotFound)
	}
	if err != nil {
		return loaded{}, fmt.Errorf("read stream %s: %w", path, err)
	}
	rec, err := decodeRecord(row)
	if err != nil {
		return loaded{}, err
	}
	return s.withAccess(ctx, loaded{rec: rec, version: row.Version, accessed: rec.AccessedMs})
}

// expect returns the condition that the record did not change.
func (l loaded) expect() kv.Expect {
	return kv.Expect{Key: keyspace.Stream(l.rec.Path), Version: l.version}
}

func (s *Store) nowMS() int64 { return max(0, s.opts.Now().UnixMilli()) }

// newID returns a random name for the rows of a stream.
func newID() string {
	var raw [12]byte
	rand.Read(raw[:])
	return hex.EncodeToString(raw[:])
}
