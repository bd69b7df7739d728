package pgsearch_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/search/pgsearch"
	"github.com/stet-dev/stet/search/searchtest"
)

func TestMain(m *testing.M) { os.Exit(realservers.Run(m)) }

// versions are the releases of Postgres that are tested.
var versions = realservers.PostgresVersions()

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openDB(t testing.TB, dsn string) *pgsearch.DB {
	t.Helper()
	db, err := pgsearch.Open(t.Context(), dsn, nil)
	check(t, err)
	t.Cleanup(db.Close)
	return db
}

// TestContract has all cases in one database, each as a tenant of its own.
func TestContract(t *testing.T) {
	for _, version := range versions {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			dsn := realservers.Postgres(t, realservers.PostgresOptions{Version: version}).NewDatabase(t)
			if version == versions[0] { // also as a pooler of transactions needs it
				dsn += "&default_query_exec_mode=exec"
			}
			db := openDB(t, dsn)
			var tenants atomic.Int64
			searchtest.Run(t, func(t testing.TB, conversations *conversation.Store, blobs blob.Store, rows kv.Store) search.Searcher {
				ix, err := db.Index(fmt.Sprintf("tenant %d", tenants.Add(1)), conversations, blobs, rows)
				check(t, err)
				return ix
			})
		})
	}
}
