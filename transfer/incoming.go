package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/document"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/stream"
	"github.com/stet-dev/stet/thread"
)

// MaxIncoming is how many bytes the rows of an incoming conversation may have. They are
// held in memory until the whole conversation has arrived. Each row and each blob counts
// for some bytes more.
const MaxIncoming = 64 << 20

// entryBytes is roughly the memory that an entry of a map takes.
const entryBytes = 64

// Incoming takes a conversation that arrives in parts, such as those of Send, and moves it
// into a store at the end. Blobs are put as they come; rows are held back until Finish has
// examined the whole. The caller must close it. It is not safe for concurrent use.
type Incoming struct {
	to    Side
	id    string
	opts  Options
	rows  *memkv.Store
	held  int               // bytes of the rows
	count map[string]bool   // keys of the rows
	sizes map[blob.ID]int64 // of the blobs that arrived
	small parcel
	large *largeBlob
}

// Receive begins to take a conversation for a store. It uses only Force of the options.
func Receive(to Side, id string, opts *Options) *Incoming {
	in := &Incoming{to: to, id: id, rows: memkv.New(nil), count: make(map[string]bool), sizes: make(map[blob.ID]int64)}
	if opts != nil {
		in.opts.Force = opts.Force
	}
	in.small = parcel{m: &mover{report: &Report{}}, put: to.Blobs.Put}
	return in
}

// Held is how many bytes of rows are in memory.
func (in *Incoming) Held() int64 { return int64(in.held) }

// Take takes a part. For a row that readers would reject the error wraps
// kv.ErrInvalidBatch, and for a blob that does not match its id blob.ErrMismatch.
func (in *Incoming) Take(ctx context.Context, p Part) error {
	b := &kv.Batch{}
	for _, row := range p.Rows {
		if err := checkIncoming(row); err != nil {
			return err
		}
		if err := in.hold(2*len(row.Key) + len(row.Value)); err != nil {
			return err
		}
		b.Set = append(b.Set, kv.Set{Key: row.Key, Value: row.Value})
		in.count[row.Key] = true
	}
	if len(b.Set) > 0 {
		if err := in.rows.Commit(ctx, b); err != nil {
			return err
		}
	}
	for _, piece := range p.Pieces {
		if err := in.piece(ctx, piece); err != nil {
			return err
		}
	}
	return in.small.send(ctx) // what has arrived need not be sent again
}

// hold counts what stays in memory.
func (in *Incoming) hold(n int) error {
	if in.held += n + entryBytes; in.held > MaxIncoming {
		return fmt.Errorf("%w: the rows of the conversation have more than %d bytes", kv.ErrTooLarge, MaxIncoming)
	}
	return nil
}

// checkIncoming rejects rows that no reader accepts. The class of the reader's error is
// dropped: no stored data is damaged.
func checkIncoming(row kv.Row) error {
	for _, check := range []func(kv.Row) error{conversation.CheckRow, checkpoint.CheckRow, cloudagent.CheckRow, stream.CheckRow, thread.CheckRow, document.CheckRow} {
		if err := check(row); err != nil {
			return fmt.Errorf("%w: refused: %v", kv.ErrInvalidBatch, err)
		}
	}
	return nil
}

// piece takes a piece of a blob: all of it, or one of several.
func (in *Incoming) piece(ctx context.Context, p Piece) error {
	if in.large != nil {
		return in.more(p)
	}
	if p.Size < 0 || int64(len(p.Data)) > p.Size {
		return fmt.Errorf("%w: %d bytes of %d of blob %s", kv.ErrInvalidBatch, len(p.Data), p.Size, p.ID)
	}
	if _, twice := in.sizes[p.ID]; !twice {
		if err := in.hold(0); err != nil {
			return err
		}
	}
	in.sizes[p.ID] = p.Size
	if int64(len(p.Data)) == p.Size {
		return in.small.add(ctx, blob.Blob{ID: p.ID, Data: p.Data})
	}
	in.large = newLargeBlob(ctx, in.to.Blobs, p)
	return in.more(p)
}

// more passes a piece on to the large blob. One that has ended is forgotten: it cannot be
// ended twice.
func (in *Incoming) more(p Piece) error {
	done, err := in.large.add(p)
	if done || err != nil {
		in.large = nil
	}
	return err
}

// Close ends a blob that did not arrive as a whole.
func (in *Incoming) Close() {
	if in.large != nil {
		in.large.abort(io.ErrUnexpectedEOF)
		in.large = nil
	}
}

// Finish moves what has arrived into the store, as Run does: it examines all of it first,
// and each save and each checkpoint becomes visible as a whole. A conversation that was
// continued on both sides is left alone unless Force is set. The error wraps
// kv.ErrInvalidBatch if readers would reject a part of it or a row belongs elsewhere, and
// is a *kv.MissingBlobsError if blobs neither are in the store nor have arrived; in both
// cases nothing is changed.
func (in *Incoming) Finish(ctx context.Context) (Moved, error) {
	if in.large != nil {
		return Moved{}, fmt.Errorf("%w: blob %s did not arrive as a whole", kv.ErrInvalidBatch, in.large.id)
	}
	if _, err := service(in.to).Records(ctx, in.id); err != nil {
		return Moved{}, err // what the store has is damaged, not what arrived
	}
	from := Side{Blobs: in.to.Blobs, Rows: in.rows, Encrypted: in.to.Encrypted}
	if err := in.whole(ctx, from); err != nil {
		return Moved{}, err
	}
	// Look at all of it first: a save must not appear if a later one cannot.
	look := in.mover(from, true)
	err := look.conversation(ctx, in.id)
	if lacks := append(look.absent, look.lacks...); len(lacks) > 0 {
		return Moved{}, &kv.MissingBlobsError{IDs: lacks}
	}
	if err != nil {
		return Moved{}, refused(err)
	}
	m := in.mover(from, false)
	if err := m.conversation(ctx, in.id); err != nil {
		return Moved{}, refused(err)
	}
	return m.report.Conversations[len(m.report.Conversations)-1], nil
}

func (in *Incoming) mover(from Side, look bool) *mover {
	m := &mover{from: from, to: in.to, report: &Report{}, opts: in.opts, arrived: in.sizes}
	m.opts.DryRun = look
	m.forget()
	return m
}

// whole checks that the rows are those of one conversation.
func (in *Incoming) whole(ctx context.Context, from Side) error {
	left := len(in.count)
	err := Rows(ctx, from, in.id, func(rows []kv.Row) error { left -= len(rows); return nil })
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w: the record of conversation %s did not arrive", kv.ErrInvalidBatch, in.id)
	}
	if err == nil && left > 0 {
		err = fmt.Errorf("%w: %d rows do not belong to conversation %s", kv.ErrInvalidBatch, left, in.id)
	}
	return refused(err)
}

// refused converts an error about received data to its meaning for the sender: no stored
// data is damaged.
func refused(err error) error {
	if err == nil || errors.Is(err, ErrChanged) || errors.Is(err, kv.ErrInvalidBatch) || !ofOne(err) {
		return err
	}
	return fmt.Errorf("%w: refused: %v", kv.ErrInvalidBatch, err)
}

// largeBlob is a blob whose pieces are written as they come.
type largeBlob struct {
	id   blob.ID
	left int64
	in   *io.PipeWriter
	done chan error
	// stored means that the writer has ended early, without an error.
	stored bool
}

func newLargeBlob(ctx context.Context, to blob.Store, first Piece) *largeBlob {
	out, in := io.Pipe()
	l := &largeBlob{id: first.ID, left: first.Size, in: in, done: make(chan error, 1)}
	go func() {
		err := blob.PutFrom(ctx, to, first.ID, out, first.Size)
		_ = out.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // ends a writer that is not done
		l.done <- err
	}()
	return l
}

// add passes a piece on, and reports whether it was the last.
func (l *largeBlob) add(p Piece) (last bool, err error) {
	if p.ID != l.id || int64(len(p.Data)) > l.left {
		l.abort(io.ErrUnexpectedEOF)
		return true, fmt.Errorf("%w: blob %s lacks %d bytes", kv.ErrInvalidBatch, l.id, l.left)
	}
	l.left -= int64(len(p.Data))
	if !l.stored {
		if _, ended := l.in.Write(p.Data); ended != nil {
			if err := <-l.done; err != nil {
				return true, err
			}
			l.stored = true // the store had it and reads no further
		}
	}
	if l.left > 0 || l.stored {
		return l.left == 0, nil
	}
	_ = l.in.Close() // never fails
	return true, <-l.done
}

func (l *largeBlob) abort(err error) {
	if !l.stored {
		_ = l.in.CloseWithError(err) // never fails
		<-l.done
	}
}
