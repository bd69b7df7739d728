package compressed

import (
	"bytes"
	"context"
	"io"

	"github.com/stet-dev/stet/blob"
)

// Repairer returns a repairer for damaged blobs of s; below exchanges those of the store
// below. A repaired blob leans on no other, since its base may be the damaged part.
// Compact later compresses it, as a difference from its Like if it has one.
func (s *Store) Repairer(below blob.Replacer) blob.Repairer { return repairer{s, below} }

type repairer struct {
	s     *Store
	below blob.Replacer
}

func (r repairer) Repair(ctx context.Context, b blob.Blob) error {
	if err := r.s.checkSize(&b); err != nil {
		return err
	}
	one := record{kind: kindRaw, local: b.LocalOnly, size: int64(len(b.Data)), payload: b.Data}
	if hints(b.ID, b.Like) && len(b.Data) >= leastLeaning {
		one.kind, one.like = kindHinted, b.Like
	}
	defer r.s.cache.purge() // it may hold the damaged record
	return r.below.Replace(ctx, blob.Blob{ID: b.ID, Data: one.encode(), LocalOnly: b.LocalOnly, Given: true})
}

func (r repairer) RepairFrom(ctx context.Context, id blob.ID, content io.Reader, size int64) error {
	defer r.s.cache.purge()
	return r.below.ReplaceFrom(ctx, id, io.MultiReader(bytes.NewReader([]byte{kindRaw}), content), 1+size)
}
