// Package blobtest tests every implementation of blob.Store, driver or layer, against
// the same contract. A new one starts with a short test:
//
//	func TestStore(t *testing.T) {
//		open := func(t *testing.T) blob.Store { return mystore.New() }
//		blobtest.Run(t, open)
//		blobtest.RunModel(t, open)
//	}
//
// A bug found in one store becomes a case for all in package contract, which also
// runs outside go test. Faulty is a store that fails on demand, for the tests of
// layers; Bench runs the same benchmarks on all stores.
//
// Surviving a crash is left to the drivers' own tests.
package blobtest

import (
	"fmt"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest/contract"
	"github.com/stet-dev/stet/internal/testenv"
)

// Case is one promise of the contract.
type Case = contract.Case

// Cases returns the table that Run runs.
func Cases() []Case { return contract.Cases() }

// Options configure RunWith; the zero value does what Run does.
type Options struct {
	// MaxBytes skips the cases with larger blobs, for stores that refuse them by
	// design. 0 means no limit.
	MaxBytes int64
}

// quickBytes limits blobs in a quick run: with the largest ones, all packages
// together hash and store gigabytes.
const quickBytes = 8 << 20

// Run opens a store for each case and reports every broken promise.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	RunWith(t, open, nil)
}

// RunWith is Run with options.
func RunWith(t *testing.T, open func(t *testing.T) blob.Store, opts *Options) {
	if opts == nil {
		opts = &Options{}
	}
	limit := opts.MaxBytes
	if testenv.Quick() && limit == 0 {
		limit = quickBytes
	}
	for _, c := range Cases() {
		if limit > 0 && c.Bytes > limit {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Func(t.Context(), open(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Bench measures puts, gets, has and storing again, in sizes from 256 B to 1 MiB.
func Bench(b *testing.B, open func(b *testing.B) blob.Store) {
	for _, size := range []int{256, 4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("put/%d", size), func(b *testing.B) { benchPut(b, open(b), size) })
		b.Run(fmt.Sprintf("get/%d", size), func(b *testing.B) { benchGet(b, open(b), size) })
		b.Run(fmt.Sprintf("reput/%d", size), func(b *testing.B) { benchReput(b, open(b), size) })
	}
	b.Run("has", func(b *testing.B) { benchHas(b, open(b)) })
}

// benchBlob returns the n-th of a series of distinct blobs, without making random
// content in the measured loop.
func benchBlob(content []byte, n int) blob.Blob {
	copy(content, fmt.Sprintf("%016x", n))
	return blob.New(content)
}

func benchContent(size int) []byte {
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(i*i>>3 ^ i)
	}
	return content
}

func benchPut(b *testing.B, s blob.Store, size int) {
	content := benchContent(size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := s.Put(b.Context(), benchBlob(content, i)); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// benchStored puts a few blobs and returns their ids.
func benchStored(b *testing.B, s blob.Store, size int) []blob.ID {
	content := benchContent(size)
	ids := make([]blob.ID, 16)
	for i := range ids {
		stored := benchBlob(content, i)
		if err := s.Put(b.Context(), stored); err != nil {
			b.Fatal(err)
		}
		ids[i] = stored.ID
	}
	if err := s.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	return ids
}

func benchGet(b *testing.B, s blob.Store, size int) {
	ids := benchStored(b, s, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := s.Get(b.Context(), ids[i%len(ids)]); err != nil {
			b.Fatal(err)
		}
	}
}

func benchReput(b *testing.B, s blob.Store, size int) {
	content := benchContent(size)
	again := benchBlob(content, 0)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Put(b.Context(), again); err != nil {
			b.Fatal(err)
		}
	}
}

func benchHas(b *testing.B, s blob.Store) {
	ids := benchStored(b, s, 256)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Has(b.Context(), ids...); err != nil {
			b.Fatal(err)
		}
	}
}
