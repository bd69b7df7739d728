package sqlite

import (
	"fmt"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/stet-dev/stet/kv"
)

// Alone prevents the store in dir from being opened for writing until release is called.
// It fails with kv.ErrBusy if the store is already open for writing. Readers are not
// affected.
func Alone(dir string) (release func() error, err error) {
	lock := flock.New(filepath.Join(dir, lockName))
	alone, err := lock.TryLock()
	if err != nil {
		return nil, fileError("lock", err)
	}
	if !alone {
		return nil, fmt.Errorf("%w: another process uses the store", kv.ErrBusy)
	}
	return lock.Close, nil
}
