package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// MaxAppend is the largest content of one append.
const MaxAppend = 8 << 20

// maxInline is the largest content that is stored in its row; larger content is a
// blob.
const maxInline = 32 << 10

// MaxProducerNumber is the largest epoch and number of a producer: the largest integer
// that every JSON reader can represent.
const MaxProducerNumber = 1<<53 - 1

// Append is a request to add to a stream, to close it, or both.
type Append struct {
	// ContentType must be that of the stream if there is Data.
	ContentType string
	// Data is one append: bytes or, in a stream of JSON, a message or an array of them.
	// It may be empty only with Close.
	Data []byte
	// Seq, if set, must be greater than the last one of the stream, by its bytes.
	Seq string
	// Producer, if set, makes a repeated append harmless.
	Producer *Producer
	// Close closes the stream after the append.
	Close bool
}

// Producer numbers the appends of one writer.
type Producer struct {
	// ID is the name of the writer.
	ID string
	// Epoch increases with each start of the writer, and fences its earlier epochs.
	Epoch uint64
	// Seq numbers the appends of an epoch, from 0.
	Seq uint64
}

// Appended is the result of an append.
type Appended struct {
	// Tail is the end of the stream.
	Tail Offset
	// Closed means that the stream is closed.
	Closed bool
	// Duplicate means that this append of the producer was already stored.
	Duplicate bool
	// ProducerSeq is the number of the last append of the producer.
	ProducerSeq uint64
}

// Append adds to a stream. What it added is durable when it returns. If it fails with
// ErrNotFound, ErrGone, ErrClosed, ErrContentType, ErrSeq, ErrFenced, ErrGap or
// ErrInvalid, nothing was changed.
func (s *Store) Append(ctx context.Context, path string, a Append) (Appended, error) {
	if err := a.check(); err != nil {
		return Appended{}, fmt.Errorf("append to stream %s: %w", path, err)
	}
	parsed, bad := contentOf(a.ContentType, a.Data)
	if bad == nil && len(a.Data) > 0 && len(parsed.data) == 0 {
		bad = invalid("an empty array holds no messages")
	}
	for {
		stored, err := s.store(ctx, parsed)
		if err != nil {
			return Appended{}, fmt.Errorf("append to stream %s: %w", path, err)
		}
		var done Appended
		err = s.update(ctx, path, len(stored.rec.GetData()), func(c *change) (err error) {
			done, err = s.apply(ctx, c, a, stored, bad)
			return err
		})
		var missing *kv.MissingBlobsError
		if errors.As(err, &missing) {
			continue // a collector removed one, of this append or of one beside it
		}
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrGone) {
			err = fmt.Errorf("append to stream %s: %w", path, err)
		}
		return done, err
	}
}

// check finds errors that do not depend on the stream.
func (a *Append) check() error {
	switch {
	case len(a.Data) == 0 && !a.Close:
		return invalid("there is nothing to append")
	case len(a.Data) > 0 && a.ContentType == "":
		return invalid("an append needs a content type")
	case len(a.Data) > MaxAppend:
		return fmt.Errorf("%w: %d bytes; the limit is %d", ErrTooLarge, len(a.Data), MaxAppend)
	case len(a.Seq) > keyspace.MaxID:
		return invalid("the sequence has %d bytes; the limit is %d", len(a.Seq), keyspace.MaxID)
	case a.Producer == nil:
		return nil
	}
	if err := keyspace.CheckID(a.Producer.ID); err != nil {
		return invalid("the id of the producer %v", err)
	}
	if max(a.Producer.Epoch, a.Producer.Seq) > MaxProducerNumber {
		return invalid("the numbers of a producer go up to %d", uint64(MaxProducerNumber))
	}
	return nil
}

// stored is content that a row can name.
type stored struct {
	rec  *stetv1.StreamAppend // nil without content
	refs []blob.ID
}

// store puts large content into a blob. It becomes durable with the commit that names it.
func (s *Store) store(ctx context.Context, c content) (stored, error) {
	if len(c.data) == 0 {
		return stored{}, nil
	}
	rec := &stetv1.StreamAppend{Format: recordFormat, Messages: c.messages}
	if len(c.data) <= maxInline {
		rec.Data = c.data
		return stored{rec: rec}, nil
	}
	b := blob.New(c.data)
	if err := s.blobs.Put(ctx, b); err != nil {
		return stored{}, err
	}
	rec.Blob, rec.BlobSize = b.ID.Bytes(), uint64(len(c.data))
	return stored{rec: rec, refs: []blob.ID{b.ID}}, nil
}

// apply checks an append against the stream and adds it to a change. bad is the error
// of its content, which matters only if the append is not a repetition.
func (s *Store) apply(ctx context.Context, c *change, a Append, content stored, bad error) (Appended, error) {
	tail := offsetOf(c.rec.Tail)
	if c.rec.Closed {
		return closedAlready(c.rec, a)
	}
	if len(a.Data) > 0 && MediaType(a.ContentType) != MediaType(c.rec.ContentType) {
		return Appended{}, fmt.Errorf("%w: %.64q; the stream has %.64q", ErrContentType, a.ContentType, c.rec.ContentType)
	}
	var next *stetv1.StreamProducer
	if a.Producer != nil {
		last, err := s.producer(ctx, c, a.Producer.ID)
		if err != nil {
			return Appended{}, err
		}
		if next, err = a.Producer.follow(last); err != nil {
			return Appended{}, err
		}
		if next == nil {
			return Appended{Tail: tail, Duplicate: true, ProducerSeq: last.Seq}, errUnchanged
		}
	}
	if a.Seq != "" && a.Seq <= c.rec.Seq {
		return Appended{}, fmt.Errorf("%w: %.64q after %.64q", ErrSeq, a.Seq, c.rec.Seq)
	}
	if bad != nil {
		return Appended{}, bad
	}
	if err := c.add(content, s.nowMS()); err != nil {
		return Appended{}, err
	}
	if a.Seq != "" {
		c.rec.Seq = a.Seq
	}
	done := Appended{Tail: offsetOf(c.rec.Tail), Closed: a.Close}
	if next != nil {
		c.producers[next.Id], c.moved[next.Id] = next, true
		done.ProducerSeq = next.Seq
	}
	if a.Close {
		c.rec.Closed, c.rec.ClosedBy = true, next
	}
	return done, nil
}

// closedAlready answers an append to a closed stream: only the append that closed it,
// and a close without a producer, may be repeated.
func closedAlready(rec *stetv1.StreamRecord, a Append) (Appended, error) {
	done := Appended{Tail: offsetOf(rec.Tail), Closed: true}
	by, p := rec.ClosedBy, a.Producer
	switch {
	case p == nil && len(a.Data) == 0:
		return done, errUnchanged
	case p != nil && by != nil && by.Id == p.ID && by.Epoch == p.Epoch && by.Seq == p.Seq:
		done.Duplicate, done.ProducerSeq = true, p.Seq
		return done, errUnchanged
	}
	return Appended{}, &ClosedError{Tail: done.Tail}
}

// follow returns the state of a producer after its next append, or nil if the append is
// a repetition.
func (p *Producer) follow(last *stetv1.StreamProducer) (*stetv1.StreamProducer, error) {
	next := &stetv1.StreamProducer{Format: recordFormat, Id: p.ID, Epoch: p.Epoch, Seq: p.Seq}
	switch {
	case last == nil && p.Seq == 0:
		return next, nil
	case last == nil:
		return nil, &ProducerError{Epoch: p.Epoch, ReceivedEpoch: p.Epoch, Received: p.Seq, reason: ErrGap}
	case p.Epoch < last.Epoch:
		return nil, &ProducerError{Epoch: last.Epoch, ReceivedEpoch: p.Epoch, Expected: last.Seq + 1, Received: p.Seq, reason: ErrFenced}
	case p.Epoch > last.Epoch && p.Seq == 0:
		return next, nil
	case p.Epoch > last.Epoch:
		return nil, invalid("epoch %d of producer %s begins with append %d; the first one is 0", p.Epoch, p.ID, p.Seq)
	case p.Seq <= last.Seq:
		return nil, nil
	case p.Seq > last.Seq+1:
		return nil, &ProducerError{Epoch: last.Epoch, ReceivedEpoch: p.Epoch, Expected: last.Seq + 1, Received: p.Seq, reason: ErrGap}
	}
	return next, nil
}

// add appends content to the stream; without content there is nothing to do.
func (c *change) add(content stored, nowMS int64) error {
	if content.rec == nil {
		return nil
	}
	tail := offsetOf(c.rec.Tail)
	// A copy: the append is tried again if the commit fails.
	rec := &stetv1.StreamAppend{
		Format: content.rec.Format, Seq: tail.Seq + 1, Start: tail.Bytes, TimeMs: nowMS, Messages: content.rec.Messages,
		Data: content.rec.Data, Blob: content.rec.Blob, BlobSize: content.rec.BlobSize,
	}
	if tail.Seq == inheritedEnd(c.rec) {
		rec.Path = c.rec.Path
	}
	at := end(rec)
	if at.Seq > maxOffset || at.Bytes > maxOffset {
		return fmt.Errorf("%w: the stream is full", ErrTooLarge)
	}
	set, err := rowformat.Set(keyspace.StreamAppend(c.rec.Id, rec.Seq), rec)
	if err != nil {
		return err
	}
	c.appends = append(c.appends, set)
	c.refs = append(c.refs, content.refs...)
	c.rec.Tail = at.record()
	return nil
}
