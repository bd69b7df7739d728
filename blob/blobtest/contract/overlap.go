package contract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/overlap"
)

// overlapCases run calls alongside others that change the same blobs.
func overlapCases() []Case {
	return []Case{
		{Name: "reads-beside-sweeps", Bytes: 300 << 10, Func: ifSweeper(readsBesideSweeps)},
		{Name: "reads-beside-exchanges", Bytes: 300 << 10, Func: ifReplacer(readsBesideExchanges)},
		{Name: "kept-bytes-come-with-their-base", Bytes: 300 << 10, Func: ifRewriter(keptWithBase)},
		{Name: "calls-given-up-leave-whole-blobs", Bytes: 300 << 10, Func: givenUp},
		{Name: "exchange-given-up-leaves-a-whole-blob", Bytes: 300 << 10, Func: ifReplacer(exchangeGivenUp)},
	}
}

// readsBesideSweeps reads blobs that come and go. A reader gets the content or
// ErrNotFound, never damage.
func readsBesideSweeps(ctx context.Context, s blob.Store, w blob.Sweeper) error {
	base := freshBlob(4 << 10)
	edited := blob.New(append(bytes.Clone(base.Data), fresh(100)...))
	edited.Like = base.ID
	all := []blob.Blob{base, edited, freshBlob(300 << 10)}
	return overlap.Run(12,
		func(int) error { return readAny(ctx, s, all) },
		func(int) error {
			if err := put(ctx, s, base, edited, all[2]); err != nil {
				return err
			}
			_, err := sweep(ctx, w, blob.SweepOptions{Live: live(all...)})
			return err
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

// readsBesideExchanges reads blobs, in every way, while their bytes are replaced by
// others of another size. Every read gives one of the two, whole.
func readsBesideExchanges(ctx context.Context, s exchanger) error {
	for _, sizes := range [][2]int{{100, 200}, {100, 300 << 10}, {300 << 10, 200 << 10}} {
		b := freshBlob(sizes[0])
		other := blob.Blob{ID: b.ID, Data: fresh(sizes[1])}
		if err := errors.Join(put(ctx, s, b), s.Flush(ctx)); err != nil {
			return err
		}
		reads := map[string]func() ([]byte, error){
			"get":  func() ([]byte, error) { return s.Get(ctx, b.ID) },
			"open": func() ([]byte, error) { return readAll(ctx, s, b.ID) },
			"read many": func() (data []byte, err error) {
				err = blob.ReadMany(ctx, s, func(r blob.Reader) error {
					_, err := r.Get(ctx, b.ID) // the second read may go on in an old transaction
					if err == nil {
						data, err = r.Get(ctx, b.ID)
					}
					return err
				})
				return data, err
			},
		}
		err := overlap.Run(10,
			func(round int) error { return replace(ctx, s, []blob.Blob{other, b}[round%2]) },
			func(int) error {
				for name, read := range reads {
					got, err := read()
					if err != nil {
						return fmt.Errorf("%s beside an exchange: %w", name, err)
					}
					if !bytes.Equal(got, b.Data) && !bytes.Equal(got, other.Data) {
						return fmt.Errorf("%s beside an exchange: got %s, which is neither form", name, describe(got))
					}
				}
				return nil
			})
		// Content must match its name in the end, even after an error.
		if err := errors.Join(err, replace(ctx, s, b)); err != nil {
			return err
		}
		if err := wantContent(ctx, s, b.ID, b.Data); err != nil {
			return err
		}
	}
	return nil
}

func readAll(ctx context.Context, s blob.Store, id blob.ID) ([]byte, error) {
	r, err := blob.Open(ctx, s, id)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
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
		err := overlap.Run(10,
			func(round int) error {
				if err := r.Replace(ctx, []blob.Blob{leaning, alone}[round%2]); err != nil {
					return fmt.Errorf("replace: %w", err)
				}
				return nil
			},
			func(int) error {
				got, err := r.Kept(ctx, alone.ID)
				if err != nil {
					return fmt.Errorf("kept: %w", err)
				}
				whole := got.Base.IsZero() && bytes.Equal(got.Data, alone.Data)
				if !whole && !(got.Base == base.ID && bytes.Equal(got.Data, leaning.Data)) {
					return fmt.Errorf("kept: got %s on base %s, which is neither form", describe(got.Data), got.Base.Short())
				}
				return nil
			})
		// Content must match its name in the end, even after an error.
		if err := errors.Join(err, r.Replace(ctx, alone)); err != nil {
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

// givenUp ends the context of calls while they run. Whatever they return, the blob is
// absent or whole, and can be put.
func givenUp(ctx context.Context, s blob.Store) error {
	calls := map[string]func(context.Context, context.CancelFunc, blob.Blob) error{
		"put": func(ctx context.Context, cancel context.CancelFunc, b blob.Blob) error {
			go cancel()
			return s.Put(ctx, b)
		},
		"put from": func(ctx context.Context, cancel context.CancelFunc, b blob.Blob) error {
			half := len(b.Data) / 2
			source := io.MultiReader(newReader(b.Data[:half]), &calling{fn: cancel}, newReader(b.Data[half:]))
			return blob.PutFrom(ctx, s, b.ID, source, int64(len(b.Data)))
		},
	}
	for name, call := range calls {
		for _, size := range []int{100, 300 << 10} {
			b := freshBlob(size)
			doomed, cancel := context.WithCancel(ctx)
			callErr := call(doomed, cancel, b)
			cancel()
			if errors.Is(callErr, blob.ErrNotFound) || errors.Is(callErr, blob.ErrCorrupt) || errors.Is(callErr, blob.ErrMismatch) {
				return fmt.Errorf("%s that was given up blames the blob: %w", name, callErr)
			}
			got, err := s.Get(ctx, b.ID)
			if err == nil && !bytes.Equal(got, b.Data) || err != nil && !errors.Is(err, blob.ErrNotFound) {
				return fmt.Errorf("get after a %s of %d bytes that was given up (%v): got %s, %v", name, size, callErr, describe(got), err)
			}
			if callErr == nil && err != nil {
				return fmt.Errorf("get after a %s of %d bytes that succeeded: %w", name, size, err)
			}
			if err := errors.Join(put(ctx, s, b), s.Flush(ctx)); err != nil {
				return fmt.Errorf("after a %s that was given up: %w", name, err)
			}
			if err := wantContent(ctx, s, b.ID, b.Data); err != nil {
				return fmt.Errorf("after a %s that was given up: %w", name, err)
			}
		}
	}
	return nil
}

// calling is an empty source that calls fn when it is read.
type calling struct{ fn func() }

func (c *calling) Read([]byte) (int, error) {
	c.fn()
	return 0, io.EOF
}

// exchangeGivenUp ends the context of exchanges while they run. The blob keeps its old
// bytes or has the new ones, whole. An exchange that was given up may still happen later,
// as a request that is on its way to a database does.
func exchangeGivenUp(ctx context.Context, s exchanger) error {
	for _, size := range []int{100, 300 << 10} {
		b := freshBlob(size)
		other := blob.Blob{ID: b.ID, Data: fresh(size + 10)}
		if err := errors.Join(put(ctx, s, b), s.Flush(ctx)); err != nil {
			return err
		}
		for round := range 4 {
			doomed, cancel := context.WithCancel(ctx)
			go cancel()
			replaceErr := s.Replace(doomed, []blob.Blob{other, b}[round%2])
			cancel()
			got, err := s.Get(ctx, b.ID)
			if err != nil || !bytes.Equal(got, b.Data) && !bytes.Equal(got, other.Data) {
				return fmt.Errorf("get after an exchange that was given up (%v): got %s, %v", replaceErr, describe(got), err)
			}
		}
		if err := replace(ctx, s, b); err != nil {
			return err
		}
		got, err := s.Get(ctx, b.ID)
		if err != nil || !bytes.Equal(got, b.Data) && !bytes.Equal(got, other.Data) {
			return fmt.Errorf("get after an exchange that followed one that was given up: got %s, %v", describe(got), err)
		}
	}
	return nil
}
