package jsoncheckpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/google/uuid"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Store keeps the JSON checkpoints of conversations as rows.
type Store struct{ rows kv.Store }

// NewStore returns the store over rows.
func NewStore(rows kv.Store) *Store { return &Store{rows} }

// Add stores a checkpoint under a new id and returns it.
func (s *Store) Add(ctx context.Context, conversation string, cp *Checkpoint) (id string, err error) {
	id = uuid.NewString()
	return id, s.put(ctx, conversation, id, cp, []kv.Expect{{Key: keyspace.JSONCheckpoint(conversation, id)}})
}

// Roots yields the blobs that checkpoints refer to, for a collector. For a row that
// cannot be read it yields an error and continues.
func (s *Store) Roots(ctx context.Context) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		for row, err := range kv.Each(ctx, s.rows, keyspace.AllJSONCheckpoints(), false) {
			cp := new(Checkpoint)
			if err == nil && bytes.Contains(row.Value, []byte("blobId")) { // seldom
				err = json.Unmarshal(row.Value, cp)
			}
			if err != nil && (!yield(graph.Root{}, fmt.Errorf("read JSON checkpoints: %w", err)) || row.Key == "") {
				return
			}
			for _, id := range cp.Blobs() {
				if !yield(graph.Root{Kind: graph.Bytes, ID: id}, nil) {
					return
				}
			}
		}
	}
}

// Blobs returns the contents that a checkpoint keeps by reference.
func (c *Checkpoint) Blobs() []blob.ID {
	var ids []blob.ID
	for _, f := range c.Files {
		if !f.Blob.IsZero() {
			ids = append(ids, f.Blob)
		}
	}
	return ids
}

// Put stores a checkpoint, replacing any with the same id. The blobs that it refers
// to must be stored already.
func (s *Store) Put(ctx context.Context, conversation, id string, cp *Checkpoint) error {
	return s.put(ctx, conversation, id, cp, nil)
}

func (s *Store) put(ctx context.Context, conversation, id string, cp *Checkpoint, expect []kv.Expect) error {
	if conversation == "" || id == "" {
		return fmt.Errorf("store JSON checkpoint: %w: empty id", ErrMalformed)
	}
	data, err := json.Marshal(cp)
	if err != nil {
		return fmt.Errorf("encode JSON checkpoint %s: %w", id, err)
	}
	err = s.rows.Commit(ctx, &kv.Batch{
		Expect: expect,
		Set:    []kv.Set{{Key: keyspace.JSONCheckpoint(conversation, id), Value: data}},
		Refs:   cp.Blobs(),
	})
	if err != nil {
		return fmt.Errorf("store JSON checkpoint %s: %w", id, err)
	}
	return nil
}

// Get returns a checkpoint, or ErrNotFound.
func (s *Store) Get(ctx context.Context, conversation, id string) (*Checkpoint, error) {
	cp, _, err := s.get(ctx, conversation, id)
	return cp, err
}

func (s *Store) get(ctx context.Context, conversation, id string) (*Checkpoint, uint64, error) {
	row, err := s.rows.Get(ctx, keyspace.JSONCheckpoint(conversation, id))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, 0, fmt.Errorf("%w: %s of conversation %s", ErrNotFound, id, conversation)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("load JSON checkpoint %s: %w", id, err)
	}
	cp := new(Checkpoint)
	if err := json.Unmarshal(row.Value, cp); err != nil {
		return nil, 0, fmt.Errorf("load JSON checkpoint %s: %w", id, err)
	}
	return cp, row.Version, nil
}

// Update changes a checkpoint. If another writer changes it at the same time, change
// is called again with the newer one; after several attempts Update fails with
// ErrChanged.
func (s *Store) Update(ctx context.Context, conversation, id string, change func(*Checkpoint) error) error {
	const tries = 20
	for range tries {
		cp, version, err := s.get(ctx, conversation, id)
		if err != nil {
			return err
		}
		if err := change(cp); err != nil {
			return err
		}
		expect := []kv.Expect{{Key: keyspace.JSONCheckpoint(conversation, id), Version: version}}
		if err := s.put(ctx, conversation, id, cp, expect); !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("update JSON checkpoint %s: %w", id, ErrChanged)
}

// List yields the ids of a conversation's checkpoints.
func (s *Store) List(ctx context.Context, conversation string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for row, err := range s.rows.Scan(ctx, keyspace.JSONCheckpoints(conversation), kv.ScanOptions{KeysOnly: true}) {
			if err != nil {
				yield("", fmt.Errorf("list JSON checkpoints: %w", err))
				return
			}
			if !yield(keyspace.Last(row.Key), nil) {
				return
			}
		}
	}
}

// Clear removes all checkpoints of a conversation.
func (s *Store) Clear(ctx context.Context, conversation string) error {
	err := s.rows.Commit(ctx, &kv.Batch{DeleteRange: []kv.Range{keyspace.JSONCheckpoints(conversation)}})
	if err != nil {
		return fmt.Errorf("clear JSON checkpoints of %s: %w", conversation, err)
	}
	return nil
}
