package subscription

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/lane"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/stream"
)

// recordFormat is the format of the rows that this release reads and writes.
const recordFormat = 1

// Store keeps subscriptions in rows. It is safe for concurrent use; several processes may
// use the same rows.
type Store struct {
	streams *stream.Store
	rows    kv.Store
	now     func() time.Time
}

// Options configure a Store; nil gives the defaults.
type Options struct {
	// Now is the clock; time.Now by default. Leases end by it.
	Now func() time.Time
}

// New returns the subscriptions to some streams, which are in the same rows.
func New(streams *stream.Store, rows kv.Store, opts *Options) *Store {
	s := &Store{streams: streams, rows: rows, now: time.Now}
	if opts != nil && opts.Now != nil {
		s.now = opts.Now
	}
	return s
}

// before is the cursor of a stream before anything was processed.
const before = "-1"

// Subscription describes a subscription.
type Subscription struct {
	ID string
	Config
	Created time.Time
	Links   []Link
	// Failing means that the last delivery of a wake failed.
	Failing bool
	// Generation and Wake are the wake under way; Wake is empty if there is none.
	Generation uint64
	Wake       string
	// Due is when the subscription needs work without a request: its lease ends, or a
	// delivery is retried. Zero means never.
	Due time.Time
}

// Link is a stream of a subscription.
type Link struct {
	Path string
	// Explicit means that the stream was named, not just found by the pattern.
	Explicit bool
	// Acked is the offset up to which the stream was processed, or "-1".
	Acked string
	// Tail is the end of the stream; Pending means that it is after Acked.
	Tail    string
	Pending bool
}

// Put creates a subscription, or returns an existing one with the same configuration.
// The streams that it finds are linked at their ends.
func (s *Store) Put(ctx context.Context, id string, c Config) (sub Subscription, created bool, err error) {
	if err := errors.Join(checkID(id), c.check()); err != nil {
		return Subscription{}, false, err
	}
	rec := &stetv1.SubscriptionRecord{
		Format: recordFormat, Id: id, Kind: c.Kind, Pattern: c.Pattern, Webhook: c.URL, WakeStream: c.WakeStream, LeaseMs: c.Lease.Milliseconds(),
		Description: c.Description, CreatedMs: s.now().UnixMilli(), Config: c.sum(), Origin: c.Origin, Owner: c.Owner,
	}
	for _, path := range c.Streams {
		if err := s.link(ctx, rec, path, true); err != nil {
			return Subscription{}, false, err
		}
	}
	if c.Pattern != "" {
		for info, err := range s.streams.List(ctx) {
			if err != nil {
				return Subscription{}, false, err
			}
			if !info.Gone && Match(c.Pattern, info.Path) {
				linkAt(rec, info.Path, false, info.Tail.String())
			}
		}
	}
	if len(rec.Links) > maxStreams {
		return Subscription{}, false, invalid("a subscription has at most %d streams", maxStreams)
	}
	err = lane.Retry(ctx, func() error {
		old, version, err := s.load(ctx, id)
		if errors.Is(err, ErrNotFound) {
			created = true
			return s.commit(ctx, rec, 0)
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(old.Config, rec.Config) {
			return fmt.Errorf("subscription %s: %w", id, ErrExists)
		}
		created = false
		if old.Owner != c.Owner || old.Origin != c.Origin { // who confirms it takes it over
			old.Owner, old.Origin = c.Owner, c.Origin
			return s.commit(ctx, old, version)
		}
		return nil
	})
	if err != nil {
		return Subscription{}, false, err
	}
	sub, err = s.Get(ctx, id)
	return sub, created, err
}

// Get returns a subscription.
func (s *Store) Get(ctx context.Context, id string) (Subscription, error) {
	rec, _, err := s.load(ctx, id)
	if err != nil {
		return Subscription{}, err
	}
	return s.describe(ctx, rec)
}

// DueAt returns when a subscription needs work without a request; zero means never.
func (s *Store) DueAt(ctx context.Context, id string) (time.Time, error) {
	rec, _, err := s.load(ctx, id)
	if err != nil {
		return time.Time{}, err
	}
	return plain(rec).Due, nil
}

// List yields the subscriptions without their links, in the order of their ids.
func (s *Store) List(ctx context.Context) iter.Seq2[Subscription, error] {
	return func(yield func(Subscription, error) bool) {
		for row, err := range kv.Each(ctx, s.rows, keyspace.Subscriptions(), false) {
			var rec *stetv1.SubscriptionRecord
			if err == nil {
				rec, err = decode(row)
			}
			if err != nil {
				if !yield(Subscription{}, err) || row.Key == "" {
					return
				}
				continue
			}
			if !yield(plain(rec), nil) {
				return
			}
		}
	}
}

// Delete removes a subscription; it is not an error if there is none.
func (s *Store) Delete(ctx context.Context, id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	return s.rows.Commit(ctx, &kv.Batch{Delete: []string{keyspace.Subscription(id)}})
}

// Add names streams, which are linked at their ends.
func (s *Store) Add(ctx context.Context, id string, paths ...string) error {
	return s.update(ctx, id, func(rec *stetv1.SubscriptionRecord) error {
		for _, path := range paths {
			path = Path(path)
			if err := stream.CheckPath(path); err != nil {
				return invalid("%v", err)
			}
			if err := s.link(ctx, rec, path, true); err != nil {
				return err
			}
		}
		if len(rec.Links) > maxStreams {
			return invalid("a subscription has at most %d streams", maxStreams)
		}
		return nil
	})
}

// Remove removes a named stream. It stays linked if the pattern finds it.
func (s *Store) Remove(ctx context.Context, id, path string) error {
	path = Path(path)
	return s.update(ctx, id, func(rec *stetv1.SubscriptionRecord) error {
		i, ok := position(rec, path)
		if !ok {
			return nil
		}
		if rec.Links[i].Explicit = false; !rec.Links[i].Matched {
			rec.Links = slices.Delete(rec.Links, i, i+1)
		}
		return nil
	})
}

// tail returns the end of a stream; one that does not exist is empty.
func (s *Store) tail(ctx context.Context, path string) (string, error) {
	info, err := s.streams.Info(ctx, path)
	if errors.Is(err, stream.ErrNotFound) || errors.Is(err, stream.ErrGone) {
		return stream.Offset{}.String(), nil
	}
	return info.Tail.String(), err
}

// link adds a stream at its end.
func (s *Store) link(ctx context.Context, rec *stetv1.SubscriptionRecord, path string, explicit bool) error {
	tail, err := s.tail(ctx, path)
	if err != nil {
		return err
	}
	linkAt(rec, path, explicit, tail)
	return nil
}

// linkAt adds a stream, or records that a linked one is linked this way, too.
func linkAt(rec *stetv1.SubscriptionRecord, path string, explicit bool, acked string) {
	i, ok := position(rec, path)
	if !ok {
		rec.Links = slices.Insert(rec.Links, i, &stetv1.SubscriptionLink{Path: path, Acked: acked})
	}
	rec.Links[i].Explicit = rec.Links[i].Explicit || explicit
	rec.Links[i].Matched = rec.Links[i].Matched || !explicit
}

func position(rec *stetv1.SubscriptionRecord, path string) (int, bool) {
	return slices.BinarySearchFunc(rec.Links, path, func(l *stetv1.SubscriptionLink, path string) int {
		return strings.Compare(l.Path, path)
	})
}

func plain(rec *stetv1.SubscriptionRecord) Subscription {
	sub := Subscription{
		ID: rec.Id, Created: time.UnixMilli(rec.CreatedMs), Failing: rec.Failures > 0, Generation: rec.Generation, Wake: rec.Wake,
		Config: Config{
			Kind: rec.Kind, Pattern: rec.Pattern, URL: rec.Webhook, WakeStream: rec.WakeStream,
			Lease: time.Duration(rec.LeaseMs) * time.Millisecond, Description: rec.Description, Origin: rec.Origin, Owner: rec.Owner,
		},
	}
	if due := earliest(rec.LeaseUntilMs, rec.NextAttemptMs); due > 0 && rec.Wake != "" {
		sub.Due = time.UnixMilli(due)
	}
	return sub
}

// earliest returns the smaller of two times that are set.
func earliest(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

func (s *Store) describe(ctx context.Context, rec *stetv1.SubscriptionRecord) (Subscription, error) {
	sub := plain(rec)
	for _, l := range rec.Links {
		tail, err := s.tail(ctx, l.Path)
		if err != nil {
			return Subscription{}, err
		}
		sub.Links = append(sub.Links, Link{Path: l.Path, Explicit: l.Explicit, Acked: l.Acked, Tail: tail, Pending: pending(l.Acked, tail)})
	}
	return sub, nil
}

// pending reports whether a stream has more than its cursor says. Offsets sort like their
// places, and "-1" before them; a stream without appends has nothing.
func pending(acked, tail string) bool { return tail > acked && tail != stream.Offset{}.String() }

func (s *Store) load(ctx context.Context, id string) (*stetv1.SubscriptionRecord, uint64, error) {
	if err := checkID(id); err != nil {
		return nil, 0, err
	}
	row, err := s.rows.Get(ctx, keyspace.Subscription(id))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, 0, fmt.Errorf("subscription %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read subscription %s: %w", id, err)
	}
	rec, err := decode(row)
	return rec, row.Version, err
}

func decode(row kv.Row) (*stetv1.SubscriptionRecord, error) {
	rec := new(stetv1.SubscriptionRecord)
	if err := rowformat.Decode(row, rec, recordFormat); err != nil {
		return nil, err
	}
	if keyspace.Subscription(rec.Id) != row.Key {
		return nil, fmt.Errorf("%w: row %q is of subscription %q", kv.ErrCorrupt, row.Key, rec.Id)
	}
	return rec, nil
}

// CheckRow returns the error that a reader of this package would return for a row,
// and nil for rows of other packages.
func CheckRow(row kv.Row) error {
	if !keyspace.Subscriptions().Contains(row.Key) {
		return nil
	}
	_, err := decode(row)
	return err
}

func (s *Store) commit(ctx context.Context, rec *stetv1.SubscriptionRecord, version uint64) error {
	key := keyspace.Subscription(rec.Id)
	set, err := rowformat.Set(key, rec)
	if err != nil {
		return err
	}
	err = s.rows.Commit(ctx, &kv.Batch{Expect: []kv.Expect{{Key: key, Version: version}}, Set: []kv.Set{set}})
	if err != nil {
		return fmt.Errorf("change subscription %s: %w", rec.Id, err)
	}
	return nil
}

// update changes a subscription; do is called again if another change was faster.
func (s *Store) update(ctx context.Context, id string, do func(*stetv1.SubscriptionRecord) error) error {
	return lane.Retry(ctx, func() error {
		rec, version, err := s.load(ctx, id)
		if err != nil {
			return err
		}
		old := proto.CloneOf(rec)
		if err := do(rec); err != nil || proto.Equal(old, rec) {
			return err
		}
		return s.commit(ctx, rec, version)
	})
}

func newWake() string {
	var raw [12]byte
	rand.Read(raw[:])
	return "w_" + hex.EncodeToString(raw[:])
}
