package blobtest

import (
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest/contract"
	"github.com/stet-dev/stet/internal/testenv"
)

// RunObjects opens a bucket for each case of the contract of blob.Objects and
// reports every broken promise.
func RunObjects(t *testing.T, open func(t *testing.T) blob.Objects) {
	for _, c := range contract.ObjectCases() {
		if testenv.Quick() && c.Bytes > quickBytes {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Func(t.Context(), open(t), "blobtest/"); err != nil {
				t.Error(err)
			}
		})
	}
}
