package blob

import (
	"context"
	"io"
)

// Replacer is implemented by stores that can exchange the stored bytes of blobs,
// which Put never does. Until a call returns nil, and after a crash within it,
// readers get the old bytes or the new ones, whole. Generation and age stay.
type Replacer interface {
	// Replace exchanges several and their bases with them, all or none: Blob.Base is
	// what the new bytes lean on, if anything. It takes them in order. Those that are
	// not stored, perhaps no longer, are passed over, and so are those whose new base
	// is not, or leans on them: they stay as they are. A collector beside it never
	// removes a base that a blob was given here.
	Replace(ctx context.Context, blobs ...Blob) error
	// ReplaceFrom exchanges the bytes of one by size bytes of r; its base stays. One
	// that is not stored is an ErrNotFound; a reader that fails or does not hold size
	// bytes changes nothing.
	ReplaceFrom(ctx context.Context, id ID, r io.Reader, size int64) error
}

// Arrivals is implemented by stores that know the order in which blobs came, so
// that work which was put off can be done in that order later, by any process.
type Arrivals interface {
	// Arrived returns up to limit durable blobs that came after mark, oldest first,
	// and the mark behind the last of them. The empty mark stands before the first.
	// Some may come again, as after Replace, none is left out. There are no more when
	// next is mark.
	Arrived(ctx context.Context, mark string, limit int) (blobs []Info, next string, err error)
}
