package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
)

// withBucket opens a tenant whose blobs of 1,000 bytes and more go to a bucket.
func withBucket(t *testing.T) (*Tenant, *memblob.Objects) {
	bucket := memblob.NewObjects()
	return newTenant(t, openNode(t, newDatabase(t, 15), &Options{Objects: bucket, LargeBytes: 1000})), bucket
}

func largeBlob() blob.Blob {
	data := make([]byte, 5000)
	rand.Read(data)
	return blob.New(data)
}

func mustPut(t *testing.T, s blob.Store, blobs ...blob.Blob) {
	t.Helper()
	if err := errors.Join(s.Put(t.Context(), blobs...), s.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func objectsOf(t *testing.T, bucket blob.Objects) (keys []string) {
	t.Helper()
	err := bucket.ListObjects(t.Context(), "", "", func(o blob.ObjectInfo) error {
		keys = append(keys, o.Key)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestLargeBlobsAreObjects(t *testing.T) {
	tenant, bucket := withBucket(t)
	large, small := largeBlob(), blob.New([]byte("small"))
	mustPut(t, tenant.Blobs(), large, small)
	keys := objectsOf(t, bucket)
	want := tenant.prefix() + large.ID.String()[:2] + "/" + large.ID.String() + "."
	if len(keys) != 1 || !strings.HasPrefix(keys[0], want) {
		t.Fatalf("objects %q, want one that begins with %q", keys, want)
	}
	mustPut(t, tenant.Blobs(), large)
	if again := objectsOf(t, bucket); len(again) != 1 {
		t.Errorf("stored again: objects %q, want the same one", again)
	}
	if used, err := tenant.Usage(t.Context()); err != nil || used != 5005 {
		t.Errorf("usage: got %d, %v, want 5005", used, err)
	}
}

func TestDamagedObjects(t *testing.T) {
	tenant, bucket := withBucket(t)
	b := largeBlob()
	mustPut(t, tenant.Blobs(), b)
	key := objectsOf(t, bucket)[0]
	for name, damage := range map[string]func() error{
		"short":   func() error { return bucket.PutObject(t.Context(), key, strings.NewReader("short"), 5) },
		"missing": func() error { return bucket.RemoveObjects(t.Context(), key) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		_, err := tenant.Blobs().Get(t.Context(), b.ID)
		if !errors.Is(err, blob.ErrCorrupt) || !strings.Contains(err.Error(), b.ID.String()) {
			t.Errorf("get with a %s object: got %v, want ErrCorrupt that names the blob", name, err)
		}
		r, err := tenant.Blobs().Open(t.Context(), b.ID)
		if err == nil {
			_, err = io.ReadAll(r)
			r.Close()
		}
		if !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("open with a %s object: got %v, want ErrCorrupt", name, err)
		}
	}
	bare := tenantOf(t, openNode(t, tenant.db.pool.Config().ConnString(), nil), tenant.Name())
	if _, err := bare.Blobs().Get(t.Context(), b.ID); err == nil || errors.Is(err, blob.ErrNotFound) {
		t.Errorf("get without the bucket: got %v, want an error that does not deny the blob", err)
	}
}

func TestOrphans(t *testing.T) {
	tenant, bucket := withBucket(t)
	kept := largeBlob()
	mustPut(t, tenant.Blobs(), kept)
	orphan, foreign := tenant.newObjectKey(largeBlob().ID), tenant.prefix()+"readme"
	stale := tenant.newObjectKey(kept.ID) // of a Put that came second on another node
	other := "0123/" + orphan
	for _, key := range []string{orphan, stale, foreign, other} {
		if err := bucket.PutObject(t.Context(), key, strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := tenant.Blobs().SweepOrphans(t.Context(), time.Hour); err != nil || n != 0 {
		t.Errorf("sweep of young objects: removed %d, %v, want none", n, err)
	}
	if n, err := tenant.Blobs().SweepOrphans(t.Context(), -time.Hour); err != nil || n != 2 {
		t.Errorf("sweep: removed %d, %v, want 2", n, err)
	}
	for _, key := range []string{foreign, other} {
		if r, err := bucket.OpenObject(t.Context(), key, 0, -1); err != nil {
			t.Errorf("object %s: %v", key, err)
		} else {
			r.Close()
		}
	}
	if data, err := tenant.Blobs().Get(t.Context(), kept.ID); err != nil || !bytes.Equal(data, kept.Data) {
		t.Errorf("the blob that is kept: %v", err)
	}
}

// TestOnePutWins leaves no object behind where many put the same.
func TestOnePutWins(t *testing.T) {
	tenant, bucket := withBucket(t)
	b := largeBlob()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := tenant.Blobs().PutFrom(t.Context(), b.ID, bytes.NewReader(b.Data), int64(len(b.Data))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := tenant.Blobs().Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if keys := objectsOf(t, bucket); len(keys) != 1 {
		t.Errorf("%d objects of one blob", len(keys))
	}
	if data, err := tenant.Blobs().Get(t.Context(), b.ID); err != nil || !bytes.Equal(data, b.Data) {
		t.Errorf("get: %v", err)
	}
}

// failing is a bucket that is not there.
type failing struct{ blob.Objects }

var errBucket = errors.New("no bucket today")

func (failing) PutObject(context.Context, string, io.Reader, int64) error { return errBucket }

func TestBucketFails(t *testing.T) {
	db := openNode(t, newDatabase(t, 15), &Options{Objects: failing{memblob.NewObjects()}})
	tenant := newTenant(t, db)
	large := blob.New(make([]byte, 200<<10))
	if err := tenant.Blobs().Put(t.Context(), large); !errors.Is(err, errBucket) {
		t.Errorf("put gave %v, want the bucket's error", err)
	}
	mustPut(t, tenant.Blobs(), blob.New([]byte("small")))
	if has, err := tenant.Blobs().Has(t.Context(), large.ID); err != nil || has[0] {
		t.Errorf("has: got %v, %v, want nothing stored", has, err)
	}
}

func TestTooLargeWithoutBucket(t *testing.T) {
	tenant := newTenant(t, openNode(t, newDatabase(t, 15), nil))
	err := tenant.Blobs().PutFrom(t.Context(), blob.Sum(nil), strings.NewReader(""), maxInDatabase+1)
	if !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("put gave %v, want ErrTooLarge", err)
	}
}
