// Package kept keeps values that rows have: small ones inside the row, others as blobs.
//
//	var add kept.Additions
//	rec.Content = add.Keep(value, before, kept.InsideAlone)
//	set, err := rowformat.Set(key, rec)
//	err = add.Commit(ctx, blobs, rows, &kv.Batch{Set: []kv.Set{set}})
//
// What a value means is left to the callers.
package kept

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
)

// Values up to these sizes are kept in the row: a blob would take more, with its names.
const (
	InsideAlone    = 512 // one row has the value
	InsideRepeated = 64  // later rows repeat it
)

// Value is a value with the name of its serialisation.
type Value struct {
	Type string
	// Data is the content. If it is nil and Blob is set, that blob is the content.
	Data []byte
	Blob blob.ID
	// Size is that of the content; 0 if it is a blob of unknown size.
	Size int64
}

// Decode returns a value as its row has it.
func Decode(v *stetv1.KeptValue) (Value, error) {
	value := Value{Type: v.GetType()}
	if len(v.GetBlob()) == 0 {
		value.Data = append([]byte{}, v.GetInside()...)
		value.Size = int64(len(value.Data))
		return value, nil
	}
	id, err := blob.IDFromBytes(v.GetBlob())
	if err == nil && len(v.GetInside()) > 0 {
		err = errors.New("a value is a blob and inside")
	}
	value.Blob, value.Size = id, int64(v.GetSize())
	if err == nil && value.Size < 0 {
		err = errors.New("a value has a negative size")
	}
	return value, err
}

// Additions are the blobs of a commit: those to put, and all that its rows name.
type Additions struct {
	blobs []blob.Blob
	refs  []blob.ID
}

// Keep decides where a value is kept, inside the row up to a size, and returns it as its
// row has it. Like is the value before it, or zero.
func (a *Additions) Keep(v, like Value, inside int) *stetv1.KeptValue {
	out := &stetv1.KeptValue{Type: v.Type}
	switch {
	case v.Data == nil && !v.Blob.IsZero():
		out.Blob, out.Size = v.Blob[:], uint64(v.Size)
		a.refs = append(a.refs, v.Blob)
	case len(v.Data) > inside:
		b := blob.New(v.Data)
		if like.Blob != b.ID {
			b.Like = like.Blob
		}
		a.blobs, a.refs = append(a.blobs, b), append(a.refs, b.ID)
		out.Blob, out.Size = b.ID[:], uint64(len(v.Data))
	default:
		out.Inside = v.Data
	}
	return out
}

// Commit puts the blobs and commits a batch with references to all of them. A collector
// may remove a blob before the rows name it; it is then put again.
func (a *Additions) Commit(ctx context.Context, blobs blob.Store, rows kv.Store, b *kv.Batch) error {
	b.Refs = append(slices.Clone(b.Refs), a.refs...)
	for {
		if len(a.blobs) > 0 {
			if err := blobs.Put(ctx, a.blobs...); err != nil {
				return fmt.Errorf("store values: %w", err)
			}
		}
		err := rows.Commit(ctx, b)
		var missing *kv.MissingBlobsError
		if !errors.As(err, &missing) || !a.puts(missing.IDs) {
			return err
		}
	}
}

// puts reports whether all of some blobs are put by the commit itself.
func (a *Additions) puts(ids []blob.ID) bool {
	return !slices.ContainsFunc(ids, func(id blob.ID) bool {
		return !slices.ContainsFunc(a.blobs, func(b blob.Blob) bool { return b.ID == id })
	})
}
