package blob

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// Whole returns b with its whole content in Data: if b extends another blob, it reads
// that one from s. Stores that cannot keep extensions call it first.
func Whole(ctx context.Context, s Store, b Blob) (Blob, error) {
	if b.Keep == 0 {
		return b, nil
	}
	like, err := s.Get(ctx, b.Like)
	if err != nil {
		return Blob{}, fmt.Errorf("read what %s extends: %w", b.ID, err)
	}
	if int64(len(like)) < b.Keep {
		return Blob{}, fmt.Errorf("%w: %s keeps %d bytes of %s, which has %d", ErrMismatch, b.ID, b.Keep, b.Like, len(like))
	}
	data := make([]byte, 0, b.Keep+int64(len(b.Data)))
	b.Data = append(append(data, like[:b.Keep]...), b.Data...)
	b.Keep = 0
	return b, nil
}

// ReadMany calls fn with the reading side of s, which makes many reads cheaper if the
// store supports it. See ManyReader for what fn may do.
func ReadMany(ctx context.Context, s Store, fn func(Reader) error) error {
	if m, ok := s.(ManyReader); ok {
		return m.ReadMany(ctx, fn)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fn(s)
}

// Open returns a reader over a blob, streaming if the store can.
func Open(ctx context.Context, s Store, id ID) (io.ReadCloser, error) {
	if st, ok := s.(Streamer); ok {
		return st.Open(ctx, id)
	}
	data, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// MaxSize is the size of the largest blob that PutFrom accepts. No store is that large; the
// limit leaves layers room to count what they add.
const MaxSize = 1 << 60

// PutFrom stores size bytes of r under id, streaming if the store can.
func PutFrom(ctx context.Context, s Store, id ID, r io.Reader, size int64) error {
	switch {
	case size < 0:
		return fmt.Errorf("put %s: %w: its size is %d", id, ErrMismatch, size)
	case size > MaxSize:
		return fmt.Errorf("put %s: %w: %d bytes; the limit is %d", id, ErrTooLarge, size, int64(MaxSize))
	}
	if st, ok := s.(Streamer); ok {
		return st.PutFrom(ctx, id, r, size)
	}
	data, err := ReadExactly(r, size)
	if err != nil {
		return fmt.Errorf("read content of %s: %w", id, err)
	}
	return s.Put(ctx, Blob{ID: id, Data: data})
}

// ReadExactly reads all of r, which must hold exactly size bytes.
func ReadExactly(r io.Reader, size int64) ([]byte, error) {
	var buf bytes.Buffer // grows with the bytes that arrive, not with the claimed size
	n, err := io.Copy(&buf, io.LimitReader(r, size+1))
	if err != nil {
		return nil, err
	}
	if n != size {
		return nil, fmt.Errorf("%w: source has %d bytes or more, want %d", ErrMismatch, n, size)
	}
	return buf.Bytes(), nil
}
