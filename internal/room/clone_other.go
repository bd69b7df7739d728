//go:build !linux

package room

import (
	"errors"
	"os"
)

// clone is not supported: contents come from the store.
func clone(*os.File, string, int64) error { return errors.ErrUnsupported }
