// Package blob names immutable bytes by their SHA-256 and defines what a store of
// them promises.
//
// A [Store] keeps blobs; drivers (memblob, sqlite, s3blob, …) hold data and
// layers (cached, encrypted, compressed, …) wrap another store. Every one of
// them keeps the contract written at [Store] and passes the suite in blobtest.
// A stack reads as a sentence, from the caller down to the disk:
//
//	store := blob.Checked(cached.New(compressed.New(memblob.New(), nil), nil))
//	b := blob.New([]byte("hello"))
//	err := store.Put(ctx, b)         // may still be in memory
//	err = store.Flush(ctx)           // now it is durable
//	data, err := store.Get(ctx, b.ID)
//
// Other packages decide what a blob means, what refers to it and when it may be removed.
package blob

import (
	"context"
	"hash/maphash"
	"io"
)

// Blob is one item of a Put: some content and the name it must have.
type Blob struct {
	// ID is the SHA-256 of the whole content.
	ID ID
	// Data is the whole content or, if Keep is positive, the part after the first
	// Keep bytes of the blob Like.
	Data []byte
	// Like names a stored blob with similar content, so that a store may keep only
	// the difference. It is a hint, unless Keep is set: see Data.
	Like ID
	// Keep is the number of bytes that this blob begins with and shares with Like.
	// With it a long list grows by an entry without loading the whole list.
	Keep int64
	// Base is set by layers, for the store below: the stored bytes cannot be read
	// back without the blob Base. Drivers record it and report it (see Info), so that
	// a collector never removes a base that others need. A Put whose base is absent
	// fails with ErrNotFound, because the blob could never be read. Callers at the
	// top of a stack leave it zero.
	Base ID
	// LocalOnly keeps the blob out of remotes that a write-through layer feeds.
	LocalOnly bool
	// Given is set by layers that made Data for this Put alone. The store below may
	// then keep the slice.
	Given bool

	// made is the ID that this package computed over Data (and Like's first bytes), and
	// sum a cheap sum of what it was computed over. Checked then need not compute the
	// ID again.
	made ID
	sum  uint64
}

// New returns the blob with the given content. It keeps data; the caller must not
// change it until Put has returned. Checked refuses bytes that changed before Put.
func New(data []byte) Blob {
	b := Blob{ID: Sum(data), Data: data}
	b.vouch()
	return b
}

// vouch records that this package computed the ID over Data.
func (b *Blob) vouch() { b.made, b.sum = b.ID, b.cheapSum() }

// vouched reports whether ID and content are unchanged since vouch. A blob that this
// package did not make has a zero made, which no content has as its ID.
func (b *Blob) vouched() bool {
	return !b.made.IsZero() && b.made == b.ID && b.sum == b.cheapSum()
}

var cheapSeed = maphash.MakeSeed()

// cheapSum is a sum of the content for this process: 64 bits, at some thirtieth of the
// time of SHA-256. It notices bytes that were changed by mistake.
func (b *Blob) cheapSum() uint64 {
	sum := maphash.Bytes(cheapSeed, b.Data)
	if b.Keep == 0 { // Like is only a hint
		return sum
	}
	return maphash.Comparable(cheapSeed, extended{b.Like, b.Keep, sum})
}

// extended is everything that the ID of an extension depends on.
type extended struct {
	like ID
	keep int64
	sum  uint64
}

// Store keeps blobs. It is safe for concurrent use.
//
// Memory: a store neither keeps nor changes a slice given to Put after Put has
// returned, and a slice returned by Get belongs to the caller.
//
// Context: a call with a context that is already done returns its error and does
// nothing. A call whose context ends midway returns an error; a Put may then have
// stored some of its blobs, which is harmless.
type Store interface {
	// Get returns the content of a blob, or an error that wraps ErrNotFound if the
	// store does not have it, or ErrCorrupt if it cannot return the right bytes.
	Get(ctx context.Context, id ID) ([]byte, error)
	// Put stores blobs. Storing a blob again is cheap and changes nothing. After Put
	// returns nil, all users of this store value can read the blobs. They are durable
	// only after Flush, or a kv commit that names them, has returned.
	Put(ctx context.Context, blobs ...Blob) error
	// Has reports for each id whether the store has it.
	Has(ctx context.Context, ids ...ID) ([]bool, error)
	// Flush returns once every blob of every Put that returned before the call is
	// durable everywhere the store keeps copies. It returns every error that
	// prevented a blob from becoming durable; no error is only logged.
	Flush(ctx context.Context) error
}

// Streamer is implemented by stores that can write and read a blob without holding
// all of it in memory. Use Open and PutFrom, which work with any Store.
type Streamer interface {
	// Open returns a reader over the blob's content.
	Open(ctx context.Context, id ID) (io.ReadCloser, error)
	// PutFrom stores a blob whose size bytes are read from r. If r ends early or has
	// more than size bytes, PutFrom fails and stores nothing.
	PutFrom(ctx context.Context, id ID, r io.Reader, size int64) error
}

// Reader is the reading side of a Store.
type Reader interface {
	// Get and Has are those of Store.
	Get(ctx context.Context, id ID) ([]byte, error)
	Has(ctx context.Context, ids ...ID) ([]bool, error)
}

// ManyReader is implemented by stores for which many reads in a row cost less than
// separate calls. Use ReadMany, which works with any Store.
type ManyReader interface {
	// ReadMany calls fn once, with a reader for fn alone that is invalid afterwards. The
	// reader sees everything that is stored at the time of the read, like the store
	// itself. Other calls on the store must not wait for fn. fn must not call the store,
	// because the reader may hold something that such a call needs.
	ReadMany(ctx context.Context, fn func(Reader) error) error
}

// Info describes a stored blob without its content.
type Info struct {
	// ID is the name of the blob in the store.
	ID ID
	// Stored is the number of bytes that the blob takes in the store.
	Stored int64
	// Base is the blob that the stored bytes depend on, or zero.
	Base ID
}

// Lister is implemented by stores that can list their blobs.
type Lister interface {
	// List calls fn for every blob with an ID greater than after, in order, until
	// fn returns an error, which List returns. Blobs that are put or removed
	// meanwhile may or may not be seen.
	List(ctx context.Context, after ID, fn func(Info) error) error
}

// Sweeper is implemented by stores from which a collector can remove blobs while
// writers go on. Begin opens a generation; the collector then finds out what is live;
// Sweep removes the rest. A blob that is put (even again) or referenced by a kv
// commit after Begin returned belongs to the new generation and stays.
type Sweeper interface {
	// Begin opens a generation and returns its number.
	Begin(ctx context.Context) (uint64, error)
	// Sweep removes the blobs that are older than the generation, were stored at
	// least grace seconds ago, are not live and are not a base of a blob that stays.
	// With opts.DryRun it only counts.
	Sweep(ctx context.Context, generation uint64, opts SweepOptions) (SweepResult, error)
}

// SweepOptions say what Sweep keeps.
type SweepOptions struct {
	// Live reports whether a blob is needed. It must not call the store.
	Live func(ID) bool
	// GraceSeconds is the minimum age of a blob to be removed.
	GraceSeconds int64
	// DryRun counts and removes nothing.
	DryRun bool
}

// SweepResult counts what Sweep removed, or would remove.
type SweepResult struct {
	Removed, Kept           int64 // blobs
	RemovedBytes, KeptBytes int64 // stored bytes
}
