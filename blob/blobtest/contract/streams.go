package contract

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing/iotest"

	"github.com/stet-dev/stet/blob"
)

// largeSize is a size that every store must accept: the default limit of layers that
// hold a blob in memory.
const largeSize = 64 << 20

func streamCases() []Case {
	return []Case{
		{Name: "stream-in-and-out", Bytes: 1 << 20, Func: streamInOut},
		{Name: "stream-in-small-pieces", Func: streamPieces},
		{Name: "short-source-stores-nothing", Func: shortSource},
		{Name: "long-source-stores-nothing", Func: longSource},
		{Name: "failing-source-stores-nothing", Func: failingSource},
		{Name: "large-blob", Bytes: largeSize, Func: largeBlob},
	}
}

// newReader hides all methods of the source except Read.
func newReader(data []byte) io.Reader { return struct{ io.Reader }{bytes.NewReader(data)} }

func streamInOut(ctx context.Context, s blob.Store) error {
	for _, n := range []int{0, 1, 1000, 1 << 20} {
		b := freshBlob(n)
		for range 2 { // storing again must work
			if err := blob.PutFrom(ctx, s, b.ID, newReader(b.Data), int64(n)); err != nil {
				return fmt.Errorf("put %d bytes from a reader: %w", n, err)
			}
		}
		if err := wantContent(ctx, s, b.ID, b.Data); err != nil {
			return err
		}
		if err := s.Flush(ctx); err != nil {
			return err
		}
		if err := put(ctx, s, b); err != nil {
			return err
		}
	}
	return nil
}

func streamPieces(ctx context.Context, s blob.Store) error {
	readers := map[string]func(io.Reader) io.Reader{
		"one byte at a time":      iotest.OneByteReader,
		"half of what is asked":   iotest.HalfReader,
		"data together with EOF":  iotest.DataErrReader,
		"nothing every other one": func(r io.Reader) io.Reader { return &hesitant{r: r} },
	}
	for name, wrap := range readers {
		b := freshBlob(3000)
		if err := blob.PutFrom(ctx, s, b.ID, wrap(newReader(b.Data)), 3000); err != nil {
			return fmt.Errorf("source that gives %s: %w", name, err)
		}
		if err := wantContent(ctx, s, b.ID, b.Data); err != nil {
			return fmt.Errorf("source that gives %s: %w", name, err)
		}
	}
	return nil
}

// hesitant returns 0, nil before every read, which io.Reader allows.
type hesitant struct {
	r     io.Reader
	ready bool
}

func (h *hesitant) Read(p []byte) (int, error) {
	h.ready = !h.ready
	if h.ready {
		return 0, nil
	}
	return h.r.Read(p)
}

func shortSource(ctx context.Context, s blob.Store) error {
	for _, missing := range []int{1, 999, 1000} {
		b := freshBlob(1000)
		if err := blob.PutFrom(ctx, s, b.ID, newReader(b.Data[:1000-missing]), 1000); err == nil {
			return fmt.Errorf("source that lacks %d of 1000 bytes: got no error", missing)
		}
		if err := wantAbsent(ctx, s, b.ID); err != nil {
			return err
		}
	}
	return nil
}

func longSource(ctx context.Context, s blob.Store) error {
	// No part is so short that another case may have stored it.
	for _, size := range []int64{0, 32, 999} {
		b := freshBlob(1000)
		// Neither the whole nor the announced part may appear.
		part := blob.Sum(b.Data[:size])
		if err := blob.PutFrom(ctx, s, b.ID, newReader(b.Data), size); err == nil {
			return fmt.Errorf("source of 1000 bytes announced as %d: got no error", size)
		}
		if err := wantAbsent(ctx, s, b.ID); err != nil {
			return err
		}
		if size == 0 {
			continue // others may have stored the empty blob
		}
		if err := blob.PutFrom(ctx, s, part, newReader(b.Data), size); err == nil {
			return fmt.Errorf("source of 1000 bytes announced as %d: got no error", size)
		}
		if err := wantAbsent(ctx, s, part); err != nil {
			return err
		}
	}
	return nil
}

var errSource = errors.New("source failed")

func failingSource(ctx context.Context, s blob.Store) error {
	for _, after := range []int{0, 1, 500, 1000} {
		b := freshBlob(1000)
		source := io.MultiReader(newReader(b.Data[:after]), iotest.ErrReader(errSource))
		if err := blob.PutFrom(ctx, s, b.ID, source, 1000); !errors.Is(err, errSource) {
			return fmt.Errorf("source that fails after %d bytes: got %v, want its error", after, err)
		}
		if err := wantAbsent(ctx, s, b.ID); err != nil {
			return err
		}
	}
	return nil
}

// wrongIDStream is the part of the wrong-id case that concerns streams.
func wrongIDStream(ctx context.Context, s, checked blob.Store) error {
	bad := freshBlob(100)
	err := blob.PutFrom(ctx, checked, bad.ID, newReader(fresh(100)), 100)
	if !errors.Is(err, blob.ErrMismatch) {
		return fmt.Errorf("put from a reader under a wrong id: got %v, want ErrMismatch", err)
	}
	return wantAbsent(ctx, s, bad.ID)
}

// largeBlob stores two blobs of largeSize, one whole and one streamed, and reads
// each in the other way.
func largeBlob(ctx context.Context, s blob.Store) error {
	seed := [32]byte(fresh(32))
	streamed, err := sumOf(largeSource(seed))
	if err != nil {
		return err
	}
	if err := blob.PutFrom(ctx, s, streamed, largeSource(seed), largeSize); err != nil {
		return fmt.Errorf("stream a large blob in: %w", err)
	}
	data, err := s.Get(ctx, streamed)
	if err != nil {
		return fmt.Errorf("get a large blob: %w", err)
	}
	if got := blob.Sum(data); got != streamed {
		return fmt.Errorf("get a large blob: got %s, want %s", describe(data), streamed)
	}
	data[0] ^= 1
	b := blob.New(data)
	if err := put(ctx, s, b); err != nil {
		return fmt.Errorf("put a large blob: %w", err)
	}
	r, err := blob.Open(ctx, s, b.ID)
	if err != nil {
		return fmt.Errorf("open a large blob: %w", err)
	}
	got, err := sumOf(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("stream a large blob out: %w", err)
	}
	if got != b.ID {
		return fmt.Errorf("stream a large blob out: got SHA-256 %s, want %s", got, b.ID)
	}
	return nil
}

func largeSource(seed [32]byte) io.Reader {
	return io.LimitReader(rand.NewChaCha8(seed), largeSize)
}

func sumOf(r io.Reader) (blob.ID, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return blob.ID{}, err
	}
	return blob.ID(sum.Sum(nil)), nil
}
