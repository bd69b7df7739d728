package realservers

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

func TestS3(t *testing.T) {
	shared := S3(t)
	if again := S3(t); again != shared {
		t.Error("a second server was started")
	}
	if a, b := shared.NewBucket(t), shared.NewBucket(t); a == b {
		t.Errorf("two buckets have the name %s", a)
	}
	own := OwnS3(t)
	if own == shared || own.Endpoint() == shared.Endpoint() {
		t.Fatal("a test's own server is the shared one")
	}
	bucket := own.NewBucket(t)
	own.Kill(t)
	if res, err := http.Get(own.Endpoint()); err == nil {
		res.Body.Close()
		t.Error("a killed server answers")
	}
	own.Restart(t)
	res, err := http.Get(own.Endpoint() + "/" + bucket)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("a bucket without credentials: got %s, want it denied", res.Status)
	}
	if _, err := os.Stat(filepath.Join(own.Files(bucket))); err != nil {
		t.Error(err)
	}
}
