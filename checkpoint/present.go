package checkpoint

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

// Present captures the workspace without making a checkpoint: the tree is in the
// store, but a collector may remove it. It does not wait for the lock of the
// workspace. The result has no index.
func (w *Workspace) Present(ctx context.Context) (*workspace.Result, error) {
	return w.presentWith(ctx, false)
}

// Outline is Present without the contents of files: they are hashed, and the tree can be
// compared with others, but its files cannot be read.
func (w *Workspace) Outline(ctx context.Context) (*workspace.Result, error) {
	return w.presentWith(ctx, true)
}

func (w *Workspace) presentWith(ctx context.Context, outline bool) (*workspace.Result, error) {
	st, err := w.load(ctx)
	if err != nil {
		return nil, err
	}
	res, err := w.presentBy(ctx, st, outline)
	if isDamage(err) {
		// A collector removed blobs that the index has: read everything again.
		res, err = w.look(ctx, st.known(nil), outline)
	}
	if err != nil {
		return nil, fmt.Errorf("capture the present: %w", err)
	}
	res.Index = nil // it may read from a closed file
	return res, nil
}

// presentBy scans the workspace with the saved index. It opens the index itself,
// because the holder of the workspace's lock may close the other one.
func (w *Workspace) presentBy(ctx context.Context, st *state, outline bool) (*workspace.Result, error) {
	var index *workspace.Index
	if w.s.opts.IndexDir != "" {
		if saved, err := workspace.OpenSealedIndex(w.s.file(w.id, ".index"), w.s.opts.IndexSeal); err == nil { // else it takes longer
			defer saved.Close() // only read
			index = saved
		}
	}
	res, err := w.look(ctx, st.known(index), outline)
	if err != nil || index == nil {
		return res, err
	}
	var kept blob.ID
	if st.tip != nil {
		kept = st.tip.Tree
	}
	if index.Tree() == kept {
		return res, nil
	}
	if outline {
		_, err = newRefs(ctx, w.s.blobs, kept, res.Tree) // reads the directories
		return res, err
	}
	return res, w.whole(ctx, kept, res.Tree)
}

// look scans the workspace.
func (w *Workspace) look(ctx context.Context, index *workspace.Index, outline bool) (*workspace.Result, error) {
	if w.refused != nil {
		return nil, w.refused
	}
	opts := w.s.opts.Scan
	opts.NoContents = outline
	opts.Touched, opts.Progress, opts.Force = nil, nil, w.s.opts.Force
	return workspace.Scan(ctx, w.s.blobs, w.path, index, &opts)
}

// whole returns blob.ErrNotFound if the store lacks a blob of a tree that is not in
// another, kept tree.
func (w *Workspace) whole(ctx context.Context, kept, tree blob.ID) error {
	ids, err := newRefs(ctx, w.s.blobs, kept, tree)
	if err != nil {
		return err
	}
	has, err := w.s.blobs.Has(ctx, ids...)
	if err != nil {
		return err
	}
	for i, there := range has {
		if !there {
			return fmt.Errorf("%w: %s", blob.ErrNotFound, ids[i])
		}
	}
	return nil
}
