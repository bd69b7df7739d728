// Package kvtest is the conformance suite of kv.Store. A driver's test is a few
// lines:
//
//	func TestConformance(t *testing.T) {
//		kvtest.Run(t, func(t *testing.T) kv.Store { return open(t) })
//	}
//
// [Run] checks every sentence of the contract and random histories; [RunRefs] checks
// rows together with the blobs that they refer to; [RunLinearizable] lets clients
// compete for registers and checks the history. Package kvcases has the checks alone,
// for use outside go test.
package kvtest

import (
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/kvtest/kvcases"
)

// Case is one check of the contract.
type Case = kvcases.Case

// Cases returns the checks of the contract as a table.
func Cases() []Case { return kvcases.All() }

// Run checks a store against the contract: all Cases, each with its own store, and
// random histories against a model.
func Run(t *testing.T, open func(t *testing.T) kv.Store) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Func(t.Context(), open(t)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("random histories", func(t *testing.T) { RunModel(t, open) })
}

// RunRefs checks the promises about blobs that rows refer to. The two stores that
// open returns belong together.
func RunRefs(t *testing.T, open func(t *testing.T) (kv.Store, blob.Store)) {
	for _, c := range kvcases.Refs() {
		t.Run(c.Name, func(t *testing.T) {
			rows, blobs := open(t)
			if err := c.Func(t.Context(), rows, blobs); err != nil {
				t.Error(err)
			}
		})
	}
}
