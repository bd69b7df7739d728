package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
)

func basicCases() []Case {
	return []Case{
		{Name: "put-then-get", Func: putThenGet},
		{Name: "absent-is-not-found", Func: absentIsNotFound},
		{Name: "empty-blob", Func: func(ctx context.Context, s blob.Store) error { return roundTrip(ctx, s, nil) }},
		{Name: "one-zero-byte", Func: func(ctx context.Context, s blob.Store) error { return roundTrip(ctx, s, []byte{0}) }},
		{Name: "odd-sizes", Bytes: 1<<20 + 1, Func: oddSizes},
		{Name: "compressible-content", Bytes: 300 << 10, Func: compressible},
		{Name: "put-nothing", Func: putNothing},
		{Name: "put-many", Func: putMany},
		{Name: "duplicates-in-one-put", Func: duplicates},
		{Name: "put-again-changes-nothing", Func: putAgain},
		{Name: "has-answers-in-order", Func: hasInOrder},
		{Name: "flush", Func: flush},
		{Name: "local-only-is-readable", Func: localOnly},
		{Name: "wrong-id-is-refused", Func: wrongID},
		{Name: "zero-id-is-refused", Func: zeroID},
		{Name: "bytes-changed-after-naming-are-refused", Bytes: 200 << 10, Func: changedBytes},
		{Name: "done-context-does-nothing", Func: doneContext},
	}
}

func roundTrip(ctx context.Context, s blob.Store, data []byte) error {
	b := blob.New(slices.Clone(data))
	if err := put(ctx, s, b); err != nil {
		return err
	}
	return wantContent(ctx, s, b.ID, data)
}

func putThenGet(ctx context.Context, s blob.Store) error {
	return roundTrip(ctx, s, fresh(300))
}

func absentIsNotFound(ctx context.Context, s blob.Store) error {
	return wantAbsent(ctx, s, freshBlob(10).ID, blob.ID{}, blob.Sum(fresh(5000)))
}

func oddSizes(ctx context.Context, s blob.Store) error {
	sizes := []int{1, 63, 64, 65, 4095, 4096, 4097, 1<<16 - 1, 1<<16 + 1, 128 << 10, 1<<20 + 1}
	for _, n := range sizes {
		if err := roundTrip(ctx, s, fresh(n)); err != nil {
			return fmt.Errorf("size %d: %w", n, err)
		}
	}
	return nil
}

// compressible content takes other paths through layers that compress.
func compressible(ctx context.Context, s blob.Store) error {
	seed := fresh(32)
	for _, repeat := range []int{1, 10, 1000, 9000} {
		if err := roundTrip(ctx, s, slices.Repeat(seed, repeat)); err != nil {
			return fmt.Errorf("%d repeats: %w", repeat, err)
		}
	}
	return nil
}

func putNothing(ctx context.Context, s blob.Store) error {
	if err := put(ctx, s); err != nil {
		return err
	}
	has, err := s.Has(ctx)
	if err != nil || len(has) != 0 {
		return fmt.Errorf("has of no ids: got %v, %v, want no answers", has, err)
	}
	return nil
}

func putMany(ctx context.Context, s blob.Store) error {
	blobs := make([]blob.Blob, 200)
	for i := range blobs {
		blobs[i] = freshBlob(i)
		if i == 0 {
			blobs[i] = freshBlob(77)
		}
	}
	if err := put(ctx, s, blobs...); err != nil {
		return err
	}
	for i := range blobs {
		if err := wantContent(ctx, s, blobs[i].ID, blobs[i].Data); err != nil {
			return err
		}
	}
	return nil
}

func duplicates(ctx context.Context, s blob.Store) error {
	a, b := freshBlob(100), freshBlob(200)
	if err := put(ctx, s, a, b, a, a, b); err != nil {
		return err
	}
	return errors.Join(wantContent(ctx, s, a.ID, a.Data), wantContent(ctx, s, b.ID, b.Data))
}

func putAgain(ctx context.Context, s blob.Store) error {
	b := freshBlob(1000)
	for range 3 {
		if err := put(ctx, s, b); err != nil {
			return err
		}
		if err := wantContent(ctx, s, b.ID, b.Data); err != nil {
			return err
		}
	}
	if err := s.Flush(ctx); err != nil {
		return err
	}
	if err := put(ctx, s, b, freshBlob(10)); err != nil {
		return err
	}
	return wantContent(ctx, s, b.ID, b.Data)
}

func hasInOrder(ctx context.Context, s blob.Store) error {
	a, b, absent := freshBlob(1000), freshBlob(20), freshBlob(30)
	if err := put(ctx, s, a, b); err != nil {
		return err
	}
	got, err := s.Has(ctx, absent.ID, a.ID, absent.ID, b.ID, a.ID)
	if want := []bool{false, true, false, true, true}; err != nil || !slices.Equal(got, want) {
		return fmt.Errorf("has: got %v, %v, want %v", got, err, want)
	}
	return nil
}

func flush(ctx context.Context, s blob.Store) error {
	b := freshBlob(1000)
	for _, step := range []func() error{
		func() error { return s.Flush(ctx) },
		func() error { return put(ctx, s, b) },
		func() error { return s.Flush(ctx) },
		func() error { return s.Flush(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return wantContent(ctx, s, b.ID, b.Data)
}

func localOnly(ctx context.Context, s blob.Store) error {
	b, other := freshBlob(1000), freshBlob(20)
	local := b
	local.LocalOnly = true
	if err := put(ctx, s, local, other); err != nil {
		return err
	}
	if err := wantContent(ctx, s, b.ID, b.Data); err != nil {
		return err
	}
	if err := s.Flush(ctx); err != nil {
		return err
	}
	// The same content may later be put without LocalOnly.
	if err := put(ctx, s, b); err != nil {
		return err
	}
	return wantContent(ctx, s, b.ID, b.Data)
}

// wrongID wraps the store in blob.Checked, as every stack does at its top.
func wrongID(ctx context.Context, s blob.Store) error {
	checked := blob.Checked(s)
	good, bad := freshBlob(100), freshBlob(100)
	bad.Data = fresh(100)
	if err := checked.Put(ctx, good, bad); !errors.Is(err, blob.ErrMismatch) {
		return fmt.Errorf("put under a wrong id: got %v, want ErrMismatch", err)
	}
	if err := wantAbsent(ctx, s, good.ID, bad.ID, blob.Sum(bad.Data)); err != nil {
		return err
	}
	return wrongIDStream(ctx, s, checked)
}

// zeroID puts blobs without an id: nothing has the SHA-256 of zeros.
func zeroID(ctx context.Context, s blob.Store) error {
	checked := blob.Checked(s)
	for name, b := range map[string]blob.Blob{"nothing": {}, "content": {Data: fresh(100)}} {
		if err := checked.Put(ctx, b); !errors.Is(err, blob.ErrMismatch) {
			return fmt.Errorf("put %s under the zero id: got %v, want ErrMismatch", name, err)
		}
		err := blob.PutFrom(ctx, checked, b.ID, newReader(b.Data), int64(len(b.Data)))
		if !errors.Is(err, blob.ErrMismatch) {
			return fmt.Errorf("stream %s under the zero id: got %v, want ErrMismatch", name, err)
		}
	}
	return wantAbsent(ctx, s, blob.ID{})
}

// changedBytes changes a blob between New, or Builder.Blob, and Put. The id was right
// when it was computed.
func changedBytes(ctx context.Context, s blob.Store) error {
	checked := blob.Checked(s)
	list := blob.NewBuilder()
	list.Append(fresh(300))
	first := list.Blob(nil)
	if err := checked.Put(ctx, first); err != nil {
		return fmt.Errorf("put the first blob of a builder: %w", err)
	}
	list.Commit(first)
	list.Append(fresh(50))
	longer := list.Blob(fresh(10))
	shorter := longer
	shorter.Keep--
	other := longer
	other.Like = blob.Sum([]byte("something else"))
	small, large := freshBlob(8), freshBlob(200<<10)
	for name, b := range map[string]blob.Blob{"small": small, "large": large, "extension": longer} {
		b.Data[len(b.Data)/2] ^= 1
		if err := checked.Put(ctx, b); !errors.Is(err, blob.ErrMismatch) {
			return fmt.Errorf("put of a %s blob whose bytes changed: got %v, want ErrMismatch", name, err)
		}
		b.Data[len(b.Data)/2] ^= 1
	}
	if err := checked.Put(ctx, shorter); err == nil {
		return errors.New("put of an extension that keeps another number of bytes: got no error")
	}
	if err := checked.Put(ctx, other); err == nil {
		return errors.New("put of an extension of another blob: got no error")
	}
	if err := wantAbsent(ctx, s, small.ID, large.ID, longer.ID); err != nil {
		return err
	}
	if err := checked.Put(ctx, small, large, longer); err != nil {
		return fmt.Errorf("put of the right bytes: %w", err)
	}
	return wantContent(ctx, s, large.ID, large.Data)
}

func doneContext(ctx context.Context, s blob.Store) error {
	stored, b := freshBlob(100), freshBlob(1000)
	if err := put(ctx, s, stored); err != nil {
		return err
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	calls := map[string]func() error{
		"get":   func() error { _, err := s.Get(done, stored.ID); return err },
		"put":   func() error { return s.Put(done, b) },
		"has":   func() error { _, err := s.Has(done, stored.ID); return err },
		"flush": func() error { return s.Flush(done) },
		"open": func() error {
			r, err := blob.Open(done, s, stored.ID)
			if err == nil {
				_ = r.Close()
			}
			return err
		},
		"put from": func() error { return blob.PutFrom(done, s, b.ID, newReader(b.Data), int64(len(b.Data))) },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("%s with a context that is done: got %v, want context.Canceled", name, err)
		}
	}
	if err := wantAbsent(ctx, s, b.ID); err != nil {
		return err
	}
	return wantContent(ctx, s, stored.ID, stored.Data)
}
