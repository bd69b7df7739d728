package s3blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/s3blob"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(realservers.Run(m)) }

const partSize = 5 << 20

// options are those of the tests: little patience and small parts.
func options(s *realservers.S3Server) *s3blob.Options {
	access, secret := s.Keys()
	return &s3blob.Options{
		Credentials: s3blob.StaticKeys(access, secret),
		PartSize:    partSize,
		MaxAttempts: 4,
		MaxWait:     5 * time.Millisecond,
	}
}

func open(t *testing.T, address string, opts *s3blob.Options) *s3blob.Bucket {
	t.Helper()
	b, err := s3blob.Open(t.Context(), address, opts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newBucket returns an empty bucket on the shared server.
func newBucket(t *testing.T) *s3blob.Bucket {
	t.Helper()
	s := realservers.S3(t)
	return open(t, s.URL(s.NewBucket(t)), options(s))
}

func TestContract(t *testing.T) {
	b := newBucket(t) // shared by all cases, as a live one is
	blobtest.RunObjects(t, func(*testing.T) blob.Objects { return b })
	wantUploads(t, b, 0)
	if infos := list(t, b, "", ""); len(infos) != 0 {
		t.Errorf("left behind: %v", infos)
	}
}

// TestContractBelowPrefix also has objects of others in the bucket.
func TestContractBelowPrefix(t *testing.T) {
	s := realservers.S3(t)
	name := s.NewBucket(t)
	other := open(t, s.URL(name), options(s))
	for _, key := range []string{"a", "our.own", "our-own/x", "our/prefix-of", "z"} {
		put(t, other, key, "not ours")
	}
	b := open(t, strings.Replace(s.URL(name), "?", "/our/prefix/?", 1), options(s))
	if got, want := b.String(), "s3://"+name+"/our/prefix/"; got != want {
		t.Errorf("String: got %q, want %q", got, want)
	}
	blobtest.RunObjects(t, func(*testing.T) blob.Objects { return b })
	if got := len(list(t, other, "", "")); got != 5 {
		t.Errorf("other objects: got %d, want 5", got)
	}
}

// TestRclone runs the contract on a peer that knows less. It takes many minutes
// to build.
func TestRclone(t *testing.T) {
	if !testenv.Long() && os.Getenv("STET_RCLONE") != "1" {
		t.Log("left to the long run")
		return
	}
	s := realservers.Rclone(t)
	b := open(t, s.URL(s.NewBucket(t)), options(s))
	if err := b.Check(t.Context()); err != nil {
		t.Error(err)
	}
	blobtest.RunObjects(t, func(*testing.T) blob.Objects { return b })
	// It compares the one checksum that is as old as S3.
	p := newProxy(t, s)
	b = open(t, realservers.S3URL(p.url, s.NewBucket(t)), options(s))
	for i, size := range sizes {
		data := content(uint64(i), size)
		p.set(uploads, 2, flipRequest)
		if err := b.PutObject(t.Context(), "flipped", bytes.NewReader(data), int64(size)); err != nil {
			t.Errorf("put of %d bytes that are changed on the way: %v", size, err)
		}
		if got, err := read(t.Context(), b, "flipped", 0, -1); err != nil || !bytes.Equal(got, data) {
			t.Errorf("put of %d bytes that were changed on the way: got %d, %v", size, len(got), err)
		}
	}
}

func TestLongListings(t *testing.T) {
	ctx, s := t.Context(), realservers.S3(t)
	name := s.NewBucket(t)
	b := open(t, s.URL(name), options(s))
	var keys []string
	for i := range 2500 { // three pages, and three batches
		key := fmt.Sprintf("d%d/%04d", i%3, i)
		keys = append(keys, key)
		file := filepath.Join(s.Files(name), key)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("x"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(keys)
	if got := list(t, b, "", ""); !slices.Equal(got, keys) {
		t.Errorf("list: got %d keys, want the %d that are there, in order", len(got), len(keys))
	}
	if got := list(t, b, "", keys[1200]); !slices.Equal(got, keys[1201:]) {
		t.Errorf("list after the 1201st: got %d keys, want %d", len(got), len(keys)-1201)
	}
	if err := b.RemoveObjects(ctx, keys[:2400]...); err != nil {
		t.Fatal(err)
	}
	if got := list(t, b, "", ""); !slices.Equal(got, keys[2400:]) {
		t.Errorf("list after a removal: got %d keys, want the last 100", len(got))
	}
}

func TestAbortStale(t *testing.T) {
	ctx, s := t.Context(), realservers.S3(t)
	name := s.NewBucket(t)
	b := open(t, strings.Replace(s.URL(name), "?", "/ours?", 1), options(s))
	other := open(t, s.URL(name), options(s))
	for i := range 3 {
		if err := errors.Join(b.BeginUpload(ctx, fmt.Sprintf("a/%d", i)), other.BeginUpload(ctx, fmt.Sprintf("other/%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		age        time.Duration
		want, left int
	}{{time.Hour, 0, 6}, {-time.Hour, 3, 3}, {-time.Hour, 0, 3}} {
		got, err := b.AbortStale(ctx, step.age)
		if err != nil || got != step.want {
			t.Errorf("AbortStale %s: got %d, %v, want %d", step.age, got, err, step.want)
		}
		wantUploads(t, b, step.left)
	}
}

func TestCheck(t *testing.T) {
	ctx, s := t.Context(), realservers.S3(t)
	name := s.NewBucket(t)
	wrong := options(s)
	wrong.Credentials = s3blob.StaticKeys("stet-access", "not-the-secret")
	stranger := options(s)
	stranger.Credentials = s3blob.StaticKeys("nobody", "not-the-secret")
	for _, c := range []struct {
		name, address string
		opts          *s3blob.Options
		want          error
		says          string
	}{
		{"ready", s.URL(name), options(s), nil, ""},
		{"no bucket", s.URL("there-is-none"), options(s), s3blob.ErrNoBucket, "create it"},
		{"wrong secret", s.URL(name), wrong, s3blob.ErrDenied, "the secret key does not belong"},
		{"unknown key", s.URL(name), stranger, s3blob.ErrDenied, "unknown access key"},
		{"unreachable", realservers.S3URL(closedPort(t), name), options(s), s3blob.ErrUnavailable, "nothing answers at"},
		{"wrong region", strings.Replace(s.URL(name), "us-east-1", "eu-west-1", 1), options(s), s3blob.ErrDenied, "region"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := open(t, c.address, c.opts)
			err := b.Check(ctx)
			if !errors.Is(err, c.want) || c.want != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("Check: got %v, want %v that says %q", err, c.want, c.says)
			}
			if c.want == nil {
				return
			}
			// An object that cannot be looked for is not one that is absent.
			_, openErr := b.OpenObject(ctx, "a", 0, -1)
			_, sizeErr := b.OpenObject(ctx, "a", 0, 0)
			putErr := b.PutObject(ctx, "a", strings.NewReader("a"), 1)
			for _, err := range []error{openErr, sizeErr, putErr, b.RemoveObjects(ctx, "a", "b"), b.ListObjects(ctx, "", "", nil)} {
				if !errors.Is(err, c.want) || errors.Is(err, blob.ErrNotFound) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if err != nil && strings.Contains(err.Error(), "not-the-secret") {
					t.Errorf("a secret is in %v", err)
				}
			}
		})
	}
}

// closedPort returns an address at which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func put(t *testing.T, b *s3blob.Bucket, key, content string) {
	t.Helper()
	if err := b.PutObject(context.Background(), key, strings.NewReader(content), int64(len(content))); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, b *s3blob.Bucket, prefix, after string) []string {
	t.Helper()
	var keys []string
	err := b.ListObjects(t.Context(), prefix, after, func(info blob.ObjectInfo) error {
		keys = append(keys, info.Key)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func wantUploads(t *testing.T, b *s3blob.Bucket, want int) {
	t.Helper()
	if got, err := b.Uploads(context.Background()); err != nil || got != want {
		t.Errorf("uploads in parts: got %d, %v, want %d", got, err, want)
	}
}
