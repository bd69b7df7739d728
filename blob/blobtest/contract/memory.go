package contract

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/stet-dev/stet/blob"
)

func memoryCases() []Case {
	return []Case{
		{Name: "caller-may-reuse-what-it-put", Bytes: 100 << 10, Func: reuseAfterPut},
		{Name: "caller-owns-what-it-got", Bytes: 100 << 10, Func: ownsResult},
		{Name: "put-leaves-its-arguments-alone", Func: argumentsUnchanged},
	}
}

// memorySizes cover contents that stores keep in different places.
var memorySizes = []int{1, 40, 1000, 100 << 10}

func scribble(p []byte) {
	for i := range p {
		p[i] ^= 0xff
	}
}

func reuseAfterPut(ctx context.Context, s blob.Store) error {
	for _, n := range memorySizes {
		data := fresh(n)
		want := slices.Clone(data)
		b := blob.New(data)
		if err := put(ctx, s, b); err != nil {
			return err
		}
		scribble(data)
		if err := wantContent(ctx, s, b.ID, want); err != nil {
			return fmt.Errorf("after the caller changed %d bytes that it had put: %w", n, err)
		}
		if err := s.Flush(ctx); err != nil {
			return err
		}
		if err := wantContent(ctx, s, b.ID, want); err != nil {
			return fmt.Errorf("after a flush: %w", err)
		}
	}
	return nil
}

func ownsResult(ctx context.Context, s blob.Store) error {
	for _, n := range memorySizes {
		want := fresh(n)
		b := blob.New(slices.Clone(want))
		if err := put(ctx, s, b); err != nil {
			return err
		}
		for range 3 { // the first read may come from below, the next from a cache
			got, err := s.Get(ctx, b.ID)
			if err != nil {
				return err
			}
			if !bytes.Equal(got, want) {
				return fmt.Errorf("after the caller changed %d bytes that it had got: got %s", n, describe(got))
			}
			scribble(got[:cap(got)]) // also the bytes past the end
		}
		if err := wantContent(ctx, s, b.ID, want); err != nil {
			return err
		}
	}
	return nil
}

func argumentsUnchanged(ctx context.Context, s blob.Store) error {
	first := blob.NewBuilder()
	first.Append(fresh(500))
	head := first.Blob(nil)
	if err := put(ctx, s, head); err != nil {
		return err
	}
	first.Commit(head)
	first.Append(fresh(50))
	blobs := []blob.Blob{freshBlob(1000), first.Blob(fresh(10)), freshBlob(10)}
	blobs[0].Like = head.ID
	blobs[2].LocalOnly = true
	before := make([]blob.Blob, len(blobs))
	for i, b := range blobs {
		b.Data = slices.Clone(b.Data)
		before[i] = b
	}
	if err := put(ctx, s, blobs...); err != nil {
		return err
	}
	if !reflect.DeepEqual(blobs, before) {
		return fmt.Errorf("put changed the blobs that it was given")
	}
	return nil
}
