package document

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/kept"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/lane"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// Commit changes documents of a collection, all of them or none. It returns those
// that were set, in the order of the changes and without contents. It fails with
// ErrConflict if a document is not as expected.
func (s *Store) Commit(ctx context.Context, collection string, b Batch) ([]Document, error) {
	if err := errors.Join(checkCollection(collection), b.check()); err != nil {
		return nil, err
	}
	sizes, err := s.sizes(ctx, b.Changes)
	if err != nil {
		return nil, err
	}
	var set []Document
	err = lane.Retry(ctx, func() error {
		var err error
		set, err = s.attempt(ctx, collection, b, sizes)
		return err
	})
	if err != nil {
		return nil, err
	}
	return set, nil
}

// sizes returns the sizes of contents that are blobs. The caller may not know them.
func (s *Store) sizes(ctx context.Context, changes []Change) (map[blob.ID]int64, error) {
	sizes := make(map[blob.ID]int64)
	for _, c := range changes {
		if c.Set == nil || c.Set.Data != nil || c.Set.Blob.IsZero() {
			continue
		}
		id := c.Set.Blob
		if sizes[id] = c.Set.Size; sizes[id] > 0 {
			continue
		}
		r, err := blob.Open(ctx, s.blobs, id)
		if err != nil {
			return nil, fmt.Errorf("content of document %.40q: %w", c.Name, err)
		}
		sizes[id], err = io.Copy(io.Discard, r)
		if err = errors.Join(err, r.Close()); err != nil {
			return nil, fmt.Errorf("content of document %.40q: %w", c.Name, err)
		}
	}
	return sizes, nil
}

// attempt commits a batch on top of the current rows. It fails with kv.ErrConflict if
// one of them changes meanwhile.
func (s *Store) attempt(ctx context.Context, collection string, b Batch, sizes map[blob.ID]int64) ([]Document, error) {
	var add kept.Additions
	var set []Document
	batch := &kv.Batch{}
	for _, prefix := range b.DeletePrefixes {
		batch.DeleteRange = append(batch.DeleteRange, keyspace.Documents(collection, prefix))
	}
	for _, c := range b.Changes {
		before, version, err := s.before(ctx, collection, c)
		if err != nil {
			return nil, err
		}
		key := keyspace.Document(collection, c.Name)
		batch.Expect = append(batch.Expect, kv.Expect{Key: key, Version: version})
		if c.Delete {
			batch.Delete = append(batch.Delete, key)
		}
		if c.Set == nil {
			continue
		}
		doc, row, err := s.next(key, c, before, sizes, &add)
		if err != nil {
			return nil, err
		}
		batch.Set = append(batch.Set, row)
		set = append(set, doc)
	}
	return set, add.Commit(ctx, s.blobs, s.rows, batch)
}

// before returns the document of a change and the version of its row. Both are zero
// if there is none. A change without an expectation may replace a document that
// cannot be read.
func (s *Store) before(ctx context.Context, collection string, c Change) (Document, uint64, error) {
	row, err := s.rows.Get(ctx, keyspace.Document(collection, c.Name))
	var doc Document
	if err == nil {
		doc, err = decode(row)
	}
	switch {
	case errors.Is(err, kv.ErrNotFound):
		err = nil
	case err != nil && (c.Expect != nil || !kv.Damaged(err) || row.Version == 0):
		return Document{}, 0, fmt.Errorf("read document %.40q: %w", c.Name, err)
	}
	if c.Expect != nil && *c.Expect != doc.Version {
		return Document{}, 0, conflict(c, doc)
	}
	return doc, row.Version, nil
}

func conflict(c Change, doc Document) error {
	switch {
	case *c.Expect == "":
		return fmt.Errorf("%w: %q exists at version %s", ErrConflict, c.Name, doc.Version)
	case doc.Version == "":
		return fmt.Errorf("%w: %q does not exist; version %.20s was expected", ErrConflict, c.Name, *c.Expect)
	}
	return fmt.Errorf("%w: %q is at version %s; %.20s was expected", ErrConflict, c.Name, doc.Version, *c.Expect)
}

// next returns what a document becomes, and its row.
func (s *Store) next(key string, c Change, before Document, sizes map[blob.ID]int64, add *kept.Additions) (Document, kv.Set, error) {
	content := kept.Value{Type: c.Set.Type, Data: c.Set.Data, Blob: c.Set.Blob, Size: sizes[c.Set.Blob]}
	rec := &stetv1.DocumentRecord{
		Format: recordFormat, Version: 1 + rand.Uint64N(1<<64-1), Metadata: c.Set.Metadata,
		ChangedMs: max(0, s.now().UnixMilli()),
		Content:   add.Keep(content, kept.Value{Blob: before.Blob}, kept.InsideAlone),
	}
	if before.Version != "" {
		rec.ChangedMs = max(rec.ChangedMs, before.Changed.UnixMilli())
	}
	row, err := rowformat.Set(key, rec)
	if err != nil {
		return Document{}, kv.Set{}, err
	}
	doc, err := decode(kv.Row{Key: key, Value: row.Value})
	doc.Data = nil
	return doc, row, err
}
