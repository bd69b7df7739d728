package encrypted

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
)

// Open implements blob.Streamer. It holds one segment in memory, and returns only
// authenticated bytes; only the end of the stream proves that nothing is missing.
func (s *Store) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if s.ring != nil {
		name := s.sealedName(id)
		r, err := blob.Open(ctx, s.inner, name)
		if err == nil {
			return readerOf(s.openStream(id, name, r))
		}
		if !errors.Is(err, blob.ErrNotFound) {
			return nil, fmt.Errorf("open sealed blob %s: %w", id, err)
		}
	}
	if s.opts.AllowSeedForm { // one box of any size: it cannot be streamed
		data, err := s.getSeed(ctx, id)
		return io.NopCloser(bytes.NewReader(data)), err
	}
	return nil, s.absent(ctx, id)
}

// readerOf prevents a nil pointer from becoming a non-nil reader.
func readerOf(u *unsealing, err error) (io.ReadCloser, error) {
	if err != nil {
		return nil, err
	}
	return u, nil
}

func (s *Store) openStream(id, name blob.ID, r io.ReadCloser) (*unsealing, error) {
	head, err := readHead(r)
	var o *opened
	if err == nil {
		o, err = s.opener(id, name, head)
	}
	if err != nil {
		r.Close() // the first error says more
		return nil, blame(id, err)
	}
	return newUnsealing(id, o, r, head[o.headSize():]), nil
}

// readHead reads as much as the longest head takes, or all there is.
func readHead(r io.Reader) ([]byte, error) {
	head := make([]byte, maxHead)
	n, err := io.ReadFull(r, head)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return head[:n], err
}

// unsealing reads the content of an envelope.
type unsealing struct {
	id      blob.ID
	o       *opened
	src     io.ReadCloser
	buf     []byte // a sealed segment and one more byte, which shows whether it is the last
	n       int    // bytes of buf that are filled
	counter uint32
	ready   []byte // content not returned yet
	err     error  // returned after ready
}

// newUnsealing starts with the bytes read together with the head.
func newUnsealing(id blob.ID, o *opened, src io.ReadCloser, rest []byte) *unsealing {
	u := &unsealing{id: id, o: o, src: src, counter: bodyCounter}
	u.buf = make([]byte, o.segment+tagSize+1)
	if len(rest) > len(u.buf) { // impossible: the smallest segment is larger than a head
		u.err = blob.Corrupt(id, "segments of %d bytes", o.segment)
		return u
	}
	u.n = copy(u.buf, rest)
	return u
}

func (u *unsealing) Read(p []byte) (int, error) {
	for len(u.ready) == 0 && u.err == nil {
		u.next()
	}
	if len(u.ready) == 0 {
		return 0, u.err
	}
	n := copy(p, u.ready)
	u.ready = u.ready[n:]
	return n, nil
}

func (u *unsealing) next() {
	m, err := io.ReadFull(u.src, u.buf[u.n:])
	u.n += m
	last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if err != nil && !last {
		u.err = fmt.Errorf("read sealed blob %s: %w", u.id, err)
		return
	}
	if u.counter == maxSegments {
		u.err = blob.Corrupt(u.id, "too many parts")
		return
	}
	end, following := u.n, byte(0)
	if !last {
		end--
		following = u.buf[end]
	}
	part, err := u.o.box.open(u.buf[:end:end], u.counter, last)
	if err != nil {
		u.err = blame(u.id, err)
		return
	}
	u.counter++
	if last {
		u.ready, u.err = part, io.EOF
		return
	}
	// The extra byte starts the next segment, and ready must leave the buffer before
	// it is filled again: keep both apart.
	u.ready = bytes.Clone(part)
	u.buf[0], u.n = following, 1
}

func (u *unsealing) Close() error {
	if u.err == nil {
		u.err = fmt.Errorf("read sealed blob %s: %w", u.id, io.ErrClosedPipe)
	}
	u.ready = nil
	return u.src.Close()
}

// PutFrom implements blob.Streamer. It holds one segment in memory.
func (s *Store) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if size < 0 {
		return fmt.Errorf("put %s: %w: %d bytes", id, blob.ErrMismatch, size)
	}
	if size <= segmentSize || s.opts.WriteSeedForm {
		data, err := blob.ReadExactly(r, size)
		if err != nil {
			return fmt.Errorf("read content of %s: %w", id, err)
		}
		return s.Put(ctx, blob.Blob{ID: id, Data: data})
	}
	name := s.sealedName(id)
	src, stored, err := s.sealing(id, blob.ID{}, name, r, size)
	if err != nil {
		return fmt.Errorf("seal blob %s: %w", id, err)
	}
	if err := blob.PutFrom(ctx, s.inner, name, src, stored); err != nil {
		return fmt.Errorf("put sealed blob %s: %w", id, err)
	}
	return nil
}

// sealing is a reader of the envelope of r's content.
type sealing struct {
	src     io.Reader
	left    int64 // content still to come
	h       header
	box     *box
	counter uint32
	content []byte // room for a segment
	out     []byte // room for a sealed one
	ready   []byte // sealed, not returned yet
	done    bool
	err     error
}

func (s *Store) sealing(id, base, name blob.ID, r io.Reader, size int64) (io.Reader, int64, error) {
	b, h, err := s.sealer(base, name, size)
	if err != nil {
		return nil, 0, err
	}
	n := min(int64(h.segment), size)
	return &sealing{
		src: r, left: size, h: h, box: b, counter: bodyCounter,
		content: make([]byte, n), out: make([]byte, 0, n+tagSize),
		ready: b.appendHead(nil, &h, id, base),
	}, h.storedSize(size), nil
}

func (s *sealing) Read(p []byte) (int, error) {
	for len(s.ready) == 0 && s.err == nil {
		s.err = s.next()
	}
	if len(s.ready) == 0 {
		return 0, s.err
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

func (s *sealing) next() error {
	if s.done {
		return io.EOF
	}
	part := s.content[:min(int64(len(s.content)), s.left)]
	if n, err := io.ReadFull(s.src, part); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%w: source ends %d bytes early", blob.ErrMismatch, s.left-int64(n))
		}
		return err
	}
	s.left -= int64(len(part))
	s.done = s.left == 0
	if s.done {
		if err := atEnd(s.src); err != nil {
			return err
		}
	}
	s.ready = s.box.seal(s.out[:0], part, s.counter, s.done)
	s.counter++
	return nil
}

// atEnd runs before the last segment is sealed, so that a source that is too long
// never yields a valid envelope.
func atEnd(r io.Reader) error {
	var one [1]byte
	switch _, err := io.ReadFull(r, one[:]); {
	case err == nil:
		return fmt.Errorf("%w: source is longer than announced", blob.ErrMismatch)
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}
