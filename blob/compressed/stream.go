package compressed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/stet-dev/stet/blob"
)

const (
	// streamFrom is the size from which PutFrom does not hold a content in memory.
	streamFrom = 1 << 20
	// sampleSize is how much of a stream is compressed to see whether compression is
	// worth it.
	sampleSize = 128 << 10
)

// Open returns a reader over a blob. Whole copies are inflated as they are read;
// deltas are assembled first.
func (s *Store) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	src, err := blob.Open(ctx, s.inner, id)
	if err != nil {
		return nil, err
	}
	r, err := s.openRecord(id, &source{Reader: src})
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	if r != nil {
		r.src = src
		return r, nil
	}
	if err := src.Close(); err != nil {
		return nil, err
	}
	data, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// openRecord returns a reader for the kinds that can be streamed, else nil.
func (s *Store) openRecord(id blob.ID, below *source) (*streamReader, error) {
	src := bufio.NewReader(below)
	first, err := src.ReadByte()
	if err == io.EOF {
		return nil, blob.Corrupt(id, "record ends early")
	}
	if err != nil {
		return nil, err
	}
	switch first &^ flagLocal {
	case kindRaw:
		return &streamReader{id: id, content: src, left: -1}, nil
	case kindHinted:
		var like blob.ID
		if _, err := io.ReadFull(src, like[:]); below.err != nil {
			return nil, below.err
		} else if err != nil {
			return nil, blob.Corrupt(id, "record ends early")
		}
		if !hints(id, like) {
			return nil, blob.Corrupt(id, "hints at %s", like)
		}
		return &streamReader{id: id, content: src, left: -1}, nil
	case kindStream:
		size, err := binary.ReadUvarint(src)
		if below.err != nil {
			return nil, below.err
		}
		if err != nil || size > maxNumber {
			return nil, blob.Corrupt(id, "record has a bad number")
		}
		dec, err := s.codec.reader(src)
		if err != nil {
			return nil, fmt.Errorf("inflate %s: %w", id, err)
		}
		return &streamReader{id: id, content: dec, below: below, dec: dec, codec: s.codec, left: int64(size)}, nil
	}
	return nil, nil
}

// streamReader reads a content and checks its declared size.
type streamReader struct {
	id      blob.ID
	src     io.Closer
	content io.Reader
	below   *source
	left    int64 // bytes still due; negative if the record does not say

	dec   *zstd.Decoder // nil for raw
	codec *codec
}

func (r *streamReader) Read(p []byte) (int, error) {
	n, err := r.content.Read(p)
	if r.dec == nil {
		return n, err
	}
	if int64(n) > r.left {
		return 0, blob.Corrupt(r.id, "inflates to more bytes than declared")
	}
	r.left -= int64(n)
	switch {
	case err == io.EOF && r.left > 0:
		return n, blob.Corrupt(r.id, "inflates to %d bytes less than declared", r.left)
	case r.below.err != nil:
		return n, fmt.Errorf("inflate %s: %w", r.id, r.below.err)
	case err != nil && err != io.EOF:
		return n, blob.Corrupt(r.id, "inflate: %v", err)
	}
	return n, err
}

// source remembers an error of the store below, which does not mean damage.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

func (r *streamReader) Close() error {
	if r.dec != nil {
		r.codec.doneReader(r.dec)
		r.dec, r.content = nil, closedReader{}
	}
	return r.src.Close()
}

type closedReader struct{}

func (closedReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// PutFrom stores a blob from a reader. Content that a sample shows to be
// incompressible is passed straight down. Other content is compressed into a spool
// first, because the store below needs its size.
func (s *Store) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if size <= min(streamFrom, s.opts.MaxBlob) {
		data, err := blob.ReadExactly(r, size)
		if err != nil {
			return fmt.Errorf("read content of %s: %w", id, err)
		}
		return s.Put(ctx, blob.Blob{ID: id, Data: data})
	}
	held, err := s.inner.Has(ctx, id)
	if err != nil {
		return err
	}
	src := bufio.NewReaderSize(r, sampleSize)
	pays := false
	if !held[0] && s.opts.Later == nil {
		if pays, err = s.pays(src); err != nil {
			return fmt.Errorf("read content of %s: %w", id, err)
		}
	}
	if pays {
		return s.deflated(ctx, kindStream, id, src, size, func(r io.Reader, stored int64) error {
			return blob.PutFrom(ctx, s.inner, id, r, stored)
		})
	}
	err = blob.PutFrom(ctx, s.inner, id, io.MultiReader(bytes.NewReader([]byte{kindRaw}), src), size+1)
	if err == nil && !held[0] && s.opts.Later != nil {
		s.opts.Later(size)
	}
	return err
}

// pays decides by the beginning of a content.
func (s *Store) pays(src *bufio.Reader) (bool, error) {
	sample, err := src.Peek(sampleSize)
	if err != nil && err != io.EOF {
		return false, err
	}
	return 20*len(s.codec.thorough.EncodeAll(sample, nil)) <= 19*len(sample), nil
}

// deflated compresses a content as a stream and passes its record to put.
func (s *Store) deflated(ctx context.Context, kind byte, id blob.ID, src io.Reader, size int64, put func(r io.Reader, stored int64) error) (err error) {
	sp := &spool{}
	defer func() { err = errors.Join(err, sp.close()) }()
	if err := s.deflate(ctx, sp, src, size); err != nil {
		return fmt.Errorf("compress content of %s: %w", id, err)
	}
	if _, err := sp.Write(padding(size, sp.size)); err != nil {
		return err
	}
	content, err := sp.reader()
	if err != nil {
		return err
	}
	header := binary.AppendUvarint([]byte{kind}, uint64(size))
	return put(io.MultiReader(bytes.NewReader(header), content), int64(len(header))+sp.size)
}

// deflate compresses exactly size bytes of src.
func (s *Store) deflate(ctx context.Context, dst io.Writer, src io.Reader, size int64) error {
	enc := s.codec.writer(dst)
	defer s.codec.doneWriter(enc)
	n, err := io.Copy(enc, io.LimitReader(contextReader{ctx, src}, size+1))
	if err != nil {
		return err
	}
	if n != size {
		return fmt.Errorf("%w: source has %d bytes or more, want %d", blob.ErrMismatch, n, size)
	}
	return enc.Close()
}

// contextReader stops a long copy when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
