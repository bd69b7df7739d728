package document

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Options configure a Store; nil means all defaults.
type Options struct {
	// Now is the clock, for tests.
	Now func() time.Time
}

// Store keeps documents. It is safe for concurrent use, and several processes may use
// the same rows.
type Store struct {
	blobs blob.Store
	rows  kv.Store
	now   func() time.Time

	maxRead int64 // see Limited
}

// Open returns the documents in blobs and rows. A commit to rows must make the blobs
// that it names durable in blobs.
func Open(blobs blob.Store, rows kv.Store, opts *Options) *Store {
	s := &Store{blobs: blobs, rows: rows, now: time.Now}
	if opts != nil && opts.Now != nil {
		s.now = opts.Now
	}
	return s
}

// Limited returns the same documents for a reader with little memory: contents that make
// the documents of one Get, or one document of a list, larger than max bytes are left as
// blobs.
func (s *Store) Limited(max int64) *Store {
	limited := *s
	limited.maxRead = max
	return &limited
}

// Get returns the documents with the given names and their contents. It leaves out
// those that do not exist.
func (s *Store) Get(ctx context.Context, collection string, names ...string) ([]Document, error) {
	if err := checkCollection(collection); err != nil {
		return nil, err
	}
	if len(names) > MaxChanges {
		return nil, invalid("%d names; the limit is %d", len(names), MaxChanges)
	}
	var docs []Document
	for _, name := range names {
		if err := checkName(name); err != nil {
			return nil, err
		}
		row, err := s.rows.Get(ctx, keyspace.Document(collection, name))
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		var doc Document
		if err == nil {
			doc, err = decode(row)
		}
		if err != nil {
			return nil, fmt.Errorf("read document %.40q: %w", name, err)
		}
		docs = append(docs, doc)
	}
	return docs, s.load(ctx, docs)
}

// load reads contents that are blobs.
func (s *Store) load(ctx context.Context, docs []Document) error {
	room := s.maxRead
	return blob.ReadMany(ctx, s.blobs, func(from blob.Reader) error {
		for i := range docs {
			doc := &docs[i]
			if doc.Blob.IsZero() || s.maxRead > 0 && doc.Size > room {
				continue
			}
			room -= doc.Size
			data, err := from.Get(ctx, doc.Blob)
			if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
				return fmt.Errorf("%w: %q: %w", ErrDataLoss, doc.Name, err)
			}
			if err != nil {
				return err
			}
			doc.Data = data
		}
		return nil
	})
}

// Query selects documents of a collection.
type Query struct {
	Collection string
	// Prefix leaves out names that do not begin with it.
	Prefix string
	// After starts the list after a name: it leaves out names that are not greater or,
	// in a reversed list, not smaller.
	After   string
	Reverse bool
	// NamesOnly leaves out the contents.
	NamesOnly bool
}

// List yields documents in the order of their names. One that cannot be read is
// yielded as its name with an error, and the list continues; an error without a name
// ends it. Concurrent commits may or may not be seen.
func (s *Store) List(ctx context.Context, q Query) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		in, err := q.rows()
		if err != nil {
			yield(Document{}, err)
			return
		}
		for row, err := range kv.Each(ctx, s.rows, in, q.Reverse) {
			var doc Document
			if err == nil {
				doc, err = decode(row)
			} else if row.Key != "" {
				doc.Name, _ = nameOf(row.Key)
			}
			if err == nil && q.NamesOnly {
				doc.Data = nil
			} else if err == nil {
				one := []Document{doc}
				err = s.load(ctx, one)
				doc = one[0]
			}
			if err != nil {
				doc = Document{Name: doc.Name}
			}
			if !yield(doc, err) || err != nil && (doc.Name == "" || ctx.Err() != nil) {
				return
			}
		}
	}
}

// rows returns the range of a query.
func (q *Query) rows() (kv.Range, error) {
	if err := errors.Join(checkCollection(q.Collection), checkPrefix(q.Prefix), checkPrefix(q.After)); err != nil {
		return kv.Range{}, err
	}
	in := keyspace.Documents(q.Collection, q.Prefix)
	if q.After == "" {
		return in, nil
	}
	at := keyspace.Document(q.Collection, q.After)
	if q.Reverse {
		in.End = min(in.End, at)
	} else {
		in.Start = max(in.Start, at+"\x00")
	}
	return in, nil
}

// Collections returns the names of at most limit collections that have documents, in
// the order of their keys, starting after a given one.
func (s *Store) Collections(ctx context.Context, after string, limit int) ([]string, error) {
	var collections []string
	in := keyspace.AllDocuments()
	if after != "" {
		in.Start = keyspace.Documents(after, "").End
	}
	for len(collections) < limit {
		key := ""
		for row, err := range s.rows.Scan(ctx, in, kv.ScanOptions{Limit: 1, KeysOnly: true}) {
			if err != nil {
				return nil, fmt.Errorf("list collections: %w", err)
			}
			key = row.Key
		}
		if key == "" {
			break
		}
		collection := keyspace.Parts(key)[2]
		collections = append(collections, collection)
		in.Start = keyspace.Documents(collection, "").End
	}
	return collections, nil
}
