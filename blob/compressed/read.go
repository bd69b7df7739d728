package compressed

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
)

// resolver reads records and assembles contents.
type resolver struct {
	*Store
	below  blob.Reader
	staged map[blob.ID]*record // records about to be stored below
	recall bool                // take bases from memory; writers need the stored ones
}

// fetch returns a record with its payload.
func (s resolver) fetch(ctx context.Context, id blob.ID) (*record, error) {
	if r := s.staged[id]; r != nil {
		return r, nil
	}
	data, err := s.below.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	r, err := parse(id, data, s.opts.MaxBlob)
	if err != nil {
		return nil, err
	}
	s.cache.add(id, r)
	return r, nil
}

// fetchBase reads the base of a delta. A missing or damaged base makes the dependant
// corrupt; the error names both.
func (s resolver) fetchBase(ctx context.Context, id blob.ID, r *record) (*record, error) {
	base, err := s.fetch(ctx, r.base)
	return base, leansOn(id, r.base, err)
}

// leansOn converts an error of a base to one of the blob that needs it.
func leansOn(id, base blob.ID, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, blob.ErrNotFound): // not wrapped: the requested blob exists
		return blob.Corrupt(id, "its base %s is missing", base)
	}
	return fmt.Errorf("read %s, which leans on %s: %w", id, base, err)
}

// content returns the content of a blob.
func (s resolver) content(ctx context.Context, id blob.ID) ([]byte, error) {
	r, err := s.fetch(ctx, id)
	if err != nil {
		return nil, err
	}
	steps := maxSteps
	return s.resolve(ctx, id, r, &steps)
}

// segment is the part of the content that comes from one record of a chain.
type segment struct {
	id       blob.ID
	r        *record
	from, to int64
}

// resolve assembles the content of a record. It walks down a chain of extensions,
// records which bytes each adds, and takes the rest from the last record. It
// allocates memory only then, so the longest chain needs no more than its base, its
// content and one literal.
func (s resolver) resolve(ctx context.Context, id blob.ID, r *record, steps *int) ([]byte, error) {
	if r.isContent() {
		return r.payload, nil
	}
	if err := blob.Reserve(ctx, r.size); err != nil {
		return nil, err
	}
	var segments []segment
	curID, cur, end := id, r, r.size
	for cur.isExtension() && end > 0 {
		if end > cur.size {
			return nil, blob.Corrupt(id, "%s has %d bytes, need %d", curID, cur.size, end)
		}
		if end > cur.prefix {
			segments = append(segments, segment{curID, cur, cur.prefix, end})
			end = cur.prefix
		}
		if *steps--; *steps < 0 {
			return nil, blob.Corrupt(id, "more than %d deltas in a chain", maxSteps)
		}
		next, err := s.fetchBase(ctx, curID, cur)
		if err != nil {
			return nil, err
		}
		curID, cur = cur.base, next
	}
	bottom, err := s.bottom(ctx, curID, cur, end, steps)
	if err != nil {
		return nil, leansOnUnlessSame(id, curID, err)
	}
	if len(segments) == 0 {
		return fitting(bottom), nil
	}
	out := make([]byte, r.size)
	copy(out, bottom)
	for _, g := range segments {
		literal, err := s.literal(g.id, g.r)
		if err != nil {
			return nil, leansOnUnlessSame(id, g.id, err)
		}
		copy(out[g.from:g.to], literal)
	}
	return out, nil
}

// fitting copies a part of a larger slice. Otherwise the whole would stay in memory
// while the part is in use, for example in a cache that counts only the part.
func fitting(part []byte) []byte {
	if cap(part)/2 > len(part) {
		return bytes.Clone(part)
	}
	return part
}

func leansOnUnlessSame(id, cause blob.ID, err error) error {
	if id == cause {
		return err
	}
	return leansOn(id, cause, err)
}

// isExtension reports whether the content is a prefix of the base followed by the
// literal, which can be read without the base.
func (r *record) isExtension() bool {
	return (r.kind == kindDelta || r.kind == kindDeltaZstd) && r.suffix == 0
}

// bottom returns the first end bytes of a record that is not an extension.
func (s resolver) bottom(ctx context.Context, id blob.ID, r *record, end int64, steps *int) ([]byte, error) {
	var data []byte
	var err error
	switch r.kind {
	case kindRaw, kindHinted:
		data = r.payload
	case kindZstd, kindStream:
		if data, err = s.codec.expand(r.payload, r.size); err != nil {
			err = blob.Corrupt(id, "inflate: %v", err)
		}
	default:
		data, err = s.patched(ctx, id, r, steps)
	}
	if err != nil {
		return nil, err
	}
	if int64(len(data)) < end {
		return nil, blob.Corrupt(id, "%d bytes, need %d", len(data), end)
	}
	return data[:end], nil
}

// patched returns the content of a delta that replaces the middle of its base.
func (s resolver) patched(ctx context.Context, id blob.ID, r *record, steps *int) ([]byte, error) {
	if *steps--; *steps < 0 {
		return nil, blob.Corrupt(id, "more than %d deltas in a chain", maxSteps)
	}
	base, err := s.baseContent(ctx, id, r, steps)
	if err != nil {
		return nil, err
	}
	if r.prefix+r.suffix > int64(len(base)) {
		return nil, blob.Corrupt(id, "shares %d bytes with %s, which has %d", r.prefix+r.suffix, r.base, len(base))
	}
	replaced := base[r.prefix : int64(len(base))-r.suffix]
	var literal []byte
	if r.kind == kindDeltaDict {
		if literal, err = s.codec.expandWith(replaced, r.payload, r.literal); err != nil {
			err = blob.Corrupt(id, "inflate with %s as dictionary: %v", r.base, err)
		}
	} else {
		literal, err = s.literal(id, r)
	}
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{base[:r.prefix], literal, base[int64(len(base))-r.suffix:]}, nil), nil
}

// baseContent returns the content of a delta's base, which must not be changed. A reader that
// goes through the versions of a file has it in memory: without that, each version would be
// assembled from all those below it in its chain.
func (s resolver) baseContent(ctx context.Context, id blob.ID, r *record, steps *int) ([]byte, error) {
	if s.recall && s.opts.Recall != nil {
		if content := s.opts.Recall(r.base); content != nil {
			return content, nil
		}
	}
	below, err := s.fetchBase(ctx, id, r)
	if err != nil {
		return nil, err
	}
	base, err := s.resolve(ctx, r.base, below, steps)
	return base, leansOn(id, r.base, err)
}

// literal returns the literal of a delta that needs no dictionary. It belongs
// to the record.
func (s resolver) literal(id blob.ID, r *record) ([]byte, error) {
	if r.kind == kindDelta {
		return r.payload, nil
	}
	literal, err := s.codec.expand(r.payload, r.literal)
	if err != nil {
		return nil, blob.Corrupt(id, "inflate: %v", err)
	}
	return literal, nil
}
