package kept_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/kept"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

func TestValuesAreInsideOrBlobs(t *testing.T) {
	elsewhere := blob.Sum([]byte("elsewhere"))
	for name, v := range map[string]kept.Value{
		"empty":    {Type: "t", Data: []byte{}},
		"nil":      {Type: "t"},
		"small":    {Type: "t", Data: bytes.Repeat([]byte("s"), kept.InsideRepeated)},
		"large":    {Type: "t", Data: bytes.Repeat([]byte("l"), kept.InsideRepeated+1)},
		"a blob":   {Type: "t", Blob: elsewhere, Size: 9},
		"old blob": {Type: "t", Data: []byte("new"), Blob: elsewhere, Size: 9},
	} {
		var add kept.Additions
		got, err := kept.Decode(add.Keep(v, kept.Value{}, kept.InsideRepeated))
		want := v
		switch {
		case v.Data == nil && v.Blob.IsZero():
			want.Data = []byte{}
		case len(v.Data) > kept.InsideRepeated:
			want = kept.Value{Type: "t", Blob: blob.Sum(v.Data)}
		case v.Data != nil:
			want.Blob = blob.ID{}
		}
		if v.Data != nil {
			want.Size = int64(len(v.Data))
		}
		if err != nil || got.Type != "t" || !bytes.Equal(got.Data, want.Data) || got.Blob != want.Blob || got.Size != want.Size {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
	for name, v := range map[string]*stetv1.KeptValue{
		"both":        {Inside: []byte("x"), Blob: elsewhere[:]},
		"a short id":  {Blob: []byte("short")},
		"a huge size": {Blob: elsewhere[:], Size: 1 << 63},
	} {
		if got, err := kept.Decode(v); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// collecting removes all blobs before the first commit, as a collector without patience does.
type collecting struct {
	kv.Store
	blobs blob.Sweeper
	done  bool
}

func (c *collecting) Commit(ctx context.Context, b *kv.Batch) error {
	if !c.done {
		c.done = true
		generation, err := c.blobs.Begin(ctx)
		if err == nil {
			_, err = c.blobs.Sweep(ctx, generation, blob.SweepOptions{Live: func(blob.ID) bool { return false }})
		}
		if err != nil {
			return err
		}
	}
	return c.Store.Commit(ctx, b)
}

// Values that a collector removes before the commit are put again. A blob that the caller
// names and that is gone is an error.
func TestCollectorBeforeTheCommit(t *testing.T) {
	blobs := memblob.New()
	rows := &collecting{Store: memkv.New(blobs), blobs: blobs}
	var add kept.Additions
	data := []byte(strings.Repeat("b", 500))
	add.Keep(kept.Value{Data: data}, kept.Value{}, kept.InsideRepeated)
	if err := add.Commit(t.Context(), blobs, rows, &kv.Batch{Set: []kv.Set{{Key: "k", Value: []byte("v")}}}); err != nil {
		t.Fatal(err)
	}
	if got, err := blobs.Get(t.Context(), blob.Sum(data)); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	add.Keep(kept.Value{Blob: blob.Sum([]byte("gone"))}, kept.Value{}, kept.InsideRepeated)
	if err := add.Commit(t.Context(), blobs, rows, &kv.Batch{}); err == nil {
		t.Error("a commit with a blob that does not exist")
	}
}
