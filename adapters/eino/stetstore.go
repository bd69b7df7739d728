// Package stetstore keeps the checkpoints of Eino graphs (github.com/cloudwego/eino) in stet:
// in an embedded store, or on a server. A graph that was interrupted continues from its
// checkpoint, in another process too.
//
//	db, err := stet.Open(ctx, dir, nil)
//	graph, err := builder.Compile(ctx, compose.WithCheckPointStore(stetstore.New(db.Documents(), "graphs")))
//	_, err = graph.Invoke(ctx, input, compose.WithCheckPointID("trip-7"))
//
// On a server it is New(document.Open(client.Blobs(), client.Rows(), nil), "graphs").
package stetstore

import (
	"context"
	"fmt"

	"github.com/cloudwego/eino/compose"

	"github.com/stet-dev/stet/document"
)

// Store is a compose.CheckPointStore. It is safe for concurrent use.
type Store struct {
	documents  *document.Store
	collection string
}

var _ compose.CheckPointStore = (*Store)(nil)

// New returns a store that keeps each checkpoint as a document of a collection, named by
// its id. Ids have up to 1,024 bytes without control characters.
func New(documents *document.Store, collection string) *Store {
	return &Store{documents, collection}
}

// Get implements compose.CheckPointStore.
func (s *Store) Get(ctx context.Context, id string) ([]byte, bool, error) {
	docs, err := s.documents.Get(ctx, s.collection, id)
	if err != nil {
		return nil, false, fmt.Errorf("get checkpoint %q: %w", id, err)
	}
	if len(docs) == 0 {
		return nil, false, nil
	}
	return docs[0].Data, true, nil
}

// Set implements compose.CheckPointStore. When it returns, the checkpoint is durable.
func (s *Store) Set(ctx context.Context, id string, checkpoint []byte) error {
	set := &document.New{Data: append([]byte{}, checkpoint...)}
	_, err := s.documents.Commit(ctx, s.collection, document.Batch{Changes: []document.Change{{Name: id, Set: set}}})
	if err != nil {
		return fmt.Errorf("set checkpoint %q: %w", id, err)
	}
	return nil
}

// Delete removes a checkpoint that is no longer needed. It is not an error if there
// is none.
func (s *Store) Delete(ctx context.Context, id string) error {
	_, err := s.documents.Commit(ctx, s.collection, document.Batch{Changes: []document.Change{{Name: id, Delete: true}}})
	if err != nil {
		return fmt.Errorf("delete checkpoint %q: %w", id, err)
	}
	return nil
}
