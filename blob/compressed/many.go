package compressed

import (
	"context"
	"errors"

	"github.com/stet-dev/stet/blob"
)

var _ blob.ManyReader = (*Store)(nil)

// ReadMany implements blob.ManyReader: records, and the bases of deltas, are read with one
// reader of the store below.
func (s *Store) ReadMany(ctx context.Context, fn func(blob.Reader) error) error {
	return blob.ReadMany(ctx, s.inner, func(below blob.Reader) error { return fn(expandingReader{s, below}) })
}

// expandingReader assembles contents from what a reader of the store below returns.
type expandingReader struct {
	s     *Store
	below blob.Reader
}

func (r expandingReader) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	return r.s.get(ctx, r.below, id)
}

func (r expandingReader) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	return r.below.Has(ctx, ids...)
}

// get reads a blob with a reader of the store below.
func (s *Store) get(ctx context.Context, below blob.Reader, id blob.ID) ([]byte, error) {
	from := resolver{Store: s, below: below, recall: true}
	data, err := from.content(ctx, id)
	if errors.Is(err, blob.ErrCorrupt) {
		// A collector may have removed the base, and the blob with it, after the blob
		// was read; or the blob was put again in another form. Only damage fails
		// twice.
		return from.content(ctx, id)
	}
	return data, err
}
