package s3api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/s3api"
)

// recorder keeps the last request and refuses all.
type recorder struct {
	method, url, body string
	header            http.Header
	length            int64
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.method, r.url, r.header, r.body, r.length = req.Method, req.URL.String(), req.Header.Clone(), "", req.ContentLength
	if req.Body != nil {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		r.body = string(text)
	}
	return &http.Response{
		StatusCode: http.StatusForbidden, Request: req, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader("<Error><Code>AccessDenied</Code></Error>")),
	}, nil
}

func recorded(t *testing.T, config s3api.Config) (*s3api.Client, *recorder) {
	t.Helper()
	r := &recorder{}
	config.HTTP = &http.Client{Transport: r}
	client, err := s3api.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, r
}

// TestRequests compares what is sent with what AWS's client sends.
func TestRequests(t *testing.T) {
	type row struct {
		Name, Method, URL, Body string
		Headers                 map[string]string
	}
	ctx := t.Context()
	const id, key = "up+load/id==", "packs/1"
	content := s3api.Content{Data: []byte("hello\nworld"), MD5: "kZXQvrKoieG+Be1rsZVINw=="}
	summed := content
	summed.CRC32C = "AAAAAA=="
	withMeta := summed
	withMeta.Meta = map[string]string{"stet-crc32c": "01020304"}
	operations := map[string]func(*s3api.Client){
		"put plain":     func(c *s3api.Client) { _, _ = c.Put(ctx, key, content) },
		"put empty":     func(c *s3api.Client) { _, _ = c.Put(ctx, key, s3api.Content{MD5: s3api.MD5(nil)}) },
		"create":        func(c *s3api.Client) { _, _ = c.CreateUpload(ctx, key, true) },
		"create plain":  func(c *s3api.Client) { _, _ = c.CreateUpload(ctx, key, false) },
		"part":          func(c *s3api.Client) { _, _, _ = c.PutPart(ctx, key, id, 3, summed) },
		"abort":         func(c *s3api.Client) { _ = c.AbortUpload(ctx, key, id) },
		"uploads":       func(c *s3api.Client) { _, _ = c.ListUploads(ctx, "p/", "k m", id) },
		"uploads plain": func(c *s3api.Client) { _, _ = c.ListUploads(ctx, "", "", "") },
		"list":          func(c *s3api.Client) { _, _ = c.List(ctx, s3api.Query{Prefix: "p/", After: "p/ä b", Token: "t+/="}) },
		"list plain":    func(c *s3api.Client) { _, _ = c.List(ctx, s3api.Query{Max: 1}) },
		"head bucket":   func(c *s3api.Client) { _ = c.HeadBucket(ctx) },
		"create bucket": func(c *s3api.Client) { _ = c.CreateBucket(ctx) },
		"delete":        func(c *s3api.Client) { _ = c.Delete(ctx, key) },
		"delete several": func(c *s3api.Client) {
			_, _ = c.DeleteAll(ctx, []string{key, "a&<>'\"\n\tä"})
		},
		"complete": func(c *s3api.Client) {
			_, _, _ = c.CompleteUpload(ctx, key, id, []s3api.Part{{Tag: `"x&<>"`, CRC32C: "AAAAAA=="}, {Tag: `"y"`}}, "AAAAAA==")
		},
	}
	for _, row := range table[row](t, "requests.json") {
		place, name, _ := strings.Cut(row.Name, "/")
		config := s3api.Config{Bucket: "bucket", Region: "us-east-1", PathStyle: true, Endpoint: "http://127.0.0.1:9000"}
		keys := s3api.Keys{Access: exampleAccess, Secret: exampleSecret}
		if place == "customtls" {
			config.Endpoint, keys.Session = "https://s3.example.com", "tok/en+=="
		}
		config.Credentials = s3api.Static(keys)
		client, got := recorded(t, config)
		if run := operations[name]; run != nil {
			run(client)
		} else if key, ok := strings.CutPrefix(name, "get "); ok {
			_, _ = client.Get(ctx, key, "bytes=1-2")
		} else {
			_, _ = client.Put(ctx, strings.TrimPrefix(name, "put "), withMeta)
		}
		if got.method != row.Method || got.url != row.URL || got.body != row.Body || got.length != int64(len(row.Body)) {
			t.Errorf("%s:\n got %s %s %q of %d bytes\nwant %s %s %q", row.Name, got.method, got.url, got.body, got.length, row.Method, row.URL, row.Body)
		}
		for name, want := range row.Headers {
			if h := got.header.Get(name); h != want {
				t.Errorf("%s: %s: got %q, want %q", row.Name, name, h, want)
			}
			got.header.Del(name)
		}
		if got.header.Get("Authorization") == "" || got.header.Get("X-Amz-Date") == "" {
			t.Errorf("%s is not signed: %v", row.Name, got.header)
		}
		for _, ours := range []string{"Authorization", "X-Amz-Date", "User-Agent", "Accept-Encoding"} {
			got.header.Del(ours)
		}
		if name == "delete several" {
			got.header.Del("Content-Md5") // for services that know no other checksum
		}
		if len(got.header) != 0 {
			t.Errorf("%s also has %v", row.Name, got.header)
		}
	}
}

// TestAddresses compares the addresses of objects with those of AWS's client. An empty one
// stands for a bucket that cannot be used.
func TestAddresses(t *testing.T) {
	type row struct {
		Bucket, Region, Endpoint, URL string
		PathStyle                     bool
	}
	for _, row := range append(table[row](t, "addresses.json"),
		row{"with.dots", "us-east-1", "http://127.0.0.1:9000", "http://127.0.0.1:9000/with.dots/k/1", false},
		row{"bucket", "not/a.region", "", "", false},
		row{"bucket", "", "", "", false},
		row{"bucket", "auto", "nonsense", "", false},
	) {
		r := &recorder{}
		client, err := s3api.New(s3api.Config{
			Bucket: row.Bucket, Region: row.Region, Endpoint: row.Endpoint, PathStyle: row.PathStyle,
			Credentials: s3api.Static(s3api.Keys{}), HTTP: &http.Client{Transport: r},
		})
		if err == nil {
			_, _ = client.Get(t.Context(), "k/1", "")
		}
		if r.url != row.URL || (err == nil) != (row.URL != "") {
			t.Errorf("%+v: got %s, %v", row, r.url, err)
		}
	}
	client, r := recorded(t, s3api.Config{Bucket: "bucket", Region: "aws-global", Credentials: s3api.Static(s3api.Keys{Access: "a"})})
	_ = client.HeadBucket(t.Context())
	if !strings.Contains(r.header.Get("Authorization"), "/us-east-1/s3/") || client.Region() != "us-east-1" {
		t.Errorf("aws-global: got %s", r.header.Get("Authorization"))
	}
}

func TestDirectoryBucketIsRefused(t *testing.T) {
	_, err := s3api.New(s3api.Config{Bucket: "b--use1-az4--x-s3", Region: "us-east-1"})
	if err == nil || !strings.Contains(err.Error(), "directory bucket") {
		t.Errorf("got %v", err)
	}
}

// TestFailingCredentials has a source of keys fail: nothing is sent, and nothing repeated.
func TestFailingCredentials(t *testing.T) {
	errKeys, calls := errors.New("no keys"), 0
	client, r := recorded(t, s3api.Config{
		Bucket: "bucket", Region: "us-east-1", MaxAttempts: 5,
		Credentials: func(context.Context) (s3api.Keys, error) { calls++; return s3api.Keys{}, errKeys },
	})
	if err := client.HeadBucket(t.Context()); !errors.Is(err, errKeys) || calls != 1 || r.url != "" {
		t.Errorf("got %v after %d calls, %q sent", err, calls, r.url)
	}
	if _, err := client.PresignGet(t.Context(), "a", time.Minute); !errors.Is(err, errKeys) {
		t.Errorf("address: got %v", err)
	}
}
