package sqlite

import (
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/kvtest"
)

// openTest opens a fresh store that is closed with the test.
func openTest(t testing.TB, opts *Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), t.TempDir(), opts)
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

func openRows(t *testing.T) kv.Store { return openTest(t, nil).Rows() }

func openBlobs(t *testing.T) blob.Store { return openTest(t, nil).Blobs() }

func openBoth(t *testing.T) (kv.Store, blob.Store) {
	db := openTest(t, nil)
	return db.Rows(), db.Blobs()
}

func TestBlobs(t *testing.T)            { blobtest.Run(t, openBlobs) }
func TestBlobsModel(t *testing.T)       { blobtest.RunModel(t, openBlobs) }
func TestRows(t *testing.T)             { kvtest.Run(t, openRows) }
func TestRowsRefs(t *testing.T)         { kvtest.RunRefs(t, openBoth) }
func TestRowsModel(t *testing.T)        { kvtest.RunModel(t, openRows) }
func TestRowsLinearizable(t *testing.T) { kvtest.RunLinearizable(t, openRows) }

// openTwice opens one directory as two processes do.
func openTwice(t *testing.T) (kv.Store, blob.Store) {
	one := openTest(t, nil)
	other := openAgain(t, one)
	return kvtest.Handles(one.Rows(), other.Rows()), blobtest.Handles(one.Blobs(), other.Blobs())
}

// TestTwoProcesses holds two openings of one directory together to the contract.
func TestTwoProcesses(t *testing.T) {
	blobtest.RunWith(t, func(t *testing.T) blob.Store {
		_, blobs := openTwice(t)
		return blobs
	}, &blobtest.Options{MaxBytes: 1<<20 + 1})
	kvtest.RunRefs(t, openTwice)
	kvtest.Run(t, func(t *testing.T) kv.Store {
		rows, _ := openTwice(t)
		return rows
	})
}
