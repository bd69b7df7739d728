package workspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
)

// Problem is a part of a tree that cannot be read back.
type Problem struct {
	// Path is where it was found first, "" for the root.
	Path string
	// ID is the blob that is missing or damaged.
	ID blob.ID
	// Err is what is wrong with it.
	Err error
}

// Verify lists what is missing from a tree or damaged in it. Nodes and chunk lists
// are read; contents are only looked up, unless readData is set: then they are read
// and hashed. An error means that the tree could not be examined, not that it is
// damaged.
func Verify(ctx context.Context, store blob.Store, tree blob.ID, readData bool) ([]Problem, error) {
	v := verifier{ctx: ctx, store: store, readData: readData, seen: map[blob.ID]bool{}}
	err := v.dir("", tree)
	if err == nil {
		err = v.flush()
	}
	return v.problems, err
}

type verifier struct {
	ctx      context.Context
	store    blob.Store
	readData bool
	seen     map[blob.ID]bool
	problems []Problem
	ask      []Problem // ids to look up, with their paths
}

// askBatch is the number of ids in one Has call.
const askBatch = 1000

func (v *verifier) dir(path string, node blob.ID) error {
	if node.IsZero() || v.seen[node] {
		return nil
	}
	v.seen[node] = true
	entries, err := Load(v.ctx, v.store, node)
	if err != nil {
		return v.found(path, node, err)
	}
	for _, e := range entries {
		at := join(path, e.Name)
		if len(at) > MaxPath {
			return v.found(at, e.ID, fmt.Errorf("%w: path longer than %d bytes", ErrBadNode, MaxPath))
		}
		if err := v.entry(at, e); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) entry(path string, e Entry) error {
	if e.Kind == Dir {
		return v.dir(path, e.ID)
	}
	if v.seen[e.ID] {
		return nil
	}
	v.seen[e.ID] = true
	if v.readData {
		return v.read(path, e)
	}
	if !e.Chunked {
		return v.lookUp(path, e.ID)
	}
	chunks, err := loadChunks(v.ctx, v.store, e)
	if err != nil {
		return v.found(path, e.ID, err)
	}
	for _, c := range chunks {
		if err := v.lookUp(path, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// read reads a content and hashes it, unless a layer below checks it.
func (v *verifier) read(path string, e Entry) error {
	if e.Kind == Symlink {
		target, err := ReadLink(v.ctx, v.store, e)
		if err == nil && blob.Sum([]byte(target)) != e.ID {
			err = blob.Corrupt(e.ID, "link target has another SHA-256")
		}
		return v.found(path, e.ID, err)
	}
	if e.Chunked {
		return v.readChunks(path, e)
	}
	return v.found(path, e.ID, v.hash(e.ID, e.Size))
}

func (v *verifier) readChunks(path string, e Entry) error {
	chunks, err := loadChunks(v.ctx, v.store, e)
	if err != nil {
		return v.found(path, e.ID, err)
	}
	for _, c := range chunks {
		if v.seen[c.ID] {
			continue
		}
		v.seen[c.ID] = true
		if err := v.found(path, c.ID, v.hash(c.ID, c.Size)); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) hash(id blob.ID, size int64) error {
	r, err := blob.Open(v.ctx, v.store, id)
	if err != nil {
		return err
	}
	defer r.Close()
	h := sha256.New()
	n, err := io.Copy(h, r)
	switch {
	case err != nil:
		return err
	case n != size:
		return wrongSize(id, size)
	case blob.ID(h.Sum(nil)) != id:
		return blob.Corrupt(id, "content has another SHA-256")
	}
	return nil
}

// found records a problem. An error of the store or the context, rather than of the
// blob, ends the verification.
func (v *verifier) found(path string, id blob.ID, err error) error {
	switch {
	case err == nil:
		return nil
	case v.ctx.Err() != nil:
		return v.ctx.Err()
	case errors.Is(err, blob.ErrNotFound), errors.Is(err, blob.ErrCorrupt), errors.Is(err, ErrBadNode):
		v.problems = append(v.problems, Problem{Path: path, ID: id, Err: err})
		return nil
	}
	return fmt.Errorf("verify %q: %w", path, err)
}

func (v *verifier) lookUp(path string, id blob.ID) error {
	v.ask = append(v.ask, Problem{Path: path, ID: id})
	if len(v.ask) < askBatch {
		return nil
	}
	return v.flush()
}

func (v *verifier) flush() error {
	if len(v.ask) == 0 {
		return nil
	}
	ids := make([]blob.ID, len(v.ask))
	for i, p := range v.ask {
		ids[i] = p.ID
	}
	has, err := v.store.Has(v.ctx, ids...)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	for i, p := range v.ask {
		if !has[i] {
			p.Err = blob.NotFound(p.ID)
			v.problems = append(v.problems, p)
		}
	}
	v.ask = v.ask[:0]
	return nil
}
