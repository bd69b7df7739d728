package blob

import (
	"crypto/sha256"
	"hash"
)

// Builder makes blobs that grow at their end. It remembers the hash of what has been
// appended so far, so naming the next, longer blob costs only the new bytes, whatever
// the total length.
//
// The content of a blob is everything appended plus a tail that belongs to that
// blob alone:
//
//	b := blob.NewBuilder()
//	b.Append(entries)
//	first := b.Blob(tail)   // entries + tail, whole
//	b.Append(more)
//	second := b.Blob(tail2) // says: first's entries, then more + tail2
type Builder struct {
	digest  hash.Hash
	length  int64  // bytes appended
	pending []byte // appended since the last Blob
	last    ID     // the latest blob
	shared  int64  // appended bytes at the start of last
}

// NewBuilder returns an empty builder.
func NewBuilder() *Builder { return &Builder{digest: sha256.New()} }

// ResumeBuilder continues from a stored blob whose first len(appended) bytes are the
// appended part, for example a list that was saved earlier.
func ResumeBuilder(id ID, appended []byte) *Builder {
	b := NewBuilder()
	b.digest.Write(appended)
	b.length = int64(len(appended))
	b.last, b.shared = id, b.length
	return b
}

// Len returns the number of bytes appended so far.
func (b *Builder) Len() int64 { return b.length }

// Append adds bytes that all later blobs will contain.
func (b *Builder) Append(p []byte) {
	b.digest.Write(p)
	b.length += int64(len(p))
	b.pending = append(b.pending, p...)
}

// Blob returns the blob of everything appended, followed by tail. It refers to the
// previous blob of the builder, if any, which the store must have.
func (b *Builder) Blob(tail []byte) Blob {
	sum := cloneDigest(b.digest)
	sum.Write(tail)
	made := Blob{
		ID:   ID(sum.Sum(nil)),
		Data: append(append(make([]byte, 0, len(b.pending)+len(tail)), b.pending...), tail...),
		Like: b.last,
		Keep: b.shared,
	}
	made.vouch()
	return made
}

// Commit records that a blob has been stored: later blobs refer to it. Do not commit
// a blob that could not be stored.
func (b *Builder) Commit(stored Blob) {
	b.last, b.shared = stored.ID, b.length
	b.pending = b.pending[:0]
}

// cloneDigest copies the running hash; the standard library's SHA-256 supports that.
func cloneDigest(h hash.Hash) hash.Hash {
	c, err := h.(hash.Cloner).Clone()
	if err != nil {
		panic("blob: sha256 state cannot be copied: " + err.Error())
	}
	return c
}
