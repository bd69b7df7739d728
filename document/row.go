package document

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/kept"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// recordFormat is the format of rows that this release reads and writes.
const recordFormat = 1

// nameOf returns the name of a document by its key.
func nameOf(key string) (string, bool) {
	parts := strings.SplitN(key, ":", 4)
	if len(parts) != 4 {
		return "", false
	}
	collection, name := keyspace.Unescape(parts[2]), parts[3]
	return name, checkCollection(collection) == nil && checkName(name) == nil && keyspace.Document(collection, name) == key
}

// decode returns a document without its content, if that is a blob.
func decode(row kv.Row) (Document, error) {
	name, ok := nameOf(row.Key)
	if !ok {
		return Document{}, fmt.Errorf("%w: row %q: not the key of a document", kv.ErrCorrupt, row.Key)
	}
	doc := Document{Name: name}
	rec := &stetv1.DocumentRecord{}
	if err := rowformat.Decode(row, rec, recordFormat); err != nil {
		return doc, err
	}
	content, err := kept.Decode(rec.GetContent())
	if err != nil {
		return doc, fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, row.Key, err)
	}
	return Document{
		Name: name, Version: formatVersion(rec.GetVersion()), Changed: time.UnixMilli(rec.GetChangedMs()),
		Type: content.Type, Metadata: rec.GetMetadata(), Size: content.Size, Data: content.Data, Blob: content.Blob,
	}, nil
}

// CheckRow returns the error that a reader of this package would return for a row,
// and nil for rows of other packages.
func CheckRow(row kv.Row) error {
	if !keyspace.AllDocuments().Contains(row.Key) {
		return nil
	}
	_, err := decode(row)
	return err
}

// Roots yields the blobs that documents refer to, for a collector. For an unreadable
// row it yields an error and continues.
func (s *Store) Roots(ctx context.Context) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		for row, err := range kv.Each(ctx, s.rows, keyspace.AllDocuments(), false) {
			var doc Document
			if err == nil {
				doc, err = decode(row)
			}
			switch {
			case err != nil:
				if !yield(graph.Root{}, fmt.Errorf("read documents: %w", err)) || row.Key == "" {
					return
				}
			case doc.Blob != blob.ID{}:
				if !yield(graph.Root{Kind: graph.Bytes, ID: doc.Blob}, nil) {
					return
				}
			}
		}
	}
}
