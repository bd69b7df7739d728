package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

// Checked wraps a store and verifies ids once on the way in and once on the way out:
// Put fails with ErrMismatch for content that does not match its id, and Get returns
// ErrCorrupt instead of wrong bytes. It belongs at the top of a stack, above every
// layer that changes bytes.
func Checked(inner Store) Store { return &checked{inner: inner} }

type checked struct {
	inner    Store
	repairer Repairer // nil where damage cannot be repaired
	damaged  damage
}

func (c *checked) Get(ctx context.Context, id ID) ([]byte, error) { return c.get(ctx, c.inner, id) }

// get reads a blob with a reader of the inner store.
func (c *checked) get(ctx context.Context, from Reader, id ID) ([]byte, error) {
	data, err := from.Get(ctx, id)
	if err == nil && Sum(data) != id {
		err = Corrupt(id, "stored content has SHA-256 %s", Sum(data))
	}
	if err != nil {
		c.note(id, err)
		return nil, err
	}
	return data, nil
}

// ReadMany implements ManyReader.
func (c *checked) ReadMany(ctx context.Context, fn func(Reader) error) error {
	return ReadMany(ctx, c.inner, func(from Reader) error { return fn(checkedMany{c, from}) })
}

// checkedMany verifies what a reader of the inner store returns.
type checkedMany struct {
	c    *checked
	from Reader
}

func (m checkedMany) Get(ctx context.Context, id ID) ([]byte, error) { return m.c.get(ctx, m.from, id) }

func (m checkedMany) Has(ctx context.Context, ids ...ID) ([]bool, error) {
	return m.from.Has(ctx, ids...)
}

func (c *checked) Put(ctx context.Context, blobs ...Blob) error {
	for i := range blobs {
		if err := c.verify(ctx, &blobs[i]); err != nil {
			return err
		}
	}
	if err := c.repair(ctx, blobs); err != nil {
		return err
	}
	return c.inner.Put(ctx, blobs...)
}

// verify trusts an id that New or a Builder computed, if a cheap sum says that the
// bytes are still the same: computing SHA-256 again would double the cost of every put,
// and reading Like again would make appending to a long list as costly as rewriting it.
// Content from elsewhere, above all from the wire, is hashed here.
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

// MismatchError holds the id that content was offered under and the one it has. It
// wraps ErrMismatch.
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
		c.note(id, err)
		return nil, err
	}
	return &checkedReader{c: c, r: r, id: id, sum: sha256.New()}, nil
}

func (c *checked) PutFrom(ctx context.Context, id ID, r io.Reader, size int64) error {
	source := &sourceReader{r: r, id: id, size: size, left: size, sum: sha256.New()}
	if seeker, ok := r.(io.Seeker); ok {
		if start, err := seeker.Seek(0, io.SeekCurrent); err == nil { // a pipe has the method, but it fails
			source.start = start
			again := &seekableSource{sourceReader: source, seeker: seeker}
			return c.putFrom(ctx, id, again, size, func() error {
				_, err := again.Seek(0, io.SeekStart)
				return err
			})
		}
	}
	return c.putFrom(ctx, id, source, size, nil)
}

// putFrom takes a source and a function that rewinds it, or nil.
func (c *checked) putFrom(ctx context.Context, id ID, source io.Reader, size int64, rewind func() error) error {
	done, err := c.repairFrom(ctx, id, source, size, rewind)
	if err != nil || done {
		return err
	}
	return PutFrom(ctx, c.inner, id, source, size)
}

// seekableSource lets a retrying layer below start again.
type seekableSource struct {
	*sourceReader
	seeker io.Seeker
}

// Seek goes to the beginning or returns the position; a hash supports no more.
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
	return 0, errors.New("content under verification can only seek to its start")
}

// checkedReader returns an error at the end of a reader if the bytes were wrong.
type checkedReader struct {
	c   *checked
	r   io.ReadCloser
	id  ID
	sum hash.Hash
}

func (c *checkedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.sum.Write(p[:n])
	if err == io.EOF && ID(c.sum.Sum(nil)) != c.id {
		err = Corrupt(c.id, "stored content has another SHA-256")
	}
	if err != nil {
		c.c.note(c.id, err)
	}
	return n, err
}

func (c *checkedReader) Close() error { return c.r.Close() }

// sourceReader fails before its last byte if the source does not match the id: the
// store below then sees a failed read and keeps nothing.
type sourceReader struct {
	r     io.Reader
	id    ID
	size  int64
	left  int64
	start int64 // start position of a seekable source
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
