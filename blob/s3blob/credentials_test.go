package s3blob_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob/s3blob"
	"github.com/stet-dev/stet/internal/realservers"
)

// withoutSettings hides the settings of this machine for AWS.
func withoutSettings(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL",
		"AWS_ENDPOINT_URL_S3", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("USERPROFILE", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

// signers serves a bucket without objects and notes who asks.
func signers(t *testing.T) (url string, seen func() string) {
	t.Helper()
	var last atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="), "/")
		last.Store(strings.TrimSpace(who + " " + r.Header.Get("X-Amz-Security-Token") + " " + r.URL.Path))
		fmt.Fprint(w, page(""))
	}))
	t.Cleanup(server.Close)
	return server.URL, func() string { return fmt.Sprint(last.Load()) }
}

func TestCredentialsOfTheCaller(t *testing.T) {
	withoutSettings(t)
	url, seen := signers(t)
	calls := 0
	b := open(t, realservers.S3URL(url, "bucket"), &s3blob.Options{Credentials: func(context.Context) (s3blob.Keys, error) {
		calls++
		return s3blob.Keys{Access: "mine", Secret: "canary", Session: "session", Expires: time.Now().Add(time.Hour)}, nil
	}})
	for range 3 {
		if err := b.ListObjects(t.Context(), "", "", nil); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := seen(), "mine session /bucket"; got != want || calls != 1 {
		t.Errorf("got %q after %d calls, want %q after one", got, calls, want)
	}
	keys := s3blob.Keys{Access: "mine", Secret: "canary", Session: "canary"}
	if got := fmt.Sprintf("%v %+v %#v", keys, &keys, keys); strings.Contains(got, "canary") {
		t.Errorf("keys show a secret: %s", got)
	}
	errGone := errors.New("gone")
	_, err := s3blob.Open(t.Context(), realservers.S3URL(url, "bucket"), &s3blob.Options{Credentials: func(context.Context) (s3blob.Keys, error) { return s3blob.Keys{}, errGone }})
	if !errors.Is(err, s3blob.ErrDenied) || !errors.Is(err, errGone) {
		t.Errorf("a source without keys: got %v", err)
	}
}

func TestSettingsOfTheEnvironment(t *testing.T) {
	withoutSettings(t)
	url, seen := signers(t)
	if _, err := s3blob.Open(t.Context(), "s3://bucket?region=eu-west-1", nil); !errors.Is(err, s3blob.ErrDenied) {
		t.Errorf("nothing set: got %v, want %v", err, s3blob.ErrDenied)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "env")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "canary")
	if _, err := s3blob.Open(t.Context(), "s3://bucket", nil); err == nil || !strings.Contains(err.Error(), "?region=") {
		t.Errorf("no region: got %v", err)
	}
	t.Setenv("AWS_ENDPOINT_URL", url)
	b := open(t, "s3://bucket", nil)
	if err := b.ListObjects(t.Context(), "", "", nil); err != nil || seen() != "env  /bucket" {
		t.Errorf("got %q, %v", seen(), err)
	}
	_, err := s3blob.Open(t.Context(), "s3://b--use1-az4--x-s3?region=us-east-1", nil)
	if err == nil || !strings.Contains(err.Error(), "directory bucket") {
		t.Errorf("a directory bucket: got %v", err)
	}
}

// TestBucketOfAnotherRegion has a service name the region to use.
func TestBucketOfAnotherRegion(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amz-Bucket-Region", "eu-west-1")
		w.WriteHeader(http.StatusMovedPermanently)
		fmt.Fprint(w, "<Error><Code>PermanentRedirect</Code><Message>elsewhere</Message></Error>")
	}))
	defer server.Close()
	b := open(t, realservers.S3URL(server.URL, "bucket"), &s3blob.Options{Credentials: s3blob.StaticKeys("access", "secret")})
	if err := b.Check(t.Context()); !errors.Is(err, s3blob.ErrDenied) || !strings.Contains(err.Error(), "add ?region=eu-west-1") {
		t.Errorf("check: got %v", err)
	}
	if err := b.ListObjects(t.Context(), "", "", nil); !errors.Is(err, s3blob.ErrDenied) || !strings.Contains(err.Error(), "in region eu-west-1") {
		t.Errorf("list: got %v", err)
	}
}
