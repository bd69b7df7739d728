// Package encrypted is a layer that seals blobs, so that the store below sees
// neither their content nor which known contents it holds.
//
// It promises that without the keyring nothing can be read, that names below are
// keyed hashes, that every changed, cut, extended, moved or swapped envelope is
// refused (blob.ErrCorrupt), and that a missing key is reported differently from
// damage (blob.ErrWrongKey). It hides neither sizes nor the number of blobs, and it
// does not notice a store below that drops or restores whole blobs.
//
//	ring, err := keyring.Open("keys.json", keyring.KeyFile("key"))
//	layer := encrypted.New(inner, ring, &encrypted.Options{Tenant: "acme", Lister: inner})
//	store := blob.Checked(layer)
//	rows := sealed.New(innerRows, &sealed.Options{Ring: ring, Tenant: "acme", Names: layer.Name})
//
// Ids are not verified here, because a compressing layer above changes the bytes;
// blob.Checked at the top does that. docs/format/encrypted.md has the bytes.
package encrypted

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"sync/atomic"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/keyring"
)

// Errors of this layer, besides those of package blob.
var (
	// ErrUnknownEnvelope says that a blob is sealed in a form of another release.
	ErrUnknownEnvelope = fault.Named(fault.NewerFormat, "newer-envelope", "blob has an unknown envelope")
	// ErrNoKey says that a Store was made without the key that it needs.
	ErrNoKey = fault.Named(fault.WrongKey, "no-key", "no key was given")
)

// Options configure the layer; nil and the zero value work.
type Options struct {
	// Tenant separates users of one keyring: the blobs of one cannot be read or found
	// under another.
	Tenant string
	// Shared means that the store below also holds blobs of other keyrings. Finding
	// such blobs then does not mean that the keyring is wrong.
	Shared bool
	// Seed is the key of the compatible form, IV ‖ ciphertext ‖ tag under the
	// plain id.
	Seed *SeedKey
	// AllowSeedForm allows reading blobs in that form, if their SHA-256 matches.
	// After a migration (see Reencrypt) leave it unset, so that they are refused.
	AllowSeedForm bool
	// WriteSeedForm writes that form instead of our own, for a store that other
	// programs read. Blobs must then be whole and named by their SHA-256. Reading
	// it back is allowed too.
	WriteSeedForm bool
	// Lister, Sweeper, Replacer and Arrivals are the optional interfaces of the store
	// below, nil if it lacks them. This store then supports the same ones. They are
	// passed in rather than looked up, because a layer in between may hide them or change
	// what they see. Without Lister, the keyring of another store is not noticed: every
	// blob seems absent.
	Lister   blob.Lister
	Sweeper  blob.Sweeper
	Replacer blob.Replacer
	Arrivals blob.Arrivals
	// Unreadable, if set, is called for every stored blob that List, Sweep and
	// Reencrypt cannot open. They keep the blob and go on.
	Unreadable func(name blob.ID, err error)
}

// Store is a blob.Store over another one. It streams if the store below can, and lists,
// sweeps, replaces and reports arrivals if Options have the interface for it; otherwise
// the error wraps errors.ErrUnsupported.
type Store struct {
	inner  blob.Store
	ring   *keyring.Ring
	opts   Options
	macs   sync.Pool // of hash.Hash under the name key
	misuse error     // what every call returns if New lacked a key
	proven atomic.Bool
}

var (
	_ blob.Store    = (*Store)(nil)
	_ blob.Streamer = (*Store)(nil)
	_ blob.Lister   = (*Store)(nil)
	_ blob.Sweeper  = (*Store)(nil)
)

// New returns a store that keeps sealed blobs in inner. A nil ring is allowed with
// WriteSeedForm only; without the keys that the options require, every call fails
// with ErrNoKey.
func New(inner blob.Store, ring *keyring.Ring, opts *Options) *Store {
	s := &Store{inner: inner, ring: ring}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.WriteSeedForm {
		s.opts.AllowSeedForm = true
	}
	if s.opts.AllowSeedForm && s.opts.Seed == nil {
		s.misuse = fmt.Errorf("%w: the seed form needs Options.Seed", ErrNoKey)
		return s
	}
	if ring == nil {
		if !s.opts.WriteSeedForm {
			s.misuse = fmt.Errorf("%w: a keyring is needed", ErrNoKey)
		}
		return s
	}
	names, err := ring.NameKey()
	if err != nil {
		s.misuse = fmt.Errorf("%w: %w", ErrNoKey, err)
		return s
	}
	s.macs.New = func() any { return names.MAC() }
	return s
}

// Format prints only the name of the layer for every verb, so that no key is printed.
func (s *Store) Format(f fmt.State, _ rune) { io.WriteString(f, "encrypted.Store") }

// ready checks at the start of every call that it may go on.
func (s *Store) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.misuse
}

// Name returns the name of a blob in the store below. Rows that refer to blobs of
// this store must be committed with these names: see kv/sealed.
func (s *Store) Name(id blob.ID) blob.ID {
	if s.opts.WriteSeedForm || s.misuse != nil {
		return id
	}
	return s.sealedName(id)
}

func (s *Store) sealedName(id blob.ID) (name blob.ID) {
	mac := s.macs.Get().(hash.Hash)
	defer s.macs.Put(mac)
	mac.Reset()
	var prefix [64]byte
	mac.Write(appendTenant(append(prefix[:0], "stet blob name v1"...), s.opts.Tenant))
	mac.Write(id[:])
	mac.Sum(name[:0])
	return name
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if s.ring != nil {
		data, err := s.getSealed(ctx, s.inner, id)
		if !errors.Is(err, blob.ErrNotFound) {
			return data, err
		}
	}
	if s.opts.AllowSeedForm {
		return s.getSeed(ctx, id)
	}
	return nil, s.absent(ctx, id)
}

func (s *Store) getSealed(ctx context.Context, from blob.Reader, id blob.ID) ([]byte, error) {
	name := s.sealedName(id)
	data, err := from.Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("get sealed blob %s: %w", id, err)
	}
	return s.openWhole(id, name, data)
}

// Has implements blob.Store.
func (s *Store) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	has := make([]bool, len(ids))
	if s.ring != nil {
		var err error
		if has, err = s.hasSealed(ctx, s.inner, ids); err != nil {
			return nil, err
		}
	}
	if s.opts.AllowSeedForm {
		return has, s.hasSeed(ctx, ids, has)
	}
	for _, ok := range has {
		if !ok {
			return has, s.prove(ctx)
		}
	}
	return has, nil
}

func (s *Store) hasSealed(ctx context.Context, from blob.Reader, ids []blob.ID) ([]bool, error) {
	names := make([]blob.ID, len(ids))
	for i, id := range ids {
		names[i] = s.sealedName(id)
	}
	has, err := from.Has(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("look for sealed blobs: %w", err)
	}
	return has, nil
}

// Put implements blob.Store.
func (s *Store) Put(ctx context.Context, blobs ...blob.Blob) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	whole := make([]blob.Blob, len(blobs))
	out := make([]blob.Blob, len(blobs))
	for i, b := range blobs {
		var err error
		if whole[i], err = s.whole(ctx, whole[:i], b); err != nil {
			return err
		}
		if err := s.adoptBase(ctx, whole[:i], b.Base); err != nil {
			return err
		}
		if out[i], err = s.sealBlob(whole[i]); err != nil {
			return fmt.Errorf("seal blob %s: %w", b.ID, err)
		}
	}
	if err := s.inner.Put(ctx, out...); err != nil {
		return fmt.Errorf("put sealed blobs: %w", err)
	}
	return nil
}

// whole resolves an extension. It may extend an earlier blob of the same call, which
// cannot be read yet.
func (s *Store) whole(ctx context.Context, earlier []blob.Blob, b blob.Blob) (blob.Blob, error) {
	if b.Keep < 0 {
		return blob.Blob{}, fmt.Errorf("%w: %s keeps %d bytes of %s", blob.ErrMismatch, b.ID, b.Keep, b.Like)
	}
	for i := range earlier {
		if b.Keep > 0 && earlier[i].ID == b.Like {
			return blob.Whole(ctx, oneBlob{Store: s, data: earlier[i].Data}, b)
		}
	}
	return blob.Whole(ctx, s, b)
}

// oneBlob answers Get from memory.
type oneBlob struct {
	blob.Store
	data []byte
}

func (o oneBlob) Get(context.Context, blob.ID) ([]byte, error) { return o.data, nil }

// sealBlob turns a whole blob into its form in the store below.
func (s *Store) sealBlob(b blob.Blob) (blob.Blob, error) {
	out := blob.Blob{LocalOnly: b.LocalOnly, Given: true}
	var err error
	if s.opts.WriteSeedForm {
		out.ID = b.ID
		out.Data, err = s.opts.Seed.seal(b)
		return out, err
	}
	if !b.Base.IsZero() {
		out.Base = s.sealedName(b.Base)
	}
	out.ID = s.sealedName(b.ID)
	out.Data, err = s.sealWhole(b.ID, b.Base, out.ID, b.Data)
	return out, err
}

// Flush implements blob.Store.
func (s *Store) Flush(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.inner.Flush(ctx)
}
