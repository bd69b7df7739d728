package postgres

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/internal/realservers"
)

func TestReplaceExchangesStoredBytes(t *testing.T) {
	objects := memblob.NewObjects()
	db := openNode(t, realservers.Postgres(t, realservers.PostgresOptions{}).NewDatabase(t), &Options{Objects: objects, LargeBytes: 1000})
	blobs := newTenant(t, db).Blobs()
	ctx := t.Context()
	long, short := strings.Repeat("long ", 500), "short"
	var ids []blob.ID
	for _, content := range []string{"a" + short, "b" + long, "c" + short, "d" + long} {
		one := blob.New([]byte(content))
		ids = append(ids, one.ID)
		if err := blobs.Put(ctx, one); err != nil {
			t.Fatal(err)
		}
	}
	leaning := blob.New([]byte("leans on the first"))
	leaning.Base = ids[0]
	if err := blobs.Put(ctx, leaning); err != nil {
		t.Fatal(err)
	}
	// Every change of place, one that leans, and one that is not there.
	absent := blob.New([]byte("absent"))
	fresh := map[blob.ID]string{ids[0]: "A" + short, ids[1]: "B" + short, ids[2]: "C" + long, leaning.ID: ""}
	var all []blob.Blob
	for id, content := range fresh {
		one := blob.Blob{ID: id, Data: []byte(content)}
		if id == leaning.ID {
			one.Base = ids[0]
		}
		all = append(all, one)
	}
	if err := blobs.Replace(ctx, append(all, absent)...); err != nil {
		t.Fatal(err)
	}
	fresh[ids[3]] = "D" + long
	if err := blobs.ReplaceFrom(ctx, ids[3], strings.NewReader(fresh[ids[3]]), int64(len(fresh[ids[3]]))); err != nil {
		t.Fatal(err)
	}
	for id, want := range fresh {
		if got, err := blobs.Get(ctx, id); err != nil || !bytes.Equal(got, []byte(want)) {
			t.Errorf("blob %s: %.20q, %v, want %.20q", id, got, err, want)
		}
		kept, err := blobs.Kept(ctx, id)
		if err != nil || string(kept.Data) != want || (id == leaning.ID) != (kept.Base == ids[0]) {
			t.Errorf("blob %s is kept as %.20q on %s, %v, want %.20q", id, kept.Data, kept.Base, err, want)
		}
	}
	err := blobs.List(ctx, blob.ID{}, func(i blob.Info) error {
		if want, ok := fresh[i.ID]; !ok || i.Stored != int64(len(want)) || (i.ID == leaning.ID) != (i.Base == ids[0]) {
			t.Errorf("listed: %+v", i)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if has, err := blobs.Has(ctx, absent.ID); err != nil || has[0] {
		t.Errorf("what was not there: %v, %v", has, err)
	}
	if err := blobs.ReplaceFrom(ctx, absent.ID, strings.NewReader(long), int64(len(long))); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("replace what is not there: %v", err)
	}
	for _, content := range []string{short, long} {
		if err := blobs.ReplaceFrom(ctx, ids[0], strings.NewReader(content), int64(len(content))+1); err == nil {
			t.Error("a source that ends early was taken")
		}
	}
	if got, err := blobs.Get(ctx, ids[0]); err != nil || string(got) != fresh[ids[0]] {
		t.Errorf("after a bad source: %q, %v", got, err)
	}
	left := 0
	if err := objects.ListObjects(ctx, "", "", func(blob.ObjectInfo) error {
		left++
		return nil
	}); err != nil || left != 2 {
		t.Errorf("%d objects, want 2, %v", left, err)
	}
}
