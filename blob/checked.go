package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

// Checked wraps a store so that ids are verified once on the way in and once on
// the way out: Put refuses content that is not what its id says with
// ErrMismatch, and Get returns ErrCorrupt instead of other bytes. It belongs at
// the top of a stack, above every layer that changes bytes.
func Checked(inner Store) Store { return &checked{inner: inner} }

type checked struct{ inner Store }

func (c *checked) Get(ctx context.Context, id ID) ([]byte, error) {
	data, err := c.inner.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if Sum(data) != id {
		return nil, Corrupt(id, "stored content has SHA-256 %s", Sum(data))
	}
	return data, nil
}

func (c *checked) Put(ctx context.Context, blobs ...Blob) error {
	for i := range blobs {
		if err := c.verify(ctx, &blobs[i]); err != nil {
			return err
		}
	}
	return c.inner.Put(ctx, blobs...)
}

// verify takes New's and a Builder's word for an id that they computed over the
// very bytes: hashing them again would double the cost of every put, and reading
// Like again would make appending to a long list as costly as writing it anew.
// What comes from elsewhere, the wire above all, is hashed here.
func (c *checked) verify(ctx context.Context, b *Blob) error {
	if b.vouched() {
		return nil
	}
	if b.Keep > 0 {
		whole, err := Whole(ctx, c.inner, *b)
		if err != nil {
			return err
		}
		return verifySum(b.ID, whole.Data)
	}
	return verifySum(b.ID, b.Data)
}

func verifySum(id ID, data []byte) error {
	if got := Sum(data); got != id {
		return &MismatchError{Want: id, Got: got}
	}
	return nil
}

// MismatchError tells which content was offered under which name. It wraps
// ErrMismatch.
type MismatchError struct{ Want, Got ID }

func (e *MismatchError) Error() string {
	return ErrMismatch.Error() + ": offered as " + e.Want.String() + ", is " + e.Got.String()
}

// Unwrap returns ErrMismatch.
func (e *MismatchError) Unwrap() error { return ErrMismatch }

func (c *checked) Has(ctx context.Context, ids ...ID) ([]bool, error) {
	return c.inner.Has(ctx, ids...)
}

func (c *checked) Flush(ctx context.Context) error { return c.inner.Flush(ctx) }

func (c *checked) Open(ctx context.Context, id ID) (io.ReadCloser, error) {
	r, err := Open(ctx, c.inner, id)
	if err != nil {
		return nil, err
	}
	return &checkedReader{r: r, id: id, sum: sha256.New()}, nil
}

func (c *checked) PutFrom(ctx context.Context, id ID, r io.Reader, size int64) error {
	source := &sourceReader{r: r, id: id, size: size, left: size, sum: sha256.New()}
	if seeker, ok := r.(io.Seeker); ok {
		if start, err := seeker.Seek(0, io.SeekCurrent); err == nil { // a pipe has the method and cannot
			source.start = start
			return PutFrom(ctx, c.inner, id, &seekableSource{sourceReader: source, seeker: seeker}, size)
		}
	}
	return PutFrom(ctx, c.inner, id, source, size)
}

// seekableSource lets a layer below that tries again begin anew.
type seekableSource struct {
	*sourceReader
	seeker io.Seeker
}

// Seek goes to the beginning, or tells the position; a hash can do no more.
func (s *seekableSource) Seek(offset int64, whence int) (int64, error) {
	switch {
	case whence == io.SeekCurrent && offset == 0:
		return s.size - s.left, nil
	case whence == io.SeekStart && offset == 0:
		if _, err := s.seeker.Seek(s.start, io.SeekStart); err != nil {
			return 0, err
		}
		s.sum.Reset()
		s.left = s.size
		return 0, nil
	}
	return 0, errors.New("content that is being verified can only be read from its beginning")
}

// checkedReader turns the end of a reader into an error where the bytes were
// not the right ones.
type checkedReader struct {
	r   io.ReadCloser
	id  ID
	sum hash.Hash
}

func (c *checkedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.sum.Write(p[:n])
	if err == io.EOF && ID(c.sum.Sum(nil)) != c.id {
		return n, Corrupt(c.id, "stored content has another SHA-256")
	}
	return n, err
}

func (c *checkedReader) Close() error { return c.r.Close() }

// sourceReader refuses, before its last byte is handed over, a source that is
// not what the id says: the store below then sees a failed read and keeps
// nothing.
type sourceReader struct {
	r     io.Reader
	id    ID
	size  int64
	left  int64
	start int64 // where a seekable source stood
	sum   hash.Hash
}

func (s *sourceReader) Read(p []byte) (int, error) {
	if s.left > 0 && int64(len(p)) > s.left {
		p = p[:s.left]
	}
	n, err := s.r.Read(p)
	s.sum.Write(p[:n])
	s.left -= int64(n)
	if s.left == 0 || errors.Is(err, io.EOF) {
		if got := ID(s.sum.Sum(nil)); got != s.id {
			return 0, &MismatchError{Want: s.id, Got: got}
		}
	}
	return n, err
}
