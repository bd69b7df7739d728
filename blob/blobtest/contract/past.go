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
		{Name: "reads-beside-sweeps", Bytes: 300 << 10, Func: ifSweeper(readsBesideSweeps)},
		{Name: "list-names-what-was-just-put", Bytes: 300 << 10, Func: ifLister(listJustPut)},
		{Name: "kept-bytes-come-with-their-base", Bytes: 300 << 10, Func: ifRewriter(keptWithBase)},
		{Name: "arrivals-leave-nothing-out", Bytes: 300 << 10, Func: ifArrivals(arrivalsComplete)},
		{Name: "arrivals-after-the-last-was-swept", Func: ifArrivals(arrivalsAfterSweep)},
	}
}

// streamMiddle gives a source that can seek and does not stand at its beginning: a
// store or layer that reads it again must go back to where it stood.
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

// storedSource streams a blob that is stored already. The store may keep what it has,
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

// readsBesideSweeps reads blobs that a collector removes and a writer puts again. A
// reader gets the content or ErrNotFound, never damage.
func readsBesideSweeps(ctx context.Context, s blob.Store, w blob.Sweeper) error {
	base := freshBlob(4 << 10)
	edited := blob.New(append(bytes.Clone(base.Data), fresh(100)...))
	edited.Like = base.ID
	all := []blob.Blob{base, edited, freshBlob(300 << 10)}
	const rounds = 12
	return together(3, func(worker int) error {
		for range rounds {
			var err error
			switch worker {
			case 0:
				err = s.Put(ctx, slices.Clone(all)...) // the other workers read all
			case 1:
				_, err = sweep(ctx, w, blob.SweepOptions{Live: live(all...)})
			default:
				err = readAny(ctx, s, all)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func readAny(ctx context.Context, s blob.Store, blobs []blob.Blob) error {
	for _, b := range blobs {
		data, err := s.Get(ctx, b.ID)
		if errors.Is(err, blob.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("get beside a sweep: %w", err)
		}
		if !bytes.Equal(data, b.Data) {
			return fmt.Errorf("get beside a sweep: got %s, want %s", describe(data), describe(b.Data))
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

func ifRewriter(fn func(context.Context, blob.Store, blob.Rewriter) error) func(context.Context, blob.Store) error {
	return func(ctx context.Context, s blob.Store) error {
		r, ok := s.(blob.Rewriter)
		if !ok {
			return nil
		}
		return fn(ctx, s, r)
	}
}

// keptWithBase exchanges a blob between two forms, one of which has a base, while
// another goroutine reads it. Every read gives one of the forms, with its own base.
func keptWithBase(ctx context.Context, s blob.Store, r blob.Rewriter) error {
	for _, size := range []int{100, 300 << 10} {
		base, alone := freshBlob(50), freshBlob(size)
		leaning := leaning(blob.Blob{ID: alone.ID, Data: fresh(size / 2)}, base.ID)
		if err := errors.Join(put(ctx, s, base, alone), s.Flush(ctx)); err != nil {
			return err
		}
		err := together(2, func(worker int) error {
			for i := range 20 {
				if worker == 0 {
					if err := r.Replace(ctx, []blob.Blob{leaning, alone}[i%2]); err != nil {
						return fmt.Errorf("replace: %w", err)
					}
					continue
				}
				got, err := r.Kept(ctx, alone.ID)
				if err != nil {
					return fmt.Errorf("kept: %w", err)
				}
				whole := got.Base.IsZero() && bytes.Equal(got.Data, alone.Data)
				if !whole && !(got.Base == base.ID && bytes.Equal(got.Data, leaning.Data)) {
					return fmt.Errorf("kept: got %s on base %s, which is neither form", describe(got.Data), got.Base.Short())
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if info, err := r.Info(ctx, alone.ID); err != nil || !info.Base.IsZero() {
			return fmt.Errorf("info after the last exchange: got %+v, %v", info, err)
		}
		if err := wantContent(ctx, s, alone.ID, alone.Data); err != nil {
			return err
		}
	}
	absent := freshBlob(10).ID
	_, keptErr := r.Kept(ctx, absent)
	_, infoErr := r.Info(ctx, absent)
	if !errors.Is(keptErr, blob.ErrNotFound) || !errors.Is(infoErr, blob.ErrNotFound) {
		return fmt.Errorf("an absent blob: kept %v and info %v, want ErrNotFound", keptErr, infoErr)
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

// arrivalsAfterSweep removes the blobs behind which a mark stands. What comes next
// must not be taken for something that was seen.
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
