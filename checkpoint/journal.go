package checkpoint

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/swapdir"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// Recovery describes the rollback of an interrupted rewind.
type Recovery struct {
	// Started is when the rewind began.
	Started time.Time
	// Saved is the checkpoint of the state before, which is the current state again.
	Saved string
	// Steps is the number of changes of the rewind.
	Steps int
	// Left lists paths that others changed after the interruption, or that could not
	// be restored because the staged files were removed; they were left unchanged.
	// The checkpoint Saved has their earlier state.
	Left []string
	// CleanupError is why staged files could not be removed, or nil. They are
	// removed when the workspace is next opened.
	CleanupError error
}

// journal returns the change that announces the steps of a swap.
func (w *Workspace) journal(ctx context.Context, swap *swapdir.Swap, saved *Record) (*kv.Batch, error) {
	list, err := encodeSteps(swap.Steps())
	if err != nil {
		return nil, fmt.Errorf("encode journal: %w", err)
	}
	if err := w.s.blobs.Put(ctx, list); err != nil {
		return nil, fmt.Errorf("store journal: %w", err)
	}
	data, err := marshal(&stetv1.JournalRecord{
		Format: format, Workspace: w.id, Stage: []byte(swap.Name()), Steps: list.ID.Bytes(),
		Saved: saved.ID, TimeMs: saved.Time.UnixMilli(),
	})
	if err != nil {
		return nil, fmt.Errorf("encode journal: %w", err)
	}
	key := keyspace.Journal(w.id)
	return &kv.Batch{
		Expect: []kv.Expect{{Key: key}},
		Set:    []kv.Set{{Key: key, Value: data}},
		Refs:   []blob.ID{list.ID},
	}, nil
}

// interrupted reports whether an earlier rewind did not finish.
func (w *Workspace) interrupted(ctx context.Context) (bool, error) {
	_, err := w.s.rows.Get(ctx, keyspace.Journal(w.id))
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, kv.ErrNotFound) {
		return false, fmt.Errorf("look for an interrupted rewind: %w", err)
	}
	row, err := w.s.rows.Get(ctx, keyspace.Workspace(w.id))
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for an interrupted rewind: %w", err)
	}
	rec, err := readWorkspace(row)
	if err != nil {
		return false, fmt.Errorf("load workspace %s: %w", w.id, err)
	}
	names, err := w.leftovers(rec.Nonce)
	return len(names) > 0, err
}

// leftovers lists the staging directories of this store.
func (w *Workspace) leftovers(nonce []byte) ([]string, error) {
	names, err := swapdir.Stages(w.path, stagePrefix(nonce))
	if err != nil {
		return nil, fmt.Errorf("read workspace: %w", err)
	}
	return names, nil
}

// recover completes an interrupted rewind or rolls it back. The caller holds the lock, so the rewind
// is not running.
func (w *Workspace) recover(ctx context.Context) (*Recovery, error) {
	row, err := w.s.rows.Get(ctx, keyspace.Journal(w.id))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for an interrupted rewind: %w", err)
	}
	rec, err := readJournal(row)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	steps, err := w.readSteps(ctx, rec)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	root, err := w.openRoot()
	if err != nil {
		return nil, fmt.Errorf("recover from an interrupted rewind: %w", err)
	}
	defer root.Close()
	if row, err = w.claim(ctx, row); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInterrupted, err)
	}
	swap, err := root.Resume(string(rec.Stage), steps)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInterrupted, err)
	}
	defer swap.Close()
	out := &Recovery{Started: time.UnixMilli(rec.TimeMs), Saved: rec.Saved, Steps: len(steps)}
	if out.Left, err = swap.RollBack(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInterrupted, err)
	}
	err = w.s.rows.Commit(ctx, &kv.Batch{Expect: []kv.Expect{{Key: row.Key, Version: row.Version}}, Delete: []string{row.Key}})
	if err != nil {
		return nil, fmt.Errorf("%w: close journal: %w", ErrInterrupted, err)
	}
	// Everything is restored. Staged files that cannot be removed now do not fail the
	// recovery: the next Open tries again.
	out.CleanupError = swap.Remove()
	return out, nil
}

// claim writes the journal again before anything is rolled back. If that succeeds,
// the visible state is final: the rewind did not happen. A store whose last commit is
// uncertain accepts no writes, and shows the outcome once it is reopened.
func (w *Workspace) claim(ctx context.Context, row kv.Row) (kv.Row, error) {
	err := w.s.rows.Commit(ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: row.Key, Version: row.Version}},
		Set:    []kv.Set{{Key: row.Key, Value: row.Value}},
	})
	if err != nil {
		return kv.Row{}, fmt.Errorf("claim journal: %w", err)
	}
	again, err := w.s.rows.Get(ctx, row.Key)
	if err != nil {
		return kv.Row{}, fmt.Errorf("claim journal: %w", err)
	}
	return again, nil
}

// sweep removes staging directories that no journal names.
func (w *Workspace) sweep(st *state) error {
	if st.row.Id == "" {
		return nil
	}
	names, err := w.leftovers(st.row.Nonce)
	if err != nil || len(names) == 0 {
		return err
	}
	root, err := w.openRoot()
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range names {
		if err := root.RemoveStage(name); err != nil {
			return fmt.Errorf("remove staged files: %w", err)
		}
	}
	return nil
}

// readSteps reads the steps of a journal and rejects any that could lead out of the
// workspace: the store may be hostile.
func (w *Workspace) readSteps(ctx context.Context, rec *stetv1.JournalRecord) ([]swapdir.Step, error) {
	stage := string(rec.Stage)
	if err := workspace.CheckName(stage); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(stage, workspace.StagePrefix) {
		return nil, fmt.Errorf("%w: staging directory %q", ErrBadRecord, stage)
	}
	id, err := blob.IDFromBytes(rec.Steps)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadRecord, err)
	}
	data, err := w.s.blobs.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	var m stetv1.JournalSteps
	if err := proto.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrBadRecord, err)
	}
	return decodeSteps(m.Steps)
}

// decodeSteps is the inverse of encodeSteps.
func decodeSteps(list []*stetv1.JournalStep) ([]swapdir.Step, error) {
	steps := make([]swapdir.Step, len(list))
	for i, s := range list {
		if err := cmp.Or(workspace.CheckPath(string(s.Path)), workspace.CheckHere(string(s.Path))); err != nil {
			return nil, err
		}
		kind := swapdir.StepKind(s.Kind)
		if kind < swapdir.Remove || kind > swapdir.Chmod || s.OldMode > 0o7777 || s.NewMode > 0o7777 {
			return nil, fmt.Errorf("%w: step %d of kind %d", ErrBadRecord, i, s.Kind)
		}
		steps[i] = swapdir.Step{
			Kind: kind, Path: string(s.Path), Slot: int(s.Slot), OldMode: s.OldMode, NewMode: s.NewMode,
			Staged: swapdir.Staged{Inode: s.NewInode, Size: int64(s.NewSize), Mtime: s.NewMtimeNs, Dir: s.NewIsDir},
		}
	}
	return steps, nil
}

// encodeSteps returns the blob that a journal names. The kinds have the same numbers.
func encodeSteps(steps []swapdir.Step) (blob.Blob, error) {
	m := &stetv1.JournalSteps{Steps: make([]*stetv1.JournalStep, len(steps))}
	for i := range steps {
		s := &steps[i]
		m.Steps[i] = &stetv1.JournalStep{
			Kind: stetv1.JournalStepKind(s.Kind), Path: []byte(s.Path), Slot: uint64(s.Slot), OldMode: s.OldMode, NewMode: s.NewMode,
			NewInode: s.Staged.Inode, NewSize: uint64(s.Staged.Size), NewMtimeNs: s.Staged.Mtime, NewIsDir: s.Staged.Dir,
		}
	}
	data, err := marshal(m)
	return blob.New(data), err
}

// stagePrefix is the name prefix of the staging directories of this store, which
// distinguishes leftovers of a crash from directories in use by another store.
func stagePrefix(nonce []byte) string {
	return workspace.StagePrefix + hex.EncodeToString(nonce) + "-"
}

func newStageName(nonce []byte) (string, error) {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("name staging directory: %w", err)
	}
	return stagePrefix(nonce) + hex.EncodeToString(b[:]), nil
}
