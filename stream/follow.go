package stream

import (
	"context"
	"fmt"
	"sync"

	"github.com/stet-dev/stet/fault"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/lane"
	"github.com/stet-dev/stet/kv"
)

// Follower reads a stream as it grows. Followers that wait for more share its end:
// each append is read once for all of them.
type Follower struct {
	s    *Store
	path string
	id   string // of the stream; empty before the first read
	at   Offset
	opts *ReadOptions
	ctx  context.Context // how long tail is held; there is no call that ends a follower
	tail *follows        // nil before it had to wait
}

// Follow returns a follower that continues after a place, until ctx is done. It is
// for use by one goroutine.
func (s *Store) Follow(ctx context.Context, path string, after Offset, opts *ReadOptions) *Follower {
	return &Follower{s: s, path: path, at: after, opts: opts, ctx: ctx}
}

// Read returns some of the appends after the last batch, or none at the end.
func (f *Follower) Read(ctx context.Context) (Batch, error) {
	b, err := f.s.Read(ctx, f.path, f.at, f.opts)
	if err != nil {
		return Batch{}, err
	}
	if f.id != "" && f.id != b.Info.ID {
		return Batch{}, fmt.Errorf("stream %s: %w: it was deleted and created again", f.path, ErrNotFound)
	}
	f.id, f.at = b.Info.ID, b.Next
	return b, nil
}

// Next is like Read, but at the end it waits until there is more or the stream is
// closed.
func (f *Follower) Next(ctx context.Context) (Batch, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Batch{}, err
		}
		var view tailView
		if f.tail != nil {
			view = f.tail.Look(f.place())
		}
		switch {
		case view.Found:
			return f.take(view), nil
		case view.Current && view.State.Closed:
			return Batch{Info: infoOf(view.State), Next: f.at, UpToDate: true, Closed: true}, nil
		case view.Current:
			if err := f.tail.Wait(ctx, view, 0); err != nil {
				return Batch{}, err
			}
			continue
		}
		b, err := f.Read(ctx)
		if err != nil || len(b.Appends) > 0 || b.Closed {
			return b, err
		}
		if f.tail == nil {
			f.tail = f.s.follow(f.path, b.Info)
			context.AfterFunc(f.ctx, f.tail.Leave)
			view = f.tail.Look(f.place())
		}
		if err := f.tail.Wait(ctx, view, f.s.pollOf(b.Info)); err != nil {
			return Batch{}, err
		}
	}
}

// take returns the appends that the shared end of the stream has.
func (f *Follower) take(view tailView) Batch {
	limit := defaultBatch
	if f.opts != nil && f.opts.MaxBytes > 0 {
		limit = f.opts.MaxBytes
	}
	b := Batch{Info: infoOf(view.State), only: view.Entry}
	for taken := 0; view.Found && taken < limit; view = f.tail.Look(f.place()) {
		b.Info = infoOf(view.State)
		b.Appends = append(b.Appends, view.Entry.Content)
		taken += len(view.Entry.Data)
		f.at = view.Entry.End
	}
	if len(b.Appends) > 1 {
		b.only = nil
	}
	b.Next, b.UpToDate = f.at, f.at == b.Info.Tail
	b.Closed = b.UpToDate && b.Info.Closed
	return b
}

// Encoded returns the appends in the encoding with a name, which encode makes.
// Appends that followers share are encoded once for all of them; the result must not
// be changed.
func (b *Batch) Encoded(name string, encode func() []byte) []byte {
	if b.only == nil {
		return encode()
	}
	return b.only.encoding(name, encode)
}

// place is a place in one particular stream, not in one created under its path later.
type place struct {
	id string
	at Offset
}

func (f *Follower) place() place { return place{f.id, f.at} }

// sharedAppend is an append that followers share. It is safe for concurrent use.
type sharedAppend struct {
	Content
	mu      sync.Mutex // guards encoded
	encoded map[string][]byte
}

func (a *sharedAppend) encoding(name string, encode func() []byte) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	data, ok := a.encoded[name]
	if !ok {
		if a.encoded == nil {
			a.encoded = make(map[string][]byte, 1)
		}
		data = encode()
		a.encoded[name] = data
	}
	return data
}

// The end of a stream that followers share, with its record.
type (
	tails    = lane.Tails[place, *sharedAppend, *stetv1.StreamRecord]
	follows  = lane.Follower[place, *sharedAppend, *stetv1.StreamRecord]
	tailView = lane.View[*sharedAppend, *stetv1.StreamRecord]
	tailPart = lane.Part[place, *sharedAppend, *stetv1.StreamRecord]
)

// errOther makes a tail start over, since its path now names another stream.
var errOther = fault.New(fault.Stale, "the path names another stream")

// follow joins the shared end of a stream.
func (s *Store) follow(path string, info Info) *follows {
	key := keyspace.Stream(path)
	return s.tails.Follow(path, lane.Source[place, *sharedAppend, *stetv1.StreamRecord]{
		Watch: func(ctx context.Context) <-chan struct{} {
			return s.rows.Watch(ctx, kv.Range{Start: key, End: key + "\x00"})
		},
		Start: func(ctx context.Context) (place, *stetv1.StreamRecord, error) {
			now, err := s.load(ctx, path)
			if err != nil {
				return place{}, nil, err
			}
			return place{now.rec.Id, offsetOf(now.rec.Tail)}, now.rec, nil
		},
		Read: func(ctx context.Context, after place, rec *stetv1.StreamRecord, _ bool) (tailPart, error) {
			return s.readTail(ctx, path, after, rec)
		},
		Poll: s.pollOf(info),
	})
}

// readTail reads what follows a place, for all followers. It postpones the expiry of
// the stream, as their own reads would.
func (s *Store) readTail(ctx context.Context, path string, after place, rec *stetv1.StreamRecord) (tailPart, error) {
	now, err := s.load(ctx, path)
	if err != nil {
		return tailPart{}, err
	}
	if now.rec.Id != after.id {
		return tailPart{}, errOther
	}
	if err := s.touch(ctx, now); err != nil {
		return tailPart{}, err
	}
	b, err := s.batch(ctx, now.rec, after.at, nil)
	if err != nil {
		return tailPart{}, err
	}
	part := tailPart{State: now.rec, Changed: rec.Closed != now.rec.Closed, More: !b.UpToDate}
	for _, c := range b.Appends {
		part.Entries = append(part.Entries, lane.Entry[place, *sharedAppend]{
			End: place{after.id, c.End}, Weight: 3*len(c.Data) + 256, // as it is, and encoded
			Value: &sharedAppend{Content: c},
		})
	}
	return part, nil
}
