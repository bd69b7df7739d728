package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stet-dev/stet/blob"
)

// listed are keys whose byte order differs from the order in which a directory
// tree is walked: '-' and '.' come before '/', and '/' before letters. No two differ in case
// only: directories of some systems cannot have both.
var listed = []string{"a", "a-", "a-b/c", "a.b", "aZ", "ab/b", "ab/c/d", "ab0", "b/1", "b/10", "b/2", "c/x/y/z"}

func putListed(ctx context.Context, o blob.Objects, prefix string) ([]string, error) {
	var keys []string
	for i, name := range listed {
		keys = append(keys, prefix+name)
		if err := putObject(ctx, o, prefix+name, fresh(10+i)); err != nil {
			return nil, err
		}
	}
	slices.Sort(keys)
	return keys, nil
}

func objectList(ctx context.Context, o blob.Objects, prefix string) error {
	begin := time.Now()
	keys, err := putListed(ctx, o, prefix)
	if err != nil {
		return err
	}
	for _, query := range []struct{ prefix, after string }{
		{"", ""}, {"a", ""}, {"ab", ""}, {"ab/", ""}, {"b/1", ""}, {"nothing", ""}, {"a-b/c", ""},
		{"", "a"}, {"", "ab/b"}, {"", "ab/"}, {"", "ab/bb"}, {"b/", "b/1"}, {"b/", "a"}, {"b/", "c"}, {"", "c/x/y/z"},
	} {
		after := query.after
		if after != "" {
			after = prefix + after
		}
		want := slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
			return !strings.HasPrefix(key, prefix+query.prefix) || key <= after
		})
		infos, err := listObjects(ctx, o, prefix+query.prefix, after)
		if err != nil {
			return err
		}
		var got []string
		for _, info := range infos {
			got = append(got, info.Key)
			if err := plausible(info, prefix, begin); err != nil {
				return err
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("list of %q after %q: got %q, want %q", query.prefix, query.after, got, want)
		}
	}
	return nil
}

// plausible checks size and time. The clock of a bucket may differ from ours, so the
// time need only be within days.
func plausible(info blob.ObjectInfo, prefix string, begin time.Time) error {
	if want := int64(10 + slices.Index(listed, strings.TrimPrefix(info.Key, prefix))); info.Size != want {
		return fmt.Errorf("list: %s has %d bytes, want %d", info.Key, info.Size, want)
	}
	const day = 24 * time.Hour
	if d := info.Time.Sub(begin); d < -day || d > day {
		return fmt.Errorf("list: %s was stored at %s, want about %s", info.Key, info.Time, begin)
	}
	return nil
}

func objectListStops(ctx context.Context, o blob.Objects, prefix string) error {
	keys, err := putListed(ctx, o, prefix)
	if err != nil {
		return err
	}
	enough, calls := errors.New("enough"), 0
	err = o.ListObjects(ctx, prefix, "", func(info blob.ObjectInfo) error {
		if calls++; calls == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || calls != 3 {
		return fmt.Errorf("list that stops at the third of %d objects: got %d calls, %v", len(keys), calls, err)
	}
	return nil
}

// objectListAfterRemoved continues after a removed key, as a sweep does that removes
// what it lists.
func objectListAfterRemoved(ctx context.Context, o blob.Objects, prefix string) error {
	keys, err := putListed(ctx, o, prefix)
	if err != nil {
		return err
	}
	for i, key := range keys {
		if err := o.RemoveObjects(ctx, key); err != nil {
			return err
		}
		infos, err := listObjects(ctx, o, prefix, key)
		if err != nil {
			return err
		}
		if got, want := len(infos), len(keys)-i-1; got != want {
			return fmt.Errorf("list after %s, which is removed: got %d objects, want %d", key, got, want)
		}
	}
	return nil
}
