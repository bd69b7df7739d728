package fleet_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/kvtest"
)

// The suites of every store, over the whole assembly: each layer, the database,
// and a bucket that nearly everything goes to. Postgres 18, and the bucket that
// ignores conditions, wait for the long run.
func TestSuites(t *testing.T) {
	s3 := realservers.S3(t)
	suites(t, "postgres 15 and versitygw", 15, s3)
	if testenv.Long() {
		suites(t, "postgres 18 and versitygw", 18, s3)
		suites(t, "postgres 15 and rclone", 15, realservers.Rclone(t))
	}
}

func suites(t *testing.T, name string, version int, s3 *realservers.S3Server) {
	t.Run(name, func(t *testing.T) {
		useKeys(t, s3)
		config := fleet.Config{
			Database: realservers.Postgres(t, realservers.PostgresOptions{Version: version}).NewDatabase(t),
			Blobs:    s3.URL(s3.NewBucket(t)),
		}
		config.Postgres.LargeBytes = 256
		f := node(t, config)
		var tenants atomic.Int64
		open := func(t *testing.T) *stet.DB {
			t.Helper()
			db, err := f.Open(t.Context(), fmt.Sprintf("tenant-%d", tenants.Add(1)))
			if err != nil {
				t.Fatal(err)
			}
			return db
		}
		t.Run("blobs", func(t *testing.T) {
			blobtest.RunWith(t, func(t *testing.T) blob.Store { return open(t).Blobs() }, &blobtest.Options{MaxBytes: 1 << 20})
		})
		t.Run("rows", func(t *testing.T) {
			kvtest.Run(t, func(t *testing.T) kv.Store { return open(t).Rows() })
		})
		t.Run("together", func(t *testing.T) {
			kvtest.RunRefs(t, func(t *testing.T) (kv.Store, blob.Store) {
				db := open(t)
				return db.Rows(), db.Blobs()
			})
		})
		t.Run("linearizable", func(t *testing.T) {
			kvtest.RunLinearizable(t, func(t *testing.T) kv.Store { return open(t).Rows() })
		})
		if testenv.Long() {
			blobtest.RunModel(t, func(t *testing.T) blob.Store { return open(t).Blobs() })
			kvtest.RunModel(t, func(t *testing.T) kv.Store { return open(t).Rows() })
		}
	})
}
