package cursor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
)

// VerifyOptions configure Verify. The zero value, and nil, work.
type VerifyOptions struct {
	// MaxListed is how many findings of each kind are listed; 1,000 if zero. Counts
	// are always exact.
	MaxListed int
}

// Report is the result of Verify.
type Report struct {
	// Blobs and Bytes count the intact blobs.
	Blobs, Bytes int64
	// Tombstones counts blob rows that only mark a deletion.
	Tombstones int64
	// Corrupt are blobs that do not match their ids, and unreadable rows.
	Corrupt      []Finding
	CorruptCount int64
	// Dangling are references to blobs that the store does not have.
	Dangling      []Finding
	DanglingCount int64
	// Orphans are intact blobs without references. Those that look like a state are
	// listed as former roots: earlier versions of a conversation.
	Orphans     []Finding
	OrphanCount int64
	FormerRoots []blob.ID
}

// OK reports whether nothing is damaged or missing.
func (r *Report) OK() bool { return r.CorruptCount == 0 && r.DanglingCount == 0 }

// Finding is one finding of Verify.
type Finding struct {
	// ID is the blob, or zero for a row.
	ID blob.ID
	// Where is the row, or the row from which the blob was reached.
	Where string
	// Field is the field that holds a dangling reference.
	Field string
	// Err is the problem; nil for an orphan.
	Err error
}

// Verify reads every blob and compares it with its id, and follows every reference
// from the rows. It needs 36 bytes of memory for each blob. The report holds the
// damage. The error is set if the work ended early; the report then holds the
// findings so far.
func (s *Store) Verify(ctx context.Context, opts *VerifyOptions) (*Report, error) {
	v := &verifier{store: s, blobs: s.Blobs(), report: &Report{}, limit: 1000}
	if opts != nil && opts.MaxListed > 0 {
		v.limit = opts.MaxListed
	}
	steps := []func(context.Context) error{v.readBlobs, v.walkRoots, v.listOrphans}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return v.report, fmt.Errorf("verify %s: %w", s.path, err)
		}
	}
	return v.report, nil
}

type verifier struct {
	store  *Store
	blobs  Blobs
	report *Report
	limit  int

	ids  []blob.ID // all blobs, sorted
	seen []uint32  // for each: bits of the kinds it was reached as, and whether it is intact
}

const soundBit = 1 << 31

func (v *verifier) add(list *[]Finding, count *int64, f Finding) {
	*count++
	if len(*list) < v.limit {
		*list = append(*list, f)
	}
}

func (v *verifier) corrupt(f Finding) { v.add(&v.report.Corrupt, &v.report.CorruptCount, f) }

// readBlobs checks every blob.
func (v *verifier) readBlobs(ctx context.Context) error {
	if err := v.countTombstones(ctx); err != nil {
		return err
	}
	return v.blobs.List(ctx, blob.ID{}, func(info blob.Info) error {
		v.ids = append(v.ids, info.ID)
		v.seen = append(v.seen, 0)
		data, err := v.blobs.Get(ctx, info.ID)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, blob.ErrNotFound): // removed meanwhile
			v.ids, v.seen = v.ids[:len(v.ids)-1], v.seen[:len(v.seen)-1]
		case err != nil:
			v.corrupt(Finding{ID: info.ID, Where: "blob", Err: err})
		default:
			v.report.Blobs++
			v.report.Bytes += int64(len(data))
			v.seen[len(v.seen)-1] = soundBit
		}
		return nil
	})
}

func (v *verifier) countTombstones(ctx context.Context) error {
	t := v.store.blobTable()
	if t == nil {
		return nil
	}
	r := keyRange{}
	if t.prefix != "" {
		r = prefixRange(t.prefix)
	}
	for row, err := range t.db.scan(ctx, t.table, r, scanSizes) {
		if err != nil {
			return err
		}
		_, named := t.parseKey(row.key)
		switch {
		case row.value.Absent():
			v.report.Tombstones++
		case !named:
			v.corrupt(Finding{Where: row.key, Err: fmt.Errorf("%w: key holds no blob id", ErrMalformed)})
		}
	}
	return nil
}

// walk follows the references of a message that a row contains or points to.
func (v *verifier) walk(ctx context.Context, where string, kind graph.Kind, data []byte) error {
	queue, err := refs(kind, data)
	if err != nil {
		v.corrupt(Finding{Where: where, Err: err})
	}
	for len(queue) > 0 {
		r := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if !v.reach(where, r) || r.Kind.Leaf() {
			continue
		}
		data, err := v.blobs.Get(ctx, r.ID)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			var found []graph.Ref
			found, err = refs(r.Kind, data)
			queue = append(queue, found...)
		}
		if err != nil {
			v.corrupt(Finding{ID: r.ID, Where: where, Field: r.Field, Err: err})
		}
	}
	return nil
}

// walkTo follows a pointer.
func (v *verifier) walkTo(ctx context.Context, where string, kind graph.Kind, id blob.ID) error {
	r := graph.Ref{Kind: kind, ID: id, Field: "pointer"}
	if !v.reach(where, r) {
		return nil
	}
	data, err := v.blobs.Get(ctx, id)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		v.corrupt(Finding{ID: id, Where: where, Err: err})
		return nil
	}
	return v.walk(ctx, where, kind, data)
}

// reach marks a blob as reached and reports whether to follow its references: it
// exists, is intact, and was not reached as this kind before.
func (v *verifier) reach(where string, r graph.Ref) bool {
	i, found := slices.BinarySearchFunc(v.ids, r.ID, blob.ID.Compare)
	if !found {
		v.add(&v.report.Dangling, &v.report.DanglingCount, Finding{ID: r.ID, Where: where, Field: r.Field, Err: blob.ErrNotFound})
		return false
	}
	bit := uint32(1) << r.Kind
	fresh := v.seen[i]&bit == 0
	v.seen[i] |= bit
	return fresh && v.seen[i]&soundBit != 0
}

// listOrphans lists the intact blobs that were not reached.
func (v *verifier) listOrphans(ctx context.Context) error {
	for i, id := range v.ids {
		if v.seen[i] != soundBit {
			continue
		}
		v.add(&v.report.Orphans, &v.report.OrphanCount, Finding{ID: id, Where: "blob"})
		if len(v.report.FormerRoots) >= v.limit {
			continue
		}
		data, err := v.blobs.Get(ctx, id)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && v.looksLikeRoot(data) {
			v.report.FormerRoots = append(v.report.FormerRoots, id)
		}
	}
	return nil
}

// looksLikeRoot reports whether a blob is a state with parts, all of which the
// store has.
func (v *verifier) looksLikeRoot(data []byte) bool {
	parts, err := refs(graph.State, data)
	for _, r := range parts {
		if _, found := slices.BinarySearchFunc(v.ids, r.ID, blob.ID.Compare); !found {
			return false
		}
	}
	return err == nil && len(parts) > 0
}
