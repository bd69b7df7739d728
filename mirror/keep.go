package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// MaxKept is how many blobs one call of Keep takes.
const MaxKept = 4096

// ErrInvalid says that Keep was called with invalid arguments.
var ErrInvalid = fault.Named(fault.Invalid, "invalid-keep", "invalid list of blobs to keep")

// Keep protects blobs from the collector on behalf of another store, the origin, and
// returns those that are not here; these are not held. Held blobs are durable when it
// returns. Repeating a call changes nothing.
func Keep(ctx context.Context, rows kv.Store, origin string, ids []blob.ID) (missing []blob.ID, err error) {
	if err := keyspace.CheckID(origin); err != nil {
		return nil, fmt.Errorf("%w: origin %w", ErrInvalid, err)
	}
	if len(ids) > MaxKept {
		return nil, fmt.Errorf("%w: %d ids; the limit is %d", ErrInvalid, len(ids), MaxKept)
	}
	ids = slices.Clone(ids)
	slices.SortFunc(ids, blob.ID.Compare)
	ids = slices.Compact(ids)
	for len(ids) > 0 {
		err := keep(ctx, rows, origin, ids)
		var absent *kv.MissingBlobsError
		if !errors.As(err, &absent) || len(absent.IDs) == 0 {
			return missing, err
		}
		missing = append(missing, absent.IDs...)
		ids = slices.DeleteFunc(ids, func(id blob.ID) bool { return slices.Contains(absent.IDs, id) })
	}
	return missing, nil
}

func keep(ctx context.Context, rows kv.Store, origin string, ids []blob.ID) error {
	value := make([]byte, 0, len(ids)*len(blob.ID{}))
	for _, id := range ids {
		value = append(value, id[:]...)
	}
	sum := sha256.Sum256(value)
	key := keyspace.Kept(origin, hex.EncodeToString(sum[:16]))
	err := rows.Commit(ctx, &kv.Batch{Expect: []kv.Expect{{Key: key}}, Set: []kv.Set{{Key: key, Value: value}}, Refs: ids})
	if errors.Is(err, kv.ErrConflict) {
		return rows.Commit(ctx, &kv.Batch{Refs: ids}) // held already; some may be lost
	}
	return err
}

// Roots yields the blobs that Keep holds, for the collector.
func Roots(rows kv.Store) func(context.Context) iter.Seq2[graph.Root, error] {
	return func(ctx context.Context) iter.Seq2[graph.Root, error] {
		return func(yield func(graph.Root, error) bool) {
			for row, err := range rows.Scan(ctx, keyspace.AllKept(), kv.ScanOptions{}) {
				if err == nil {
					err = CheckRow(row)
				}
				if err != nil {
					if !yield(graph.Root{}, err) {
						return
					}
					continue
				}
				for raw := range slices.Chunk(row.Value, len(blob.ID{})) {
					if !yield(graph.Root{Kind: graph.Bytes, ID: blob.ID(raw)}, nil) {
						return
					}
				}
			}
		}
	}
}

// CheckRow returns the error that the readers of a row would return. It accepts the rows
// of other packages.
func CheckRow(row kv.Row) error {
	if !keyspace.AllKept().Contains(row.Key) {
		return nil
	}
	if len(row.Value)%len(blob.ID{}) != 0 {
		return fmt.Errorf("%w: row %q: %d bytes are not a list of ids", kv.ErrCorrupt, row.Key, len(row.Value))
	}
	return nil
}
