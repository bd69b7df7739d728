// Package kv defines what a store of small rows promises: ordered string keys,
// versions, and one way to change them, all or nothing.
//
// A [Batch] names what must still hold (expectations), what changes (sets,
// deletes, deleted ranges) and which blobs the new rows refer to. Commit applies
// all of it durably, or nothing:
//
//	row, err := store.Get(ctx, "head:c1")
//	err = store.Commit(ctx, &kv.Batch{
//		Expect: []kv.Expect{{Key: "head:c1", Version: row.Version}},
//		Set:    []kv.Set{{Key: "head:c1", Value: newRoot}},
//		Refs:   []blob.ID{newRootID},
//	})
//	if errors.Is(err, kv.ErrConflict) { … another writer was faster … }
//
// Blobs that were put before and are named in Refs become durable in the same commit.
// The meaning of keys is left to internal/keyspace and the services.
package kv

import (
	"context"
	"iter"
	"slices"

	"github.com/stet-dev/stet/blob"
)

// Row is a stored row.
type Row struct {
	Key   string
	Value []byte
	// Version changes with every write of the row and is never used twice for one
	// key, not even after the row was deleted and created again. Only equality is
	// meaningful. It is never 0.
	Version uint64
}

// Expect is a condition of a Batch: the row is at this version or, with version
// 0, does not exist.
type Expect struct {
	Key     string
	Version uint64
}

// Set is a change of a Batch: the row gets this value.
type Set struct {
	Key   string
	Value []byte
}

// Range is the set of keys k with Start <= k < End. An empty End means "to the last
// key".
type Range struct{ Start, End string }

// Contains reports whether key lies in the range.
func (r Range) Contains(key string) bool {
	return key >= r.Start && (r.End == "" || key < r.End)
}

// Empty reports whether no key can lie in the range.
func (r Range) Empty() bool { return r.End != "" && r.End <= r.Start }

// Batch is one all-or-nothing change. Expectations are checked against the rows
// before the change. Deletes and deleted ranges are applied before sets, so that a
// batch may replace everything under a prefix; deleting a missing row is not an
// error. No key may be set twice.
type Batch struct {
	Expect      []Expect
	DeleteRange []Range
	Delete      []string
	Set         []Set
	// Refs are the blobs that the new rows refer to and the old ones did not. The
	// commit fails with a MissingBlobsError if one is not stored. Otherwise they are
	// durable when it returns, and a running collector keeps them.
	Refs []blob.ID
}

// Clone copies a batch with its values, for a driver that may still read it after the
// caller's context has ended.
func (b *Batch) Clone() *Batch {
	c := &Batch{
		Expect:      slices.Clone(b.Expect),
		DeleteRange: slices.Clone(b.DeleteRange),
		Delete:      slices.Clone(b.Delete),
		Set:         slices.Clone(b.Set),
		Refs:        slices.Clone(b.Refs),
	}
	for i := range c.Set {
		c.Set[i].Value = append([]byte{}, c.Set[i].Value...)
	}
	return c
}

// ScanOptions configure a scan; the zero value gives all rows in ascending order.
type ScanOptions struct {
	// Reverse gives the rows in descending order of keys.
	Reverse bool
	// Limit ends the scan after that many rows; 0 means no limit.
	Limit int
	// KeysOnly leaves Row.Value nil.
	KeysOnly bool
}

// Store keeps rows. It is safe for concurrent use, and for use by several processes
// if the driver says so. Values are copied in and out. A context that is done makes
// every method return its error; a Commit whose context ends midway may or may not
// have happened.
type Store interface {
	// Get returns a row, or an error that wraps ErrNotFound.
	Get(ctx context.Context, key string) (Row, error)
	// Scan yields the rows of a range in key order. A scan sees, for each row, some
	// committed version; a batch that commits meanwhile may be seen in part, unless
	// the driver says otherwise. After an error the sequence ends.
	Scan(ctx context.Context, r Range, opts ScanOptions) iter.Seq2[Row, error]
	// ScanBeside returns the keys of a range, ordered and limited like those of Scan, and
	// the rows that belong to each, for the price of one read if the driver can do that.
	// Like a scan it sees some committed version of each row. KeysOnly has no effect.
	ScanBeside(ctx context.Context, r Range, opts ScanOptions, beside ...Beside) ([]Found, error)
	// Commit applies a batch durably, or returns an error and changes nothing:
	// ErrConflict (an expectation failed), a MissingBlobsError, ErrInvalidKey,
	// ErrTooLarge, or a failure of the store. Only after ErrUncertain may the batch
	// have been applied.
	Commit(ctx context.Context, b *Batch) error
	// Watch returns a channel that gets a value soon after rows in the range may have
	// changed, until ctx is done. Hints can be lost, merged or wrong: read the rows,
	// and poll from time to time if missing a change would matter.
	Watch(ctx context.Context, r Range) <-chan struct{}
}
