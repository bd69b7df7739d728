package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
)

const (
	// page is how many blobs are queried at once.
	page = 512
	// parcelBlobs and parcelBytes limit what is put at once.
	parcelBlobs, parcelBytes = 64, 1 << 20
)

// SendOptions configure Send; nil gives the defaults.
type SendOptions struct {
	// All queries the remote again for every blob of the store, for a remote that was
	// restored or emptied.
	All bool
	// Progress, if set, is called from time to time.
	Progress func(Sent)
}

// Sent counts what Send did.
type Sent struct {
	// Looked counts blobs that the remote was queried for, Blobs and Bytes those that it
	// lacked.
	Looked, Blobs int
	Bytes         int64
	// Damaged counts blobs that could not be read here. They are sent after a repair.
	Damaged int
}

// Send sends what the remote lacks, and returns when the remote has it for good. If it
// fails, the rest is left to the next call, by this process or another.
func (s *Store) Send(ctx context.Context, opts *SendOptions) (sent Sent, err error) {
	if opts == nil {
		opts = &SendOptions{}
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return sent, ctx.Err()
	}
	defer func() { s.outcome(err) }()
	if err := s.local.Flush(ctx); err != nil { // only durable blobs have arrived
		return sent, err
	}
	_ = s.queue.Drain(ctx) // what it could not send is sent below, or fails again
	m, err := s.readMark(ctx)
	if err != nil {
		return sent, err
	}
	if opts.All {
		m.Mark = ""
	}
	for {
		infos, next, err := s.arrivals.Arrived(ctx, m.Mark, page)
		if err != nil {
			return sent, fmt.Errorf("find blobs to send: %w", err)
		}
		if next == m.Mark {
			return sent, s.sendPromoted(ctx, m.Origin, &sent)
		}
		ids, err := s.sendable(ctx, infos)
		if err == nil {
			err = s.sendPage(ctx, m.Origin, ids, &sent)
		}
		if err != nil {
			return sent, err
		}
		m.Mark = next
		if m, err = s.writeMark(ctx, m); err != nil {
			return sent, err
		}
		if opts.Progress != nil {
			opts.Progress(sent)
		}
	}
}

// sendPage makes the remote hold some blobs.
func (s *Store) sendPage(ctx context.Context, origin string, ids []blob.ID, sent *Sent) error {
	if len(ids) == 0 {
		return nil
	}
	sent.Looked += len(ids)
	missing, err := s.lacking(ctx, origin, ids)
	if err != nil || len(missing) == 0 {
		return err
	}
	held, err := s.transmit(ctx, missing, sent)
	if err != nil {
		return err
	}
	if s.remote.Keep == nil {
		return s.remote.Blobs.Flush(ctx)
	}
	left, err := s.remote.Keep(ctx, origin, without(ids, missing, held))
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%s does not keep %d blobs that were sent to it", s.remote.Name, len(left))
	}
	return err
}

// without returns ids except those of missing that are not held here.
func without(ids, missing []blob.ID, held map[blob.ID]bool) []blob.ID {
	gone := make(map[blob.ID]bool)
	for _, id := range missing {
		gone[id] = !held[id]
	}
	var out []blob.ID
	for _, id := range ids {
		if !gone[id] {
			out = append(out, id)
		}
	}
	return out
}

// lacking returns which blobs the remote does not have for good.
func (s *Store) lacking(ctx context.Context, origin string, ids []blob.ID) ([]blob.ID, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if s.remote.Keep != nil {
		return s.remote.Keep(ctx, origin, ids)
	}
	unknown := s.unknown(ids)
	if len(unknown) == 0 {
		return nil, s.remote.Blobs.Flush(ctx)
	}
	has, err := s.remote.Blobs.Has(ctx, unknown...)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", s.remote.Name, err)
	}
	var missing []blob.ID
	for i, id := range unknown {
		if !has[i] {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil, s.remote.Blobs.Flush(ctx)
	}
	return missing, nil
}

// transmit puts blobs to the remote and returns those that are held here. Others were
// collected since they arrived, or are damaged.
func (s *Store) transmit(ctx context.Context, ids []blob.ID, sent *Sent) (map[blob.ID]bool, error) {
	held := make(map[blob.ID]bool)
	var parcel []blob.Blob
	size := 0
	send := func() error {
		err := s.receiving().Put(ctx, parcel...)
		sent.Blobs, sent.Bytes = sent.Blobs+len(parcel), sent.Bytes+int64(size)
		parcel, size = nil, 0
		return err
	}
	for _, id := range ids {
		data, err := s.local.Get(ctx, id)
		switch {
		case errors.Is(err, blob.ErrNotFound):
			continue
		case errors.Is(err, blob.ErrCorrupt):
			sent.Damaged++
			continue
		case errors.Is(err, blob.ErrTooLarge):
			n, err := s.stream(ctx, id)
			if err != nil {
				return held, err
			}
			sent.Blobs, sent.Bytes = sent.Blobs+1, sent.Bytes+n
		case err != nil:
			return held, err
		default:
			parcel, size = append(parcel, blob.Blob{ID: id, Data: data}), size+len(data)
		}
		held[id] = true
		if len(parcel) >= parcelBlobs || size >= parcelBytes {
			if err := send(); err != nil {
				return held, err
			}
		}
	}
	if len(parcel) > 0 {
		return held, send()
	}
	return held, nil
}

// stream sends a blob that does not fit into memory. Its size is not recorded: it is
// read twice.
func (s *Store) stream(ctx context.Context, id blob.ID) (int64, error) {
	r, err := blob.Open(ctx, s.local, id)
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(io.Discard, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return 0, err
	}
	if r, err = blob.Open(ctx, s.local, id); err != nil {
		return 0, err
	}
	err = blob.PutFrom(ctx, s.receiving(), id, r, size)
	return size, errors.Join(err, r.Close())
}

// receiving is the remote for writes.
func (s *Store) receiving() blob.Store { return &receiver{s} }

// Run sends waiting blobs from time to time, until ctx is done. It is for long-running
// processes. A remote that fails is tried less and less often.
func (s *Store) Run(ctx context.Context) {
	const usual, most = 2 * time.Second, time.Minute
	for wait := usual; ; {
		if _, err := s.Send(ctx, nil); err != nil {
			wait = min(2*wait, most)
		} else {
			wait = usual
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// receiver wraps the remote: it checks that the remote is ready before it writes, and
// remembers the blobs that it wrote.
type receiver struct{ s *Store }

var _ blob.Streamer = (*receiver)(nil)

func (r *receiver) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if err := r.s.away.err(); err != nil {
		return nil, err
	}
	data, err := r.s.remote.Blobs.Get(ctx, id)
	r.s.away.note(err)
	return data, err
}

func (r *receiver) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	return r.s.remote.Blobs.Has(ctx, ids...)
}

func (r *receiver) Flush(ctx context.Context) error { return r.s.remote.Blobs.Flush(ctx) }

func (r *receiver) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	if err := r.s.away.err(); err != nil {
		return nil, err
	}
	reader, err := blob.Open(ctx, r.s.remote.Blobs, id)
	r.s.away.note(err)
	return reader, err
}

func (r *receiver) Put(ctx context.Context, blobs ...blob.Blob) error {
	if err := r.s.ready(ctx); err != nil {
		return err
	}
	if err := r.s.remote.Blobs.Put(ctx, blobs...); err != nil {
		return err
	}
	for i := range blobs {
		r.s.remember(blobs[i].ID)
	}
	return nil
}

func (r *receiver) PutFrom(ctx context.Context, id blob.ID, from io.Reader, size int64) error {
	if err := r.s.ready(ctx); err != nil {
		return err
	}
	if err := blob.PutFrom(ctx, r.s.remote.Blobs, id, from, size); err != nil {
		return err
	}
	r.s.remember(id)
	return nil
}

// away remembers for a while that the remote cannot be reached: a command that looks
// for many blobs must not wait for each of them.
type away struct {
	mu    sync.Mutex // guards what follows
	cause error
	until time.Time
}

// awayFor is how long an unreachable remote is not asked for content.
const awayFor = 10 * time.Second

func (a *away) note(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cause = nil; fault.Of(err) == fault.Unreachable {
		a.cause, a.until = err, time.Now().Add(awayFor)
	}
}

func (a *away) err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cause == nil || time.Now().After(a.until) {
		return nil
	}
	return a.cause
}

func (s *Store) ready(ctx context.Context) error {
	if s.remote.Ready == nil {
		return nil
	}
	return s.remote.Ready(ctx)
}
