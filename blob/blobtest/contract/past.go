package contract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/stet-dev/stet/blob"
)

// pastCases are faults that one store had and that others could have.
func pastCases() []Case {
	return []Case{
		{Name: "stream-from-the-middle-of-a-source", Bytes: 300 << 10, Func: streamMiddle},
		{Name: "source-of-a-stored-blob-is-checked", Bytes: 300 << 10, Func: storedSource},
		{Name: "list-names-what-was-just-put", Bytes: 300 << 10, Func: ifLister(listJustPut)},
		{Name: "short-blob-holds-no-large-array", Bytes: 200 << 10, Func: shortArray},
		{Name: "blob-whose-base-was-swept-is-refused", Func: ifSweeper(baseSwept)},
		{Name: "arrivals-leave-nothing-out", Bytes: 300 << 10, Func: ifArrivals(arrivalsComplete)},
		{Name: "arrivals-after-the-last-was-swept", Func: ifArrivals(arrivalsAfterSweep)},
	}
}

// streamMiddle passes a source that can seek and is not at its beginning: a store or
// layer that reads it again must go back to where it was.
func streamMiddle(ctx context.Context, s blob.Store) error {
	for _, size := range []int{100, 300 << 10} {
		b := freshBlob(size)
		source := bytes.NewReader(slices.Concat(fresh(77), b.Data))
		for name, into := range map[string]blob.Store{"store": s, "checked store": blob.Checked(s)} {
			if _, err := source.Seek(77, io.SeekStart); err != nil {
				return err
			}
			if err := blob.PutFrom(ctx, into, b.ID, source, int64(size)); err != nil {
				return fmt.Errorf("put %d bytes from the middle of a source into the %s: %w", size, name, err)
			}
		}
		if err := wantContent(ctx, s, b.ID, b.Data); err != nil {
			return err
		}
	}
	return nil
}

// storedSource streams a blob that is already stored. The store may keep what it has,
// but a source that ends early or goes on is still an error.
func storedSource(ctx context.Context, s blob.Store) error {
	for _, size := range []int{100, 300 << 10} {
		b := freshBlob(size)
		if err := put(ctx, s, b); err != nil {
			return err
		}
		for name, data := range map[string][]byte{"short": b.Data[1:], "long": append(bytes.Clone(b.Data), 0)} {
			if err := blob.PutFrom(ctx, s, b.ID, newReader(data), int64(size)); err == nil {
				return fmt.Errorf("put of a stored blob of %d bytes from a source that is too %s: got no error", size, name)
			}
		}
		if err := wantContent(ctx, s, b.ID, b.Data); err != nil {
			return err
		}
	}
	return nil
}

// listJustPut lists blobs that nobody flushed.
func listJustPut(ctx context.Context, s blob.Store, l blob.Lister) error {
	blobs := []blob.Blob{freshBlob(10), freshBlob(300 << 10)}
	if err := put(ctx, s, blobs...); err != nil {
		return err
	}
	infos, err := listAll(ctx, l, blob.ID{})
	if err != nil {
		return err
	}
	for _, b := range blobs {
		if !slices.ContainsFunc(infos, func(i blob.Info) bool { return i.ID == b.ID && i.Stored > 0 }) {
			return fmt.Errorf("list: %s of %d bytes is not there", b.ID.Short(), len(b.Data))
		}
	}
	return nil
}

// arriving is a store that reports arrivals and can be swept.
type arriving interface {
	blob.Store
	blob.Arrivals
	blob.Sweeper
}

func ifArrivals(fn func(context.Context, arriving) error) func(context.Context, blob.Store) error {
	return func(ctx context.Context, s blob.Store) error {
		a, ok := s.(arriving)
		if !ok {
			return nil
		}
		if _, _, err := a.Arrived(ctx, "", 1); errors.Is(err, errors.ErrUnsupported) {
			return nil
		}
		return fn(ctx, a)
	}
}

// arrived reads everything behind a mark in small pages.
func arrived(ctx context.Context, a arriving, mark string) (ids []blob.ID, last string, err error) {
	for {
		infos, next, err := a.Arrived(ctx, mark, 3)
		if err != nil {
			return nil, mark, fmt.Errorf("arrived: %w", err)
		}
		if next == mark {
			return ids, mark, nil
		}
		for _, i := range infos {
			ids = append(ids, i.ID)
		}
		mark = next
	}
}

func wantArrived(ctx context.Context, a arriving, mark string, blobs ...blob.Blob) (string, error) {
	ids, next, err := arrived(ctx, a, mark)
	if err != nil {
		return mark, err
	}
	at := -1
	for _, b := range blobs {
		found := slices.Index(ids, b.ID)
		if found < 0 {
			return mark, fmt.Errorf("arrived: %s is left out", b.ID.Short())
		}
		if found < at {
			return mark, fmt.Errorf("arrived: %s comes before one that was put earlier", b.ID.Short())
		}
		at = found
	}
	return next, nil
}

func arrivalsComplete(ctx context.Context, a arriving) error {
	mark := ""
	for _, size := range []int{10, 300 << 10, 20} {
		blobs := []blob.Blob{freshBlob(size), freshBlob(size), freshBlob(size), freshBlob(size)}
		for _, b := range blobs {
			if err := errors.Join(put(ctx, a, b), a.Flush(ctx)); err != nil {
				return err
			}
		}
		var err error
		if mark, err = wantArrived(ctx, a, mark, blobs...); err != nil {
			return err
		}
	}
	if ids, _, err := arrived(ctx, a, mark); err != nil || len(ids) != 0 {
		return fmt.Errorf("arrived behind the last: got %d blobs, %v", len(ids), err)
	}
	return nil
}

// arrivalsAfterSweep removes the last blobs before a mark. Blobs that arrive later must
// not be mistaken for ones already seen.
func arrivalsAfterSweep(ctx context.Context, a arriving) error {
	stays := freshBlob(100)
	if err := errors.Join(put(ctx, a, stays), a.Flush(ctx)); err != nil {
		return err
	}
	for range 3 {
		gone := []blob.Blob{freshBlob(100), freshBlob(100), freshBlob(100)}
		if err := errors.Join(put(ctx, a, gone...), a.Flush(ctx)); err != nil {
			return err
		}
		_, mark, err := arrived(ctx, a, "")
		if err != nil {
			return err
		}
		if _, err := sweep(ctx, a, blob.SweepOptions{Live: live(gone...)}); err != nil {
			return err
		}
		next := []blob.Blob{freshBlob(100), freshBlob(100)}
		for _, b := range next {
			if err := errors.Join(put(ctx, a, b), a.Flush(ctx)); err != nil {
				return err
			}
		}
		if _, err := wantArrived(ctx, a, mark, next...); err != nil {
			return err
		}
	}
	return nil
}

// shortArray cuts a short blob out of a long one. Its content must not keep the long
// one in memory: a cache would count only the short one.
func shortArray(ctx context.Context, s blob.Store) error {
	long := freshBlob(200 << 10)
	short, whole := extension(long, 100, nil)
	if err := put(ctx, s, long); err != nil {
		return err
	}
	if err := put(ctx, s, short); err != nil {
		return err
	}
	for range 2 { // the second read may come from a cache
		got, err := s.Get(ctx, short.ID)
		if err != nil || !bytes.Equal(got, whole) {
			return fmt.Errorf("get the beginning of a long blob: got %s, %v", describe(got), err)
		}
		if cap(got) > 64<<10 {
			return fmt.Errorf("get of %d bytes: the array has %d", len(got), cap(got))
		}
	}
	return nil
}

// baseSwept leans on a base that was there before. A store that remembers what it has
// seen must not accept a blob that cannot be read.
func baseSwept(ctx context.Context, s blob.Store, w blob.Sweeper) error {
	base := freshBlob(100)
	first, second := leaning(freshBlob(200), base.ID), leaning(freshBlob(300), base.ID)
	if err := errors.Join(put(ctx, s, base), put(ctx, s, first), s.Flush(ctx)); err != nil {
		return err
	}
	if _, err := sweep(ctx, w, blob.SweepOptions{Live: live(base, first)}); err != nil {
		return err
	}
	err := s.Put(ctx, second)
	if err == nil {
		err = s.Flush(ctx)
	}
	if !errors.Is(err, blob.ErrNotFound) {
		return fmt.Errorf("put of a blob whose base was swept: got %v, want ErrNotFound", err)
	}
	if err := wantAbsent(ctx, s, base.ID, second.ID); err != nil {
		return err
	}
	if err := errors.Join(put(ctx, s, base, second), s.Flush(ctx)); err != nil {
		return fmt.Errorf("with the base put again: %w", err)
	}
	return wantContent(ctx, s, second.ID, second.Data)
}
