package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Pin is a name for a checkpoint.
type Pin struct {
	Name       string
	Checkpoint string
	Time       time.Time
}

// Pin names a checkpoint. If another checkpoint has the name, it moves. Retention
// policies keep pinned checkpoints.
func (s *Service) Pin(ctx context.Context, name, id, author string) error {
	if name == "" {
		return fmt.Errorf("%w: empty pin", ErrBadRef)
	}
	err := s.record(ctx, func(ctx context.Context) error {
		rec, err := s.Get(ctx, id)
		if err != nil {
			return err
		}
		now := s.opts.Now()
		data, err := marshal(&stetv1.CheckpointPin{Format: format, Name: name, Checkpoint: rec.ID, TimeMs: now.UnixMilli()})
		if err != nil {
			return err
		}
		b := &kv.Batch{
			Expect: []kv.Expect{{Key: keyspace.Checkpoint(rec.ID), Version: rec.version}},
			Set:    []kv.Set{{Key: keyspace.CheckpointPin(name), Value: data}},
		}
		op := &Operation{
			Kind: OpPin, Author: author, Workspace: rec.Workspace, Conversation: rec.Conversation,
			Target: rec.ID, Description: "pin " + name,
		}
		if err := s.Append(ctx, op, b); err != nil {
			return err
		}
		return s.rows.Commit(ctx, b)
	})
	if err != nil {
		return fmt.Errorf("pin %q: %w", name, err)
	}
	return nil
}

// Unpin removes a name.
func (s *Service) Unpin(ctx context.Context, name, author string) error {
	err := s.record(ctx, func(ctx context.Context) error {
		row, err := s.rows.Get(ctx, keyspace.CheckpointPin(name))
		if errors.Is(err, kv.ErrNotFound) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		b := &kv.Batch{Expect: []kv.Expect{{Key: row.Key, Version: row.Version}}, Delete: []string{row.Key}}
		if err := s.Append(ctx, &Operation{Kind: OpUnpin, Author: author, Description: "unpin " + name}, b); err != nil {
			return err
		}
		return s.rows.Commit(ctx, b)
	})
	if err != nil {
		return fmt.Errorf("unpin %q: %w", name, err)
	}
	return nil
}

// Pinned returns the checkpoint of a name.
func (s *Service) Pinned(ctx context.Context, name string) (*Record, error) {
	row, err := s.rows.Get(ctx, keyspace.CheckpointPin(name))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("%w: pin %q", ErrNotFound, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read pin %q: %w", name, err)
	}
	pin, err := readPin(row)
	if err != nil {
		return nil, fmt.Errorf("read pin %q: %w", name, err)
	}
	return s.Get(ctx, pin.Checkpoint)
}

// Pins yields all names, in order.
func (s *Service) Pins(ctx context.Context) iter.Seq2[Pin, error] {
	return func(yield func(Pin, error) bool) {
		for row, err := range s.rows.Scan(ctx, keyspace.CheckpointPins(), kv.ScanOptions{}) {
			if err != nil {
				yield(Pin{}, fmt.Errorf("list pins: %w", err))
				return
			}
			pin, err := readPin(row)
			if !yield(pin, err) || err != nil {
				return
			}
		}
	}
}
