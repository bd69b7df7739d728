package sqlite

import (
	"errors"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
)

// On a full disk there is no room for what an open database shares between
// processes. That is not damage, but no process may continue to write.
func TestNoRoomToOpen(t *testing.T) {
	err := sqlError("open database", sqlite3.IOERR_SHMSIZE)
	if !errors.Is(err, blob.ErrFull) || !unsafeToGoOn(err) {
		t.Errorf("got %v, safe to go on: %t", err, !unsafeToGoOn(err))
	}
}
