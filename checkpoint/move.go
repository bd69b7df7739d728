package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/fault"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// OpMove is the kind of operation that moves a history to another directory.
const OpMove = "move"

// ErrInPlace says that a history is not moved, since the old directory is still in
// use or the new one has a history of its own.
var ErrInPlace = fault.Named(fault.Conflict, "not-moved", "not moved")

// Moved is the result of Move.
type Moved struct {
	From, To string // absolute paths
	// Checkpoints is how many To has now; Exchanged is how many From got from To.
	Checkpoints, Exchanged int
	Operation              *Operation
}

// Move moves the checkpoints and the log of a renamed directory to its new path, in
// one commit. It fails if the old directory still has content, or if the new one has
// checkpoints, unless force is set: then the two histories are exchanged, and nothing
// is lost.
func (s *Service) Move(ctx context.Context, from, to string, force bool) (*Moved, error) {
	m, err := moveOf(from, to)
	if err != nil {
		return nil, fmt.Errorf("move: %w", err)
	}
	if !force {
		if names, err := os.ReadDir(m.From); err == nil && len(names) > 0 {
			return nil, fmt.Errorf("move: %w: %q is still there and not empty", ErrInPlace, m.From)
		}
	}
	ids := []string{WorkspaceID(m.From), WorkspaceID(m.To)}
	for _, id := range slices.Sorted(slices.Values(ids)) { // in a fixed order, to avoid deadlocks
		unlock, err := s.lock(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("move: %w", err)
		}
		defer unlock()
	}
	err = s.record(ctx, func(ctx context.Context) error { return s.move(ctx, m, ids[0], ids[1], force) })
	if err != nil {
		return nil, fmt.Errorf("move: %w", err)
	}
	for _, id := range ids { // they describe the old directory
		if err := (&Workspace{s: s, id: id}).dropIndex(); err != nil {
			return m, fmt.Errorf("move: %w", err)
		}
	}
	return m, nil
}

// moveOf resolves the two paths. The old one need not exist.
func moveOf(from, to string) (*Moved, error) {
	abs, err := filepath.Abs(to)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return nil, errors.Join(err, fmt.Errorf("%q is not a directory", abs))
	}
	old, err := filepath.Abs(from)
	if err != nil {
		return nil, err
	}
	if resolved, err := filepath.EvalSymlinks(old); err == nil {
		old = resolved
	} else if parent, err := filepath.EvalSymlinks(filepath.Dir(old)); err == nil {
		old = filepath.Join(parent, filepath.Base(old))
	}
	if old == abs {
		return nil, fmt.Errorf("%w: both are %q", ErrInPlace, abs)
	}
	return &Moved{From: old, To: abs}, nil
}

func (s *Service) move(ctx context.Context, m *Moved, from, to string, force bool) error {
	old, err := (&Workspace{s: s, id: from}).load(ctx)
	if err != nil {
		return err
	}
	other, err := (&Workspace{s: s, id: to}).load(ctx)
	if err != nil {
		return err
	}
	switch {
	case old.version == 0:
		return fmt.Errorf("%w: %q has no checkpoints", ErrNotFound, m.From)
	case other.version != 0 && !force:
		return fmt.Errorf("%w: %q has checkpoints of its own", ErrInPlace, m.To)
	}
	for _, id := range []string{from, to} {
		_, err := s.rows.Get(ctx, keyspace.Journal(id))
		if err == nil {
			return fmt.Errorf("%w: a rewind of it was interrupted; move the directory back, and open it there first", ErrInterrupted)
		}
		if !errors.Is(err, kv.ErrNotFound) {
			return err
		}
	}
	b := &kv.Batch{Expect: []kv.Expect{{Key: keyspace.Workspace(from), Version: old.version}, {Key: keyspace.Workspace(to), Version: other.version}}}
	if m.Checkpoints, err = s.rename(ctx, b, old, to, m.To); err != nil {
		return err
	}
	if other.version != 0 {
		if m.Exchanged, err = s.rename(ctx, b, other, from, m.From); err != nil {
			return err
		}
	} else {
		b.Delete = append(b.Delete, keyspace.Workspace(from))
	}
	if err := s.movePins(ctx, b, from, to, other.version != 0); err != nil {
		return err
	}
	if err := s.renameOperations(ctx, b, map[string]string{from: to, to: from}); err != nil {
		return err
	}
	m.Operation = &Operation{Kind: OpMove, Workspace: to, Description: fmt.Sprintf("move %q to %q", m.From, m.To)}
	if err := s.Append(ctx, m.Operation, b); err != nil {
		return err
	}
	return s.rows.Commit(ctx, b)
}

// rename adds to a batch the changes that give a workspace another id and path.
func (s *Service) rename(ctx context.Context, b *kv.Batch, st *state, id, path string) (checkpoints int, err error) {
	row := proto.CloneOf(st.row)
	was := row.Id
	row.Id, row.Path = id, []byte(path)
	row.Device, row.Inode = identity(path)
	data, err := marshal(row)
	if err != nil {
		return 0, err
	}
	b.Set = append(b.Set, kv.Set{Key: keyspace.Workspace(id), Value: data})
	for index, err := range s.rows.Scan(ctx, keyspace.WorkspaceCheckpoints(was), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return 0, err
		}
		checkpoint := keyspace.Last(index.Key)
		b.Delete = append(b.Delete, index.Key)
		b.Set = append(b.Set, kv.Set{Key: keyspace.WorkspaceCheckpoint(id, checkpoint)})
		row, err := s.rows.Get(ctx, keyspace.Checkpoint(checkpoint))
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err != nil {
			return 0, err
		}
		var rec stetv1.CheckpointRecord
		if err := unmarshal(row.Value, &rec); err != nil {
			return 0, fmt.Errorf("checkpoint %s: %w", checkpoint, err)
		}
		rec.Workspace, rec.Original = id, rewritten(row.Value, rec.Original)
		if data, err = marshal(&rec); err != nil {
			return 0, err
		}
		b.Expect = append(b.Expect, kv.Expect{Key: row.Key, Version: row.Version})
		b.Set = append(b.Set, kv.Set{Key: row.Key, Value: data})
		checkpoints++
	}
	return checkpoints, nil
}

// movePins adds to a batch the changes that give the names of one workspace to
// another. The other one's names go the opposite way if the histories are exchanged
// or the names collide: a workspace without a history may have names for imported
// checkpoints.
func (s *Service) movePins(ctx context.Context, b *kv.Batch, from, to string, exchange bool) error {
	var pins []Pin
	moved := make(map[string]bool) // names
	for row, err := range s.rows.Scan(ctx, keyspace.CheckpointPins(), kv.ScanOptions{}) {
		if err != nil {
			return fmt.Errorf("list pins: %w", err)
		}
		pin, err := readPin(row)
		if err != nil {
			return fmt.Errorf("read pin: %w", err)
		}
		if pin.Workspace != from && pin.Workspace != to {
			continue // or of an earlier release, which follows its checkpoint
		}
		pins = append(pins, pin)
		if pin.Workspace == from {
			moved[pin.Name] = true
		}
		b.Expect = append(b.Expect, kv.Expect{Key: row.Key, Version: row.Version})
	}
	other := map[string]string{from: to, to: from}
	for _, pin := range pins {
		if pin.Workspace == to && !exchange && !moved[pin.Name] {
			continue
		}
		b.Delete = append(b.Delete, keyspace.CheckpointPin(pin.Name, pin.Workspace))
		pin.Workspace = other[pin.Workspace]
		row, err := pin.Row()
		if err != nil {
			return err
		}
		b.Set = append(b.Set, kv.Set{Key: row.Key, Value: row.Value})
	}
	return nil
}

// renameOperations updates the entries of the log.
func (s *Service) renameOperations(ctx context.Context, b *kv.Batch, ids map[string]string) error {
	for row, err := range s.rows.Scan(ctx, keyspace.Operations(), kv.ScanOptions{}) {
		if err != nil {
			return fmt.Errorf("read log of operations: %w", err)
		}
		var op stetv1.OperationRecord
		if err := unmarshal(row.Value, &op); err != nil {
			return fmt.Errorf("read operation: %w", err)
		}
		id, ok := ids[op.Workspace]
		if !ok {
			continue
		}
		op.Workspace, op.Original = id, rewritten(row.Value, op.Original)
		data, err := marshal(&op)
		if err != nil {
			return err
		}
		b.Expect = append(b.Expect, kv.Expect{Key: row.Key, Version: row.Version})
		b.Set = append(b.Set, kv.Set{Key: row.Key, Value: data})
	}
	return nil
}

// FormerPath returns the earlier path of a directory without checkpoints: the path of
// a known directory with its device and inode that no longer exists. It returns "" if
// there is none.
func (s *Service) FormerPath(ctx context.Context, path string) (string, error) {
	device, inode := identity(path)
	if inode == 0 {
		return "", nil
	}
	for row, err := range s.rows.Scan(ctx, keyspace.Workspaces(), kv.ScanOptions{}) {
		if err != nil {
			return "", fmt.Errorf("list workspaces: %w", err)
		}
		var known stetv1.WorkspaceRecord
		if err := unmarshal(row.Value, &known); err != nil {
			continue // opening that workspace reports it
		}
		if known.Device != device || known.Inode != inode || string(known.Path) == path {
			continue
		}
		if _, err := os.Lstat(string(known.Path)); isNotExist(err) {
			return string(known.Path), nil
		}
	}
	return "", nil
}
