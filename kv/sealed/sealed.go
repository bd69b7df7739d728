// Package sealed is a layer that ties every row's value to its key, so that a changed
// bit or a value moved to another row is an error. With a keyring, values are also
// encrypted.
//
// It promises that Get and Scan return what Commit was given for that key, or an
// error that names the key (kv.ErrCorrupt; blob.ErrWrongKey for a data key that the
// ring lacks). Keys, versions and the sizes of values stay visible below, and an
// older value put back into the same row is not noticed: the driver assigns versions
// at commit, after the value is sealed, so they cannot be part of the seal.
//
//	names := encrypted.New(innerBlobs, ring, nil)
//	rows := sealed.New(innerRows, &sealed.Options{Ring: ring, Names: names.Name})
//	err := rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: "head:c1", Value: root}}})
//
// KeysOnly scans pass through unverified: there is no value to verify. A scan
// ends at the first row that does not verify; to find all of them, scan the keys
// and Get each. docs/format/sealed.md has the bytes.
package sealed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
)

// ErrUnknownEnvelope says that a row is sealed in a form of another release.
var ErrUnknownEnvelope = fault.Under(kv.ErrNewerFormat, "newer-row-envelope", "row has an unknown envelope")

// Options configure the layer; nil and the zero value work.
type Options struct {
	// Ring encrypts values. Without it they are only checked, which finds damage but
	// not tampering that recomputes the checksum.
	Ring *keyring.Ring
	// AllowUnkeyed allows reading rows written without a ring, while a store is moved
	// to one (see Reseal). Otherwise they are refused, because anyone can make them.
	AllowUnkeyed bool
	// Tenant separates users of one keyring or one store.
	Tenant string
	// Names maps the ids of Batch.Refs to the names of those blobs in the store
	// below, as encrypted.Store.Name does. Nil keeps them.
	Names func(blob.ID) blob.ID
}

// Store is a kv.Store over another one.
type Store struct {
	inner   kv.Store
	opts    Options
	ciphers sync.Map // of *xaes by keyring.KeyID
}

var _ kv.Store = (*Store)(nil)

// New returns a store that keeps sealed rows in inner.
func New(inner kv.Store, opts *Options) *Store {
	s := &Store{inner: inner}
	if opts != nil {
		s.opts = *opts
	}
	return s
}

// Format prints only the name of the layer for every verb, so that no key is printed.
func (s *Store) Format(f fmt.State, _ rune) { io.WriteString(f, "sealed.Store") }

// Get implements kv.Store.
func (s *Store) Get(ctx context.Context, key string) (kv.Row, error) {
	row, err := s.inner.Get(ctx, key)
	if err != nil {
		return kv.Row{}, err
	}
	if row.Key != key {
		return kv.Row{}, fmt.Errorf("%w: %q: the store below returned row %q", kv.ErrCorrupt, key, row.Key)
	}
	if row.Value, err = s.open(key, row.Value); err != nil {
		return kv.Row{}, err
	}
	return row, nil
}

// Scan implements kv.Store.
func (s *Store) Scan(ctx context.Context, r kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	rows := s.inner.Scan(ctx, r, opts)
	if opts.KeysOnly {
		return rows
	}
	return func(yield func(kv.Row, error) bool) {
		for row, err := range rows {
			if err == nil {
				row.Value, err = s.open(row.Key, row.Value)
			}
			if err != nil {
				yield(kv.Row{}, err)
				return
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// ScanBeside implements kv.Store.
func (s *Store) ScanBeside(ctx context.Context, r kv.Range, opts kv.ScanOptions, beside ...kv.Beside) ([]kv.Found, error) {
	all, err := s.inner.ScanBeside(ctx, r, opts, beside...)
	for _, found := range all {
		for i, row := range found.Rows {
			if row.Key == "" {
				continue
			}
			value, err := s.open(row.Key, row.Value)
			if err != nil {
				found.Rows[i], found.Errs[i] = kv.Row{}, err
				continue
			}
			found.Rows[i].Value = value
		}
	}
	return all, err
}

// Commit implements kv.Store. Values within 56 bytes of kv.MaxValue are stored
// deflated, because the seal needs room; one that does not shrink fails with
// kv.ErrTooLarge.
func (s *Store) Commit(ctx context.Context, b *kv.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.Check(); err != nil {
		return err
	}
	below := *b
	below.Set = make([]kv.Set, len(b.Set))
	for i, set := range b.Set {
		value, err := s.seal(set.Key, set.Value)
		if err != nil {
			return err
		}
		below.Set[i] = kv.Set{Key: set.Key, Value: value}
	}
	if s.opts.Names == nil || len(b.Refs) == 0 {
		return s.inner.Commit(ctx, &below)
	}
	ids := make(map[blob.ID]blob.ID, len(b.Refs))
	below.Refs = make([]blob.ID, len(b.Refs))
	for i, id := range b.Refs {
		below.Refs[i] = s.opts.Names(id)
		ids[below.Refs[i]] = id
	}
	return missingAs(ids, s.inner.Commit(ctx, &below))
}

// missingAs restores the caller's ids of missing blobs.
func missingAs(ids map[blob.ID]blob.ID, err error) error {
	var missing *kv.MissingBlobsError
	if !errors.As(err, &missing) {
		return err
	}
	out := make([]blob.ID, len(missing.IDs))
	for i, name := range missing.IDs {
		id, ok := ids[name]
		if !ok {
			id = name // not in the batch: the store below has its own reason
		}
		out[i] = id
	}
	return &kv.MissingBlobsError{IDs: out}
}

// Watch implements kv.Store.
func (s *Store) Watch(ctx context.Context, r kv.Range) <-chan struct{} { return s.inner.Watch(ctx, r) }
