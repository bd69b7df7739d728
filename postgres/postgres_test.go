package postgres

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/kvtest"
)

func TestMain(m *testing.M) { os.Exit(realservers.Run(m)) }

// newDatabase makes a database on a server that the tests share.
func newDatabase(t testing.TB, version int) string {
	t.Helper()
	return realservers.Postgres(t, realservers.PostgresOptions{Version: version}).NewDatabase(t)
}

// openNode opens a database for one test.
func openNode(t testing.TB, dsn string, opts *Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), dsn, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

func tenantOf(t testing.TB, db *DB, name string) *Tenant {
	t.Helper()
	tenant, err := db.Tenant(name)
	if err != nil {
		t.Fatal(err)
	}
	return tenant
}

var tenantCount atomic.Int64

// newTenant returns a tenant that nobody has used.
func newTenant(t testing.TB, db *DB) *Tenant {
	t.Helper()
	return tenantOf(t, db, fmt.Sprintf("tenant %d", tenantCount.Add(1)))
}

// suites runs fn on the versions of the server. Where a suite takes long, the
// newer one is left to long runs: its own answers are few.
func suites(t *testing.T, opts *Options, long bool, fn func(t *testing.T, db *DB)) {
	for _, version := range realservers.PostgresVersions() {
		if version != 15 && long && !testenv.Long() {
			continue
		}
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			fn(t, openNode(t, newDatabase(t, version), opts))
		})
	}
}

func TestRows(t *testing.T) {
	suites(t, nil, false, func(t *testing.T, db *DB) {
		kvtest.Run(t, func(t *testing.T) kv.Store { return newTenant(t, db).Rows() })
	})
}

func TestRowsRefs(t *testing.T) {
	suites(t, nil, false, func(t *testing.T, db *DB) {
		kvtest.RunRefs(t, func(t *testing.T) (kv.Store, blob.Store) {
			tenant := newTenant(t, db)
			return tenant.Rows(), tenant.Blobs()
		})
	})
}

func TestRowsLinearizable(t *testing.T) {
	suites(t, nil, true, func(t *testing.T, db *DB) {
		kvtest.RunLinearizable(t, func(t *testing.T) kv.Store { return newTenant(t, db).Rows() })
	})
}

// caseBytes bounds the blobs of the suite in short runs: the database takes 64
// MiB in seconds, and the bucket test sends as many to a bucket.
const caseBytes = 8 << 20

func TestBlobs(t *testing.T) {
	opts := &blobtest.Options{MaxBytes: caseBytes}
	if testenv.Long() {
		opts = nil
	}
	suites(t, nil, false, func(t *testing.T, db *DB) {
		blobtest.RunWith(t, func(t *testing.T) blob.Store { return newTenant(t, db).Blobs() }, opts)
	})
}

func TestBlobsModel(t *testing.T) {
	suites(t, nil, true, func(t *testing.T, db *DB) {
		blobtest.RunModel(t, func(t *testing.T) blob.Store { return newTenant(t, db).Blobs() })
	})
}

// TestBlobsInObjects sends nearly everything to the bucket.
func TestBlobsInObjects(t *testing.T) {
	opts := &Options{Objects: memblob.NewObjects(), LargeBytes: 16}
	suites(t, opts, true, func(t *testing.T, db *DB) {
		open := func(t *testing.T) blob.Store { return newTenant(t, db).Blobs() }
		blobtest.Run(t, open)
		blobtest.RunModel(t, open)
		kvtest.RunRefs(t, func(t *testing.T) (kv.Store, blob.Store) {
			tenant := newTenant(t, db)
			return tenant.Rows(), tenant.Blobs()
		})
	})
}

// TestWithoutPreparedStatements is what a pooler of transactions needs.
func TestWithoutPreparedStatements(t *testing.T) {
	for _, mode := range []string{"exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			db := openNode(t, newDatabase(t, 15)+"&default_query_exec_mode="+mode, nil)
			kvtest.RunRefs(t, func(t *testing.T) (kv.Store, blob.Store) {
				tenant := newTenant(t, db)
				return tenant.Rows(), tenant.Blobs()
			})
		})
	}
}
