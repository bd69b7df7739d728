package blob

import (
	"context"
	"io"
)

// Replacer is implemented by stores that can replace the stored bytes of blobs, which Put
// never does. Until a call returns nil, and after a crash during it, readers get either
// all old bytes or all new ones. The generation and age of a blob do not change.
type Replacer interface {
	// Replace replaces several blobs with their bases, all or none: Blob.Base is the
	// base of the new bytes, if any. It takes them in order. It skips blobs that are
	// not stored, and blobs whose new base is not stored or leans on them: they stay
	// unchanged. A concurrent collector never removes a base that a blob gets here.
	Replace(ctx context.Context, blobs ...Blob) error
	// ReplaceFrom replaces the bytes of a blob by size bytes of r; its base stays. It
	// returns ErrNotFound if the blob is not stored. If r fails or does not hold size
	// bytes, nothing changes.
	ReplaceFrom(ctx context.Context, id ID, r io.Reader, size int64) error
}

// Rewriter is a Replacer that can read stored bytes together with their base: separate
// calls might see a blob before and after it was replaced.
type Rewriter interface {
	Replacer
	// Kept returns a durable blob as it is stored, with the base of exactly these bytes.
	Kept(ctx context.Context, id ID) (Blob, error)
	// Info describes a durable blob. If there is none, the error wraps ErrNotFound.
	Info(ctx context.Context, id ID) (Info, error)
}

// Arrivals is implemented by stores that record the order in which blobs arrived, so
// that any process can do deferred work in that order later.
type Arrivals interface {
	// Arrived returns up to limit durable blobs that arrived after mark, oldest
	// first, and the mark after the last of them. The empty mark is before the first.
	// A blob may appear again, for example after Replace; none is left out. There are
	// no more when next equals mark.
	Arrived(ctx context.Context, mark string, limit int) (blobs []Info, next string, err error)
}
