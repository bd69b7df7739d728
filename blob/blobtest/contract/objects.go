package contract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing/iotest"

	"github.com/stet-dev/stet/blob"
)

// ObjectCase is one promise of blob.Objects.
type ObjectCase struct {
	// Name is a few words joined by hyphens.
	Name string
	// Bytes is the size of the largest object that the case stores, so that a runner
	// can skip costly cases.
	Bytes int64
	// Func returns an error if the bucket breaks the promise. All its keys begin with
	// prefix, which must be empty or end in a slash and must not be used by others
	// meanwhile. It removes its objects, even if it fails.
	Func func(ctx context.Context, o blob.Objects, prefix string) error
}

// partsSize is large enough that buckets take it in several parts.
const partsSize = 20 << 20

// ObjectCases returns the promises of blob.Objects, for buckets that may be live
// and shared.
func ObjectCases() []ObjectCase {
	cases := []ObjectCase{
		{Name: "put-and-open", Bytes: 1 << 20, Func: objectRoundTrip},
		{Name: "object-in-parts", Bytes: partsSize, Func: objectInParts},
		{Name: "object-from-small-pieces", Func: objectPieces},
		{Name: "object-ranges", Func: objectRanges},
		{Name: "range-outside-of-object", Func: objectOutside},
		{Name: "absent-object", Func: objectAbsent},
		{Name: "short-source-stores-no-object", Bytes: partsSize, Func: objectShortSource},
		{Name: "long-source-stores-no-object", Bytes: partsSize, Func: objectLongSource},
		{Name: "failing-source-stores-no-object", Bytes: partsSize, Func: objectFailingSource},
		{Name: "caller-may-reuse-what-it-put-as-object", Func: objectReuse},
		{Name: "object-put-again", Func: objectAgain},
		{Name: "remove-objects", Func: objectRemove},
		{Name: "list-objects", Func: objectList},
		{Name: "list-objects-stops", Func: objectListStops},
		{Name: "list-objects-after-removal-of-the-last", Func: objectListAfterRemoved},
		{Name: "bad-object-keys", Func: objectBadKeys},
		{Name: "objects-at-once", Func: objectsAtOnce},
		{Name: "objects-with-done-context", Func: objectDoneContext},
	}
	for i := range cases {
		cases[i].Bytes = max(cases[i].Bytes, 4<<10)
		cases[i].Func = cleaned(cases[i].Func)
	}
	return cases
}

// cleaned removes the objects of a case. It lists them, so it also finds those that a
// failed case left behind.
func cleaned(fn func(context.Context, blob.Objects, string) error) func(context.Context, blob.Objects, string) error {
	return func(ctx context.Context, o blob.Objects, prefix string) error {
		if prefix != "" && !strings.HasSuffix(prefix, "/") {
			return fmt.Errorf("prefix %q does not end in a slash", prefix)
		}
		prefix += fmt.Sprintf("contract-%x/", fresh(8))
		err := fn(ctx, o, prefix)
		var left []string
		listErr := o.ListObjects(ctx, prefix, "", func(info blob.ObjectInfo) error {
			left = append(left, info.Key)
			return nil
		})
		return errors.Join(err, listErr, o.RemoveObjects(ctx, left...))
	}
}

func putObject(ctx context.Context, o blob.Objects, key string, data []byte) error {
	if err := o.PutObject(ctx, key, newReader(data), int64(len(data))); err != nil {
		return fmt.Errorf("put object of %d bytes: %w", len(data), err)
	}
	return nil
}

// readObject reads a whole range.
func readObject(ctx context.Context, o blob.Objects, key string, offset, length int64) (data []byte, err error) {
	r, err := o.OpenObject(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return io.ReadAll(r)
}

func wantRange(ctx context.Context, o blob.Objects, key string, offset, length int64, want []byte) error {
	got, err := readObject(ctx, o, key, offset, length)
	if err != nil {
		return fmt.Errorf("open %d bytes from %d on: %w", length, offset, err)
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("open %d bytes from %d on: got %s, want %s", length, offset, describe(got), describe(want))
	}
	return nil
}

func wantObject(ctx context.Context, o blob.Objects, key string, want []byte) error {
	return wantRange(ctx, o, key, 0, -1, want)
}

// wantOpenError checks that a range cannot be read, and why.
func wantOpenError(ctx context.Context, o blob.Objects, key string, offset, length int64, want error) error {
	data, err := readObject(ctx, o, key, offset, length)
	if !errors.Is(err, want) {
		return fmt.Errorf("open %d bytes from %d on: got %s, %v, want %v", length, offset, describe(data), err, want)
	}
	return nil
}

// wantNothing checks that nothing is stored under a key.
func wantNothing(ctx context.Context, o blob.Objects, key string) error {
	if err := wantOpenError(ctx, o, key, 0, -1, blob.ErrNotFound); err != nil {
		return err
	}
	infos, err := listObjects(ctx, o, key, "")
	if err != nil {
		return err
	}
	if len(infos) != 0 {
		return fmt.Errorf("list: %s is there", infos[0].Key)
	}
	return nil
}

func listObjects(ctx context.Context, o blob.Objects, prefix, after string) ([]blob.ObjectInfo, error) {
	var infos []blob.ObjectInfo
	err := o.ListObjects(ctx, prefix, after, func(info blob.ObjectInfo) error {
		infos = append(infos, info)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list objects: %w", err)
	}
	return infos, nil
}

func objectRoundTrip(ctx context.Context, o blob.Objects, prefix string) error {
	for _, n := range []int{0, 1, 1000, 1 << 20} {
		data, key := fresh(n), fmt.Sprintf("%sA-z/%d.x", prefix, n)
		if err := putObject(ctx, o, key, data); err != nil {
			return err
		}
		if err := wantObject(ctx, o, key, data); err != nil {
			return err
		}
	}
	return nil
}

func objectInParts(ctx context.Context, o blob.Objects, prefix string) error {
	data := fresh(partsSize + 1)
	if err := putObject(ctx, o, prefix+"parts", data); err != nil {
		return err
	}
	return errors.Join(
		wantObject(ctx, o, prefix+"parts", data),
		wantRange(ctx, o, prefix+"parts", 5<<20-1, 4<<20, data[5<<20-1:9<<20-1]),
	)
}

func objectPieces(ctx context.Context, o blob.Objects, prefix string) error {
	readers := []func(io.Reader) io.Reader{
		iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader,
		func(r io.Reader) io.Reader { return &hesitant{r: r} },
	}
	for i, wrap := range readers {
		data, key := fresh(3000), fmt.Sprintf("%spieces-%d", prefix, i)
		if err := o.PutObject(ctx, key, wrap(newReader(data)), 3000); err != nil {
			return fmt.Errorf("source %d: %w", i, err)
		}
		if err := wantObject(ctx, o, key, data); err != nil {
			return fmt.Errorf("source %d: %w", i, err)
		}
	}
	return nil
}

func objectRanges(ctx context.Context, o blob.Objects, prefix string) error {
	data, key := fresh(3000), prefix+"ranges"
	if err := putObject(ctx, o, key, data); err != nil {
		return err
	}
	for _, r := range [][2]int64{{0, 1}, {0, 3000}, {1, 2998}, {2999, 1}, {1000, 1000}, {0, 0}, {1500, 0}, {3000, 0}} {
		if err := wantRange(ctx, o, key, r[0], r[1], data[r[0]:r[0]+r[1]]); err != nil {
			return err
		}
	}
	for _, offset := range []int64{0, 1, 2999, 3000} {
		if err := wantRange(ctx, o, key, offset, -1, data[offset:]); err != nil {
			return err
		}
	}
	return nil
}

func objectOutside(ctx context.Context, o blob.Objects, prefix string) error {
	full, empty := prefix+"full", prefix+"empty"
	if err := errors.Join(putObject(ctx, o, full, fresh(100)), putObject(ctx, o, empty, nil)); err != nil {
		return err
	}
	for _, r := range [][2]int64{{0, 101}, {50, 51}, {100, 1}, {101, 0}, {101, -1}, {5000, 10}, {-1, 10}, {-1, -1}} {
		if err := wantOpenError(ctx, o, full, r[0], r[1], blob.ErrCorrupt); err != nil {
			return err
		}
	}
	return errors.Join(
		wantOpenError(ctx, o, empty, 0, 1, blob.ErrCorrupt),
		wantOpenError(ctx, o, empty, 1, -1, blob.ErrCorrupt),
		wantRange(ctx, o, empty, 0, 0, nil),
	)
}

func objectAbsent(ctx context.Context, o blob.Objects, prefix string) error {
	if err := putObject(ctx, o, prefix+"neighbour", fresh(10)); err != nil {
		return err
	}
	for _, r := range [][2]int64{{0, -1}, {0, 0}, {0, 10}, {7, -1}, {7, 3}} {
		if err := wantOpenError(ctx, o, prefix+"neighbou", r[0], r[1], blob.ErrNotFound); err != nil {
			return err
		}
	}
	return nil
}

func objectAgain(ctx context.Context, o blob.Objects, prefix string) error {
	data, key := fresh(2000), prefix+"again"
	for range 2 {
		if err := putObject(ctx, o, key, data); err != nil {
			return err
		}
	}
	infos, err := listObjects(ctx, o, key, "")
	if err == nil && len(infos) != 1 {
		err = fmt.Errorf("list: got %d objects, want 1", len(infos))
	}
	return errors.Join(err, wantObject(ctx, o, key, data))
}

func objectReuse(ctx context.Context, o blob.Objects, prefix string) error {
	data, key := fresh(1000), prefix+"reuse"
	want := slices.Clone(data)
	// A source in memory may hand over its own slice.
	if err := o.PutObject(ctx, key, bytes.NewReader(data), int64(len(data))); err != nil {
		return err
	}
	scribble(data)
	for range 2 {
		got, err := readObject(ctx, o, key, 0, -1)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("after the caller changed its memory: got %s, want %s", describe(got), describe(want))
		}
		scribble(got)
	}
	return nil
}
