//go:build !linux

package workspace

import (
	"errors"
	"os"
)

// exchange swaps two names.
func exchange(a, b string) error {
	return errors.Join(os.Rename(a, a+"-"), os.Rename(b, a), os.Rename(a+"-", b))
}
