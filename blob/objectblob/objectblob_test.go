package objectblob_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/objectblob"
	"github.com/stet-dev/stet/blob/s3blob"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/pack"
)

func TestMain(m *testing.M) { os.Exit(realservers.Run(m)) }

func TestContractInADirectory(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return objectblob.New(pack.NewDir(t.TempDir()), "blobs/") })
}

func TestContractInABucket(t *testing.T) {
	testenv.OnlyFull(t)
	s := realservers.S3(t)
	access, secret := s.Keys()
	bucket, err := s3blob.Open(t.Context(), s.URL(s.NewBucket(t)), &s3blob.Options{Credentials: s3blob.StaticKeys(access, secret)})
	if err != nil {
		t.Fatal(err)
	}
	blobtest.Run(t, func(t *testing.T) blob.Store { // each case its own prefix
		return objectblob.New(bucket, strings.ReplaceAll(t.Name(), "/", "-")[len("TestContractInABucket"):]+"x/")
	})
}
