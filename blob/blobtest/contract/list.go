package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
)

func listCases() []Case {
	return []Case{
		{Name: "list-in-order", Func: ifLister(listInOrder)},
		{Name: "list-after", Func: ifLister(listAfter)},
		{Name: "list-stops", Func: ifLister(listStops)},
		{Name: "list-with-done-context", Func: ifLister(listDoneContext)},
	}
}

func ifLister(fn func(context.Context, blob.Store, blob.Lister) error) func(context.Context, blob.Store) error {
	return func(ctx context.Context, s blob.Store) error {
		lister, ok := s.(blob.Lister)
		if !ok {
			return nil
		}
		return fn(ctx, s, lister)
	}
}

func listAll(ctx context.Context, l blob.Lister, after blob.ID) ([]blob.Info, error) {
	var infos []blob.Info
	err := l.List(ctx, after, func(i blob.Info) error {
		infos = append(infos, i)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	for i, info := range infos {
		if info.Stored < 0 {
			return nil, fmt.Errorf("list: %s has %d stored bytes", info.ID.Short(), info.Stored)
		}
		if i > 0 && infos[i-1].ID.Compare(info.ID) >= 0 {
			return nil, fmt.Errorf("list: %s comes after %s", info.ID.Short(), infos[i-1].ID.Short())
		}
	}
	return infos, nil
}

// contains searches a listing that listAll has verified to be in order.
func contains(infos []blob.Info, id blob.ID) bool {
	_, found := slices.BinarySearchFunc(infos, id, func(i blob.Info, id blob.ID) int { return i.ID.Compare(id) })
	return found
}

func putSome(ctx context.Context, s blob.Store, n int) ([]blob.Blob, error) {
	blobs := make([]blob.Blob, n)
	for i := range blobs {
		blobs[i] = freshBlob(100 + i)
	}
	return blobs, put(ctx, s, blobs...)
}

func listInOrder(ctx context.Context, s blob.Store, l blob.Lister) error {
	blobs, err := putSome(ctx, s, 60)
	if err != nil {
		return err
	}
	infos, err := listAll(ctx, l, blob.ID{})
	if err != nil {
		return err
	}
	for _, b := range blobs {
		if !contains(infos, b.ID) {
			return fmt.Errorf("list: %s is missing", b.ID.Short())
		}
	}
	return nil
}

func listAfter(ctx context.Context, s blob.Store, l blob.Lister) error {
	blobs, err := putSome(ctx, s, 30)
	if err != nil {
		return err
	}
	for _, b := range blobs[:5] {
		infos, err := listAll(ctx, l, b.ID)
		if err != nil {
			return err
		}
		if len(infos) > 0 && infos[0].ID.Compare(b.ID) <= 0 {
			return fmt.Errorf("list after %s: begins with %s", b.ID.Short(), infos[0].ID.Short())
		}
		for _, other := range blobs {
			want := other.ID.Compare(b.ID) > 0
			got := contains(infos, other.ID)
			if got != want {
				return fmt.Errorf("list after %s: %s is there: %t, want %t", b.ID.Short(), other.ID.Short(), got, want)
			}
		}
	}
	return nil
}

func listStops(ctx context.Context, s blob.Store, l blob.Lister) error {
	if _, err := putSome(ctx, s, 10); err != nil {
		return err
	}
	enough, seen := errors.New("enough"), 0
	err := l.List(ctx, blob.ID{}, func(blob.Info) error {
		seen++
		if seen == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || seen != 3 {
		return fmt.Errorf("list that is stopped at the third blob: saw %d, got %v", seen, err)
	}
	return nil
}

func listDoneContext(ctx context.Context, s blob.Store, l blob.Lister) error {
	if _, err := putSome(ctx, s, 3); err != nil {
		return err
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	err := l.List(done, blob.ID{}, func(blob.Info) error { return nil })
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("list with a context that is done: got %v, want context.Canceled", err)
	}
	return nil
}
