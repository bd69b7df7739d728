package s3blob_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/s3blob"
)

// do sends a request as a client that knows nothing of S3 does.
func do(t *testing.T, method, address string, body []byte) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, got
}

func TestPresigner(t *testing.T) {
	ctx, b := t.Context(), newBucket(t)
	signer := &s3blob.Presigner{Bucket: b}
	for i, ids := range [][2]string{{"bc-1", "snap"}, {"a/b c", "ä%.:"}, {"..", "."}} {
		up, err := signer.Presign(ctx, ids[0], ids[1], true)
		if err != nil {
			t.Fatal(err)
		}
		down, err := signer.Presign(ctx, ids[0], ids[1], false)
		if err != nil {
			t.Fatal(err)
		}
		data := content(uint64(i), 3000)
		if status, answer := do(t, http.MethodPut, up, data); status != 200 {
			t.Errorf("%q: upload: got %d %s", ids, status, answer)
		}
		if status, got := do(t, http.MethodGet, down, nil); status != 200 || !bytes.Equal(got, data) {
			t.Errorf("%q: download: got %d and %d bytes", ids, status, len(got))
		}
		if status, _ := do(t, http.MethodPut, down, data); status == 200 {
			t.Errorf("%q: the address to download from takes an upload", ids)
		}
		// What was uploaded is an object like any other.
		if got, err := read(ctx, b, s3blob.SnapshotKey(ids[0], ids[1]), 0, -1); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%q: open: got %d bytes, %v", ids, len(got), err)
		}
	}
	for _, ids := range [][2]string{{"", "s"}, {"a", ""}, {"a", strings.Repeat("x", 2000)}} {
		if _, err := signer.Presign(ctx, ids[0], ids[1], true); !errors.Is(err, blob.ErrInvalidID) {
			t.Errorf("%.5q: got %v, want %v", ids, err, blob.ErrInvalidID)
		}
	}
	for _, ttl := range []time.Duration{0, -time.Hour, 8 * 24 * time.Hour} {
		_, getErr := b.PresignGet(ctx, "a", ttl)
		_, putErr := b.PresignPut(ctx, "a", ttl)
		if getErr == nil || putErr == nil {
			t.Errorf("valid for %s: no error", ttl)
		}
	}
}

// TestSnapshotKeysDiffer holds the escaping to be injective.
func TestSnapshotKeysDiffer(t *testing.T) {
	seen := make(map[string]string)
	texts := []string{"a", "A", ".", "..", "a.b", "a/b", "a.2fb", "a%2fb", "a b", "ä", "\xff", "\x00", "-", "a-b", "_", "a.2e2fb"}
	for _, agent := range texts {
		for _, snapshot := range texts {
			key, ids := s3blob.SnapshotKey(agent, snapshot), fmt.Sprintf("%q %q", agent, snapshot)
			if other, ok := seen[key]; ok {
				t.Errorf("%s and %s are both %s", ids, other, key)
			}
			seen[key] = ids
		}
	}
}
