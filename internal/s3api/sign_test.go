package s3api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/s3api"
)

// table reads rows that were recorded from AWS's own client for Go.
func table[T any](t *testing.T, name string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var rows []T
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) == 0 {
		t.Fatalf("%s: %d rows, %v", name, len(rows), err)
	}
	return rows
}

const exampleAccess, exampleSecret = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

// TestSignatures compares signatures with those of AWS's client.
func TestSignatures(t *testing.T) {
	type row struct {
		Method, URL, Service, Region, Token, Hash, Authorization, Presigned string

		Time    time.Time
		Headers map[string]string
		Length  int64
	}
	for _, r := range table[row](t, "signatures.json") {
		keys := s3api.Keys{Access: exampleAccess, Secret: exampleSecret, Session: r.Token}
		scope := s3api.Scope{Region: r.Region, Service: r.Service}
		req := newRequest(t, r.Method, r.URL)
		req.ContentLength = r.Length
		for name, value := range r.Headers {
			req.Header.Set(name, value)
		}
		s3api.Sign(req, keys, scope, r.Hash, r.Time)
		if got := req.Header.Get("Authorization"); got != r.Authorization {
			t.Errorf("%s %s:\n got %s\nwant %s", r.Method, r.URL, got, r.Authorization)
		}
		got := s3api.Presign(newRequest(t, r.Method, r.URL), keys, scope, 15*time.Minute, r.Time)
		if got != r.Presigned {
			t.Errorf("address for %s %s:\n got %s\nwant %s", r.Method, r.URL, got, r.Presigned)
		}
	}
}

// TestPublishedSignatures has the examples of Amazon's manual.
func TestPublishedSignatures(t *testing.T) {
	keys := s3api.Keys{Access: "AKIAIOSFODNN7EXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	scope := s3api.Scope{Region: "us-east-1", Service: "s3"}
	when := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	empty := s3api.Hash(nil)
	for _, c := range []struct {
		url, part, want string
	}{
		{"https://examplebucket.s3.amazonaws.com/test.txt", "bytes=0-9", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"https://examplebucket.s3.amazonaws.com/?lifecycle", "", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{"https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", "", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	} {
		req := newRequest(t, http.MethodGet, c.url)
		req.Header.Set("X-Amz-Content-Sha256", empty)
		if c.part != "" {
			req.Header.Set("Range", c.part)
		}
		s3api.Sign(req, keys, scope, empty, when)
		if got := req.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+c.want) {
			t.Errorf("%s: got %s, want %s", c.url, got, c.want)
		}
	}
	got := s3api.Presign(newRequest(t, http.MethodGet, "https://examplebucket.s3.amazonaws.com/test.txt"), keys, scope, 24*time.Hour, when)
	if want := "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"; !strings.HasSuffix(got, "X-Amz-Signature="+want) {
		t.Errorf("address: got %s, want %s", got, want)
	}
}

func TestKeysHideTheirSecret(t *testing.T) {
	keys := s3api.Keys{Access: "access", Secret: "canary", Session: "canary"}
	holder := struct{ K *s3api.Keys }{&keys}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if got := fmt.Sprintf(verb, keys) + fmt.Sprintf(verb, holder.K); strings.Contains(got, "canary") {
			t.Errorf("%s shows %s", verb, got)
		}
	}
}

func newRequest(t *testing.T, method, address string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}
