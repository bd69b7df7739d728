package pack

import (
	"context"
	"errors"
	"iter"

	"github.com/stet-dev/stet/blob"
)

var _ blob.ManyReader = (*blobLayer)(nil)

// ReadMany implements blob.ManyReader. It uses the driver's reader until a blob is
// missing. Looking into packs reads rows, which may need what the reader holds, so
// the reader is closed first. The next blob opens another one.
func (b *blobLayer) ReadMany(ctx context.Context, fn func(blob.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &manyReader{b: b, ctx: ctx}
	return errors.Join(fn(r), r.end())
}

type manyReader struct {
	b    *blobLayer
	ctx  context.Context // of the whole ReadMany
	lent blob.Reader     // by the driver, or nil
	stop func()          // releases it
	err  error           // of the driver's last ReadMany
}

// below returns the driver's reader.
func (r *manyReader) below() (blob.Reader, error) {
	if r.lent != nil {
		return r.lent, nil
	}
	next, stop := iter.Pull(func(yield func(blob.Reader) bool) {
		r.err = blob.ReadMany(r.ctx, r.b.s.blobs, func(lent blob.Reader) error {
			yield(lent)
			return nil
		})
	})
	lent, ok := next()
	if !ok {
		stop()
		return nil, r.err
	}
	r.lent, r.stop = lent, stop
	return lent, nil
}

// end releases the driver's reader.
func (r *manyReader) end() error {
	if r.lent == nil {
		return nil
	}
	r.stop()
	r.lent = nil
	return r.err
}

func (r *manyReader) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	in, err := r.below()
	if err != nil {
		return nil, err
	}
	data, err := in.Get(ctx, id)
	if !errors.Is(err, blob.ErrNotFound) {
		return data, err
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return r.b.Get(ctx, id)
}

func (r *manyReader) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	in, err := r.below()
	if err != nil {
		return nil, err
	}
	has, err := in.Has(ctx, ids...)
	if err != nil {
		return nil, err
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return has, r.b.inPacks(ctx, ids, has)
}
