package s3blob_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/s3blob"
	"github.com/stet-dev/stet/internal/realservers"
)

// TestPeerWithoutChecksums has a service refuse the checksums that are not as old
// as S3.
func TestPeerWithoutChecksums(t *testing.T) {
	for _, code := range []string{"NotImplemented", "InvalidArgument"} {
		ctx := t.Context()
		b, p := throughProxy(t)
		refused := 0
		p.set(func(r *http.Request) bool {
			for name := range r.Header {
				if strings.HasPrefix(name, "X-Amz-Checksum-") && r.Method != http.MethodGet {
					refused++
					return true
				}
			}
			return false
		}, always, refuse(http.StatusBadRequest, code))
		for i, size := range slices.Backward(sizes) {
			data, key := content(uint64(i), size), fmt.Sprint(size)
			if err := b.PutObject(ctx, key, bytes.NewReader(data), int64(size)); err != nil {
				t.Errorf("%s: put %d bytes: %v", code, size, err)
			}
			if got, err := read(ctx, b, key, 0, -1); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s: read back %d of %d bytes, %v", code, len(got), size, err)
			}
		}
		if refused != 1 {
			t.Errorf("%s: %d requests were refused, want one to learn from", code, refused)
		}
	}
}

// TestPeerThatRemovesSingly has a service that knows no removal of several.
func TestPeerThatRemovesSingly(t *testing.T) {
	for _, refusal := range []fault{refuse(501, "NotImplemented"), refuse(405, ""), refuse(400, "MissingContentMD5")} {
		ctx := t.Context()
		b, p := throughProxy(t)
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			put(t, b, key, key)
		}
		p.set(func(r *http.Request) bool { return r.URL.Query().Has("delete") }, always, refusal)
		for _, keys := range [][]string{{"a", "b", "never"}, {"c", "d"}} {
			if err := b.RemoveObjects(ctx, keys...); err != nil {
				t.Errorf("remove %v: %v", keys, err)
			}
		}
		if got := list(t, b, "", ""); !slices.Equal(got, []string{"e"}) {
			t.Errorf("left: %v, want e", got)
		}
	}
}

func TestRemoveThroughFaults(t *testing.T) {
	ctx := t.Context()
	b, p := throughProxy(t)
	for _, f := range []fault{refuse(500, "InternalError"), refuse(503, "SlowDown"), loseAnswer, cutRequest} {
		put(t, b, "a", "a")
		put(t, b, "b", "b")
		p.set(isRemoval, 2, f)
		if err := b.RemoveObjects(ctx, "a", "b"); err != nil {
			t.Error(err)
		}
		if got := list(t, b, "", ""); len(got) != 0 {
			t.Errorf("left: %v", got)
		}
		p.set(isRemoval, always, f)
		if err := b.RemoveObjects(ctx, "a", "b"); !errors.Is(err, s3blob.ErrUnavailable) {
			t.Errorf("with faults for good: got %v, want %v", err, s3blob.ErrUnavailable)
		}
	}
	p.set(isRemoval, 1, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		fmt.Fprint(w, `<DeleteResult><Error><Key>a</Key><Code>NoSuchKey</Code></Error><Error><Key>b</Key><Code>AccessDenied</Code><Message>no</Message></Error></DeleteResult>`)
	})
	if err := b.RemoveObjects(ctx, "a", "b"); !errors.Is(err, s3blob.ErrDenied) || strings.Contains(err.Error(), `"a"`) {
		t.Errorf("one of two is denied: got %v, want %v about b only", err, s3blob.ErrDenied)
	}
}

func TestListThroughFaults(t *testing.T) {
	b, p := throughProxy(t)
	put(t, b, "a", "a")
	put(t, b, "b", "b")
	for _, f := range []fault{refuse(500, "InternalError"), refuse(503, "SlowDown"), loseAnswer, cutAnswer(50)} {
		p.set(isListing, 2, f)
		if got := list(t, b, "", ""); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("got %v, want a and b", got)
		}
		p.set(isListing, always, f)
		if err := b.ListObjects(t.Context(), "", "", nil); !errors.Is(err, s3blob.ErrUnavailable) {
			t.Errorf("with faults for good: got %v, want %v", err, s3blob.ErrUnavailable)
		}
	}
}

// page is what a listing answers.
func page(token string, keys ...string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "<ListBucketResult><IsTruncated>%t</IsTruncated><NextContinuationToken>%s</NextContinuationToken>", token != "", token)
	for _, key := range keys {
		fmt.Fprintf(&out, "<Contents><Key>%s</Key><Size>1</Size><LastModified>2026-01-02T03:04:05Z</LastModified></Contents>", key)
	}
	return out.String() + "</ListBucketResult>"
}

// TestStrangeListings has services with ideas of their own.
func TestStrangeListings(t *testing.T) {
	for _, c := range []struct {
		name  string
		pages map[string]string // by continuation token
		after string
		want  []string
		err   error
	}{
		{"ignores where to start", map[string]string{"": page("t", "a", "b"), "t": page("", "c", "d")}, "b", []string{"c", "d"}, nil},
		{"ignores the prefix", map[string]string{"": page("", "a", "p", "z")}, "", []string{"a", "p", "z"}, nil},
		{"shows directories and others' keys", map[string]string{"": page("", "a/", "a/b", "c d", "e//f", "g")}, "", []string{"a/b", "g"}, nil},
		{"out of order", map[string]string{"": page("", "b", "a")}, "", []string{"b"}, errors.ErrUnsupported},
		{"twice", map[string]string{"": page("t", "a", "b"), "t": page("", "b", "c")}, "", []string{"a", "b"}, errors.ErrUnsupported},
		{"in circles", map[string]string{"": page("t", "a"), "t": page("t", "b")}, "", []string{"a", "b"}, errors.ErrUnsupported},
		{"without a way on", map[string]string{"": strings.Replace(page("t", "a"), ">t<", "><", 1)}, "", []string{"a"}, errors.ErrUnsupported},
		{"no listing", map[string]string{"": "<html>welcome"}, "", nil, s3blob.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, c.pages[r.URL.Query().Get("continuation-token")])
			}))
			defer server.Close()
			b := open(t, realservers.S3URL(server.URL, "bucket"), options(realservers.S3(t)))
			var got []string
			err := b.ListObjects(t.Context(), "", c.after, func(info blob.ObjectInfo) error {
				got = append(got, info.Key)
				return nil
			})
			if !errors.Is(err, c.err) || !slices.Equal(got, c.want) {
				t.Errorf("got %v, %v, want %v, %v", got, err, c.want, c.err)
			}
		})
	}
}

// TestStrangeAnswers has services that do not know ranges, or lie about them.
func TestStrangeAnswers(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		name           string
		offset, length int64
		headers        map[string]string
		status         int
		want           error
	}{
		{"whole object from the start", 0, 3, nil, 200, nil},
		{"whole object instead of its middle", 3, 3, nil, 200, errors.ErrUnsupported},
		{"another range", 3, 3, map[string]string{"Content-Range": "bytes 4-6/10"}, 206, errors.ErrUnsupported},
		{"no range", 3, 3, map[string]string{"Content-Range": "bytes somewhere"}, 206, errors.ErrUnsupported},
		{"range beyond the end", 3, 3, map[string]string{"Content-Range": "bytes 3-12/10"}, 206, errors.ErrUnsupported},
		{"checksum that is none", 0, -1, map[string]string{"X-Amz-Meta-Stet-Crc32c": "?"}, 200, nil},
		{"checksum of the parts", 0, -1, map[string]string{"X-Amz-Checksum-Crc32c": "AAAAAA==-3", "X-Amz-Checksum-Type": "COMPOSITE"}, 200, nil},
		{"wrong checksum", 0, -1, map[string]string{"X-Amz-Checksum-Crc32c": "AAAAAA==", "X-Amz-Checksum-Type": "FULL_OBJECT"}, 200, blob.ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for name, value := range c.headers {
					w.Header().Set(name, value)
				}
				w.Header().Set("Content-Length", "10")
				w.WriteHeader(c.status)
				fmt.Fprint(w, "0123456789")
			}))
			defer server.Close()
			b := open(t, realservers.S3URL(server.URL, "bucket"), options(realservers.S3(t)))
			got, err := read(ctx, b, "a", c.offset, c.length)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %q, %v, want %v", got, err, c.want)
			}
			want := "0123456789"
			if c.length >= 0 {
				want = want[:c.length]
			}
			if err == nil && string(got) != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestConfirmationOfOtherBytes has a service say that it stored something else.
func TestConfirmationOfOtherBytes(t *testing.T) {
	b, p := throughProxy(t)
	p.set(uploads, always, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Amz-Checksum-Crc32c", "AAAAAA==")
		w.Header().Set("ETag", `"x"`)
	})
	for i, size := range sizes {
		if err := b.PutObject(t.Context(), "a", bytes.NewReader(content(uint64(i), size)), int64(size)); !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("put %d bytes: got %v, want %v", size, err, blob.ErrCorrupt)
		}
	}
	wantUploads(t, b, 0)
}

func TestAddresses(t *testing.T) {
	opts := options(realservers.S3(t))
	t.Setenv("AWS_REGION", "us-east-1")
	for _, good := range []string{"s3://bucket", "s3://bucket/", "s3://bucket/a/b/", "s3://bucket?region=x&path-style=false&endpoint=https://host:1/path"} {
		if _, err := s3blob.Open(t.Context(), good, opts); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "bucket", "http://bucket", "s3:bucket", "s3://", "s3://b", "s3://-x-", "s3://bucket:80", "s3://bucket/a//b", "s3://bucket/a b", "s3://bucket/../x",
		"s3://canary:canary@bucket", "s3://bucket#canary", "s3://bucket?secret=canary", "s3://bucket?region=a&region=b", "s3://bucket?path-style=perhaps",
		"s3://bucket?endpoint=canary", "s3://bucket?endpoint=http://canary:canary@host", "s3://bucket?endpoint=ftp://host", "s3://bucket?endpoint=http://host?x=canary",
		"s3://bucket?%zz=canary", "s3://bucket\x00canary",
	} {
		_, err := s3blob.Open(t.Context(), bad, opts)
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: got %v, want an error that does not repeat it", bad, err)
		}
	}
}
