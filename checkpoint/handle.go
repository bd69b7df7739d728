package checkpoint

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// Workspace is a directory managed by a Service. It is safe for concurrent use;
// captures and rewinds of one directory wait for each other.
type Workspace struct {
	s    *Service
	id   string
	path string

	refused   error     // why the directory cannot be a workspace; only after Look
	recovered *Recovery // by Open
	cleanup   error     // of Open

	mu    sync.Mutex
	index *workspace.Index // guarded by mu; nil until needed
}

// Refused says why the directory cannot be a workspace; see Look.
func (w *Workspace) Refused() error { return w.refused }

// WorkspaceID returns the id of a directory, given its absolute path without
// symbolic links.
func WorkspaceID(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:8])
}

// Open opens a directory. It resolves links in its path. If a rewind of it was
// interrupted, Open rolls it back first, and Recovered describes that. The store must
// not be inside of it.
func (s *Service) Open(ctx context.Context, path string) (*Workspace, error) {
	w, err := s.Look(ctx, path)
	if err == nil && w.refused != nil {
		w, err = nil, w.refused
	}
	return w, err
}

// Look is Open for reading what is kept. It also opens a directory that cannot be a
// workspace, such as a home or one that contains the store: checkpoints and conversations
// are found from there, and whatever would capture, read or change its files fails with
// the error of Open. Refused returns that error.
func (s *Service) Look(ctx context.Context, path string) (*Workspace, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	w := &Workspace{s: s, id: WorkspaceID(abs), path: abs}
	if !s.opts.Force {
		w.refused = workspace.RootAllowed(abs)
	}
	if w.refused == nil {
		w.refused = s.apart(abs)
	}
	if w.refused != nil {
		return w, nil
	}
	pending, err := w.interrupted(ctx)
	if err != nil || !pending {
		return w, err
	}
	st, leave, err := w.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	w.recovered, w.cleanup = st.recovered, w.sweep(st)
	return w, nil
}

// apart rejects a directory that contains the store, since its checkpoints would contain
// the store and a rewind would rewind it, and one inside the store, where a rewind would
// take away what checkpoints need.
func (s *Service) apart(path string) error {
	for _, dir := range []string{s.opts.StoreDir, s.opts.IndexDir} {
		if dir == "" {
			continue
		}
		store, err := realPath(dir)
		if err != nil {
			return fmt.Errorf("open workspace: %w", err)
		}
		switch {
		case isIn(store, path):
			return fmt.Errorf("%w: %s contains files of the store, in %s", workspace.ErrRootRefused, path, store)
		case isIn(path, store):
			return fmt.Errorf("%w: %s is inside the store %s", workspace.ErrRootRefused, path, store)
		}
	}
	return nil
}

// isIn reports whether a path is a directory or below it.
func isIn(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// realPath resolves the links in the path of a directory, which may not exist yet.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, strings.TrimPrefix(path, dir)), nil
		}
		if dir == filepath.Dir(dir) {
			return path, nil
		}
	}
}

// LeavesOut reports whether the rules of a workspace leave out a directory below it, so that
// its checkpoints have nothing of what is made there.
func (s *Service) LeavesOut(root, dir string) (bool, error) {
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return false, fmt.Errorf("find %q in workspace: %w", dir, err)
	}
	why, err := s.opts.Scan.LeavesOutDir(root, filepath.ToSlash(rel))
	return why != "", err
}

// WorkspacePath returns the path of a directory that has checkpoints, by its id,
// as it was when the first was made, or ErrNotFound. Its checkpoints need not be
// readable. A path is bytes, not necessarily UTF-8.
func (s *Service) WorkspacePath(ctx context.Context, id string) (string, error) {
	row, err := s.rows.Get(ctx, keyspace.Workspace(id))
	if errors.Is(err, kv.ErrNotFound) {
		return "", fmt.Errorf("%w: workspace %q", ErrNotFound, id)
	}
	if err != nil {
		return "", fmt.Errorf("load workspace %s: %w", id, err)
	}
	rec, err := readWorkspace(row)
	if err != nil {
		return "", fmt.Errorf("load workspace %s: %w", id, err)
	}
	return string(rec.Path), nil
}

// ID returns the id of the workspace.
func (w *Workspace) ID() string { return w.id }

// Path returns the absolute path of the directory, without symbolic links.
func (w *Workspace) Path() string { return w.path }

// Recovered returns what Open did about an interrupted rewind, or nil if there
// was none.
func (w *Workspace) Recovered() *Recovery { return w.recovered }

// CleanupError returns why Open could not remove staged files that a rewind left, or
// nil. They are harmless and are removed later, for example on a network file system
// after the last program closes them.
func (w *Workspace) CleanupError() error { return w.cleanup }

// Close releases the files of the workspace.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.index == nil {
		return nil
	}
	err := w.index.Close()
	w.index = nil
	return err
}

// state is the state of a workspace under its lock.
type state struct {
	row       *stetv1.WorkspaceRecord // never nil; id is empty before the first checkpoint
	version   uint64                  // of the row; 0 if there is none
	tip       *Record                 // the latest checkpoint, or nil
	recovered *Recovery               // interrupted rewind that enter handled, or nil
}

// enter takes the lock, rolls back an interrupted rewind and loads the state of the
// workspace. The caller calls leave.
func (w *Workspace) enter(ctx context.Context) (st *state, leave func(), err error) {
	if w.refused != nil {
		return nil, nil, w.refused
	}
	unlock, err := w.s.lock(ctx, w.id)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	st, err = w.load(ctx)
	if err != nil {
		return nil, nil, err
	}
	if st.recovered, err = w.recover(ctx); err != nil {
		return nil, nil, err
	}
	return st, unlock, nil
}

// load reads the rows of the workspace.
func (w *Workspace) load(ctx context.Context) (*state, error) {
	st := &state{row: &stetv1.WorkspaceRecord{}}
	row, err := w.s.rows.Get(ctx, keyspace.Workspace(w.id))
	if errors.Is(err, kv.ErrNotFound) {
		return st, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load workspace %s: %w", w.id, err)
	}
	if st.row, err = readWorkspace(row); err != nil {
		return nil, fmt.Errorf("load workspace %s: %w", w.id, err)
	}
	st.version = row.Version
	st.tip, err = w.s.Get(ctx, st.row.LastCheckpoint)
	if errors.Is(err, ErrNotFound) {
		// A retention policy may remove any checkpoint, even the last one.
		st.tip, err = w.latest(ctx)
	}
	return st, err
}

// latest returns the newest remaining checkpoint, or nil.
func (w *Workspace) latest(ctx context.Context) (*Record, error) {
	for rec, err := range w.newestFirst(ctx, "") {
		return rec, err
	}
	return nil, nil
}

// describe gives a workspace its row, if it has none yet. The row is stored with the
// first checkpoint.
func (w *Workspace) describe(st *state, at time.Time) error {
	if st.row.Id != "" {
		return nil
	}
	st.row = &stetv1.WorkspaceRecord{
		Format: format, Id: w.id, Path: []byte(w.path),
		Nonce: make([]byte, nonceSize), CreatedAtMs: at.UnixMilli(),
	}
	if _, err := rand.Read(st.row.Nonce); err != nil {
		return fmt.Errorf("describe workspace: %w", err)
	}
	return nil
}

// advance records the turns that were active until a checkpoint made by by, and
// returns the row of the workspace after it.
func (w *Workspace) advance(ctx context.Context, st *state, rec *Record, by Holder) (kv.Set, error) {
	turns, err := w.turns(ctx, st)
	if err != nil {
		return kv.Set{}, err
	}
	rec.AtWork, turns = turns.Observe(rec, by, w.s.opts.life)
	rec.AtWork = rec.AtWork.with(rec.beside)
	if err := w.describe(st, rec.Time); err != nil {
		return kv.Set{}, err
	}
	row := proto.CloneOf(st.row)
	row.LastCheckpoint, row.LastNumber, row.Turns = rec.ID, rec.Number, turns.encode()
	if device, inode := identity(w.path); inode != 0 {
		row.Device, row.Inode = device, inode
	}
	data, err := marshal(row)
	return kv.Set{Key: keyspace.Workspace(w.id), Value: data}, err
}

// openIndex returns the stat index of the last scan, or nil. The caller holds
// the workspace's lock.
func (w *Workspace) openIndex(st *state) *workspace.Index {
	w.mu.Lock()
	defer w.mu.Unlock()
	fits := func() bool { return w.index != nil && st.tip != nil && w.index.Tree() == st.tip.Tree }
	if fits() || w.s.opts.IndexDir == "" {
		return w.index
	}
	// Another process may have captured since: its index is newer than ours.
	index, err := workspace.OpenSealedIndex(w.s.file(w.id, ".index"), w.s.opts.IndexSeal)
	if err != nil {
		return w.index // an index is only a cache
	}
	if w.index != nil {
		_ = w.index.Close() // a file that was only read
	}
	w.index = index
	return w.index
}

// keepIndex remembers the index of a tree that has been committed. Ignore its error:
// the next scan only takes longer.
func (w *Workspace) keepIndex(index *workspace.Index) error {
	if w.s.of != nil {
		return nil // it names blobs that are not stored
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.index = index
	if w.s.opts.IndexDir == "" {
		return nil
	}
	return index.SaveSealed(w.s.file(w.id, ".index"), w.s.opts.IndexSeal)
}

// dropIndex drops an index whose blobs are gone, also on disk. The caller holds the
// workspace's lock.
func (w *Workspace) dropIndex() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.index = nil
	if w.s.opts.IndexDir == "" {
		return nil
	}
	if err := os.Remove(w.s.file(w.id, ".index")); err != nil && !isNotExist(err) {
		return fmt.Errorf("drop stat index: %w", err)
	}
	return nil
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
