package cursor

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/stet-dev/stet/checkpoint/jsoncheckpoint"
)

// Checkpoint reads a workspace checkpoint of a conversation, from its row or from
// inside a conversation's old row. If it cannot be fully decoded, the error is
// ErrMalformed: a misread change would give a file wrong content.
func (s *Store) Checkpoint(ctx context.Context, conv *Conversation, id string) (*jsoncheckpoint.Checkpoint, error) {
	raw, err := s.CheckpointRow(ctx, conv, id)
	if err != nil {
		return nil, err
	}
	return DecodeCheckpoint(id, raw)
}

// DecodeCheckpoint decodes the row of a workspace checkpoint. If it cannot be fully
// decoded, the error is ErrMalformed.
func DecodeCheckpoint(id string, raw []byte) (*jsoncheckpoint.Checkpoint, error) {
	cp := new(jsoncheckpoint.Checkpoint)
	if err := json.Unmarshal(raw, cp); err != nil {
		return nil, fmt.Errorf("read checkpoint %s: %w: %w", id, ErrMalformed, err)
	}
	return cp, nil
}

// CheckpointRow returns the stored row of a workspace checkpoint. If there is none,
// the error wraps ErrNotFound.
func (s *Store) CheckpointRow(ctx context.Context, conv *Conversation, id string) ([]byte, error) {
	if raw, ok := conv.inlineCheckpoints[id]; ok {
		return raw, nil
	}
	v, err := s.Value(ctx, CheckpointPrefix+conv.ID+":"+id)
	if err != nil {
		return nil, fmt.Errorf("read checkpoint %s: %w", id, err)
	}
	return v.Data, nil
}

// Checkpoints yields the ids of a conversation's workspace checkpoints: those in rows
// in key order, then those inside its old row.
func (s *Store) Checkpoints(ctx context.Context, conv *Conversation) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		prefix := CheckpointPrefix + conv.ID + ":"
		for row, err := range s.scan(ctx, prefixRange(prefix), scanSizes) {
			if err != nil {
				yield("", err)
				return
			}
			id := row.key[len(prefix):]
			if _, inside := conv.inlineCheckpoints[id]; inside {
				continue // CheckpointRow prefers that one
			}
			if !row.value.Absent() && !yield(id, nil) {
				return
			}
		}
		for _, id := range sortedKeys(conv.inlineCheckpoints) {
			if !yield(id, nil) {
				return
			}
		}
	}
}
