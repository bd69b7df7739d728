package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// pinFormat is the version of pins that belong to a workspace. Pins of format 1
// belong to the workspace of their checkpoint, and no two have the same name.
const pinFormat = 2

// Pin is a name for a checkpoint. It belongs to a workspace; other workspaces may use
// the same name.
type Pin struct {
	Name string
	// Workspace is the id of the workspace that has the name, which is that of the
	// checkpoint. It is empty if an earlier release wrote the pin and the checkpoint
	// cannot be read.
	Workspace  string
	Checkpoint string
	Time       time.Time
}

// Row returns the row that stores the pin.
func (p Pin) Row() (kv.Row, error) {
	data, err := marshal(&stetv1.CheckpointPin{
		Format: pinFormat, Name: p.Name, Checkpoint: p.Checkpoint, TimeMs: p.Time.UnixMilli(), Workspace: p.Workspace,
	})
	return kv.Row{Key: keyspace.CheckpointPin(p.Name, p.Workspace), Value: data}, err
}

// Pin names a checkpoint in its workspace. If another checkpoint of the workspace has
// the name, the name moves. Retention policies keep pinned checkpoints.
func (s *Service) Pin(ctx context.Context, name, id, author string) error {
	if err := checkPinName(name); err != nil {
		return err
	}
	err := s.record(ctx, func(ctx context.Context) error {
		rec, err := s.Get(ctx, id)
		if err != nil {
			return err
		}
		row, err := Pin{Name: name, Workspace: rec.Workspace, Checkpoint: rec.ID, Time: s.opts.Now()}.Row()
		if err != nil {
			return err
		}
		b := &kv.Batch{
			Expect: []kv.Expect{{Key: keyspace.Checkpoint(rec.ID), Version: rec.version}},
			Set:    []kv.Set{{Key: row.Key, Value: row.Value}},
		}
		if err := s.replaceShared(ctx, name, rec.Workspace, b); err != nil {
			return err
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

// replaceShared removes, in a batch, the name that an earlier release gave a checkpoint
// of the workspace.
func (s *Service) replaceShared(ctx context.Context, name, workspace string, b *kv.Batch) error {
	row, err := s.rows.Get(ctx, keyspace.SharedCheckpointPin(name))
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	pin, err := readPin(row)
	if err != nil {
		return err
	}
	if pin, err = s.placed(ctx, pin); err == nil && pin.Workspace == workspace {
		b.Expect = append(b.Expect, kv.Expect{Key: row.Key, Version: row.Version})
		b.Delete = append(b.Delete, row.Key)
	}
	return err
}

// Unpin removes the name that a workspace has. Without a workspace it removes the only
// one of that name; the error is an *AmbiguousError if several workspaces have it.
func (s *Service) Unpin(ctx context.Context, workspace, name, author string) error {
	err := s.record(ctx, func(ctx context.Context) error {
		pin, err := s.PinNamed(ctx, workspace, name)
		if err != nil {
			return err
		}
		b := &kv.Batch{}
		row, err := s.rows.Get(ctx, keyspace.CheckpointPin(name, pin.Workspace))
		switch {
		case err == nil:
			b.Expect = append(b.Expect, kv.Expect{Key: row.Key, Version: row.Version})
			b.Delete = append(b.Delete, row.Key)
		case !errors.Is(err, kv.ErrNotFound):
			return err
		}
		if err := s.replaceShared(ctx, name, pin.Workspace, b); err != nil {
			return err
		}
		op := &Operation{Kind: OpUnpin, Author: author, Workspace: pin.Workspace, Description: "unpin " + name}
		if err := s.Append(ctx, op, b); err != nil {
			return err
		}
		return s.rows.Commit(ctx, b)
	})
	if err != nil {
		return fmt.Errorf("unpin %q: %w", name, err)
	}
	return nil
}

// Pinned returns the checkpoint with a name: the one in the workspace, else the only
// one in any workspace. The error wraps ErrNotFound, or is an *AmbiguousError.
func (s *Service) Pinned(ctx context.Context, workspace, name string) (*Record, error) {
	pin, err := s.PinNamed(ctx, workspace, name)
	if workspace != "" && errors.Is(err, ErrNotFound) {
		pin, err = s.PinNamed(ctx, "", name)
	}
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, pin.Checkpoint)
}

// PinNamed returns the pin of a name in a workspace. Without a workspace it returns the
// only one of that name. The error wraps ErrNotFound, or is an *AmbiguousError.
func (s *Service) PinNamed(ctx context.Context, workspace, name string) (Pin, error) {
	shared := keyspace.SharedCheckpointPin(name)
	found, err := s.pinsIn(ctx, keyspace.CheckpointPinsNamed(name), kv.Range{Start: shared, End: shared + "\x00"})
	if err != nil {
		return Pin{}, fmt.Errorf("read pin %q: %w", name, err)
	}
	if workspace != "" {
		found = slices.DeleteFunc(found, func(p Pin) bool { return p.Workspace != workspace })
	}
	switch len(found) {
	case 0:
		return Pin{}, fmt.Errorf("%w: pin %q", ErrNotFound, name)
	case 1:
		return found[0], nil
	}
	several := &AmbiguousError{Ref: "pin:" + name}
	for _, pin := range found {
		several.Candidates = append(several.Candidates, pin.Checkpoint)
	}
	return Pin{}, several
}

// Pins yields all names, in order.
func (s *Service) Pins(ctx context.Context) iter.Seq2[Pin, error] {
	return func(yield func(Pin, error) bool) {
		pins, err := s.pinsIn(ctx, keyspace.CheckpointPins())
		if err != nil {
			yield(Pin{}, fmt.Errorf("list pins: %w", err))
			return
		}
		for _, pin := range pins {
			if !yield(pin, nil) {
				return
			}
		}
	}
}

// pinsIn returns the pins of some rows, in order. One that an earlier release wrote
// counts only until its workspace uses the name again.
func (s *Service) pinsIn(ctx context.Context, ranges ...kv.Range) ([]Pin, error) {
	var pins, shared []Pin
	for _, r := range ranges {
		for row, err := range s.rows.Scan(ctx, r, kv.ScanOptions{}) {
			if err != nil {
				return nil, err
			}
			pin, err := readPin(row)
			switch {
			case err != nil:
				return nil, err
			case pin.Workspace == "":
				shared = append(shared, pin)
			default:
				pins = append(pins, pin)
			}
		}
	}
	given := make(map[[2]string]bool)
	for _, pin := range pins {
		given[[2]string{pin.Name, pin.Workspace}] = true
	}
	for _, pin := range shared {
		pin, err := s.placed(ctx, pin)
		if err != nil {
			return nil, err
		}
		if !given[[2]string{pin.Name, pin.Workspace}] {
			pins = append(pins, pin)
		}
	}
	slices.SortFunc(pins, func(a, b Pin) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Workspace, b.Workspace))
	})
	return pins, nil
}

// placed adds the workspace to a pin that an earlier release wrote.
func (s *Service) placed(ctx context.Context, pin Pin) (Pin, error) {
	rec, err := s.Get(ctx, pin.Checkpoint)
	switch {
	case err == nil:
		pin.Workspace = rec.Workspace
	case !errors.Is(err, ErrNotFound) && !kv.Damaged(err):
		return Pin{}, err
	}
	return pin, nil
}
