package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/stet-dev/stet/blob"
)

// Load returns the entries of one directory, sorted by name. The zero id is the
// empty directory.
func Load(ctx context.Context, store blob.Store, node blob.ID) ([]Entry, error) {
	if node.IsZero() {
		return nil, nil
	}
	data, err := store.Get(ctx, node)
	if err != nil {
		return nil, fmt.Errorf("read directory node: %w", err)
	}
	entries, err := DecodeNode(data)
	if err != nil {
		return nil, fmt.Errorf("read directory node %s: %w", node, err)
	}
	return entries, nil
}

// Walk calls fn for every entry of a tree, a directory before its content, in the
// order of names. If fn returns fs.SkipDir for a directory, its content is skipped;
// any other error ends the walk.
func Walk(ctx context.Context, store blob.Store, tree blob.ID, fn func(path string, e Entry) error) error {
	w := walker{ctx: ctx, store: store, fn: fn}
	return w.dir("", tree)
}

type walker struct {
	ctx   context.Context
	store blob.Store
	fn    func(string, Entry) error
	seen  int
}

func (w *walker) dir(dir string, node blob.ID) error {
	entries, err := Load(w.ctx, w.store, node)
	if err != nil {
		return inDir(dir, err)
	}
	if w.seen += len(entries); w.seen > MaxTree {
		return fmt.Errorf("%w: tree of more than %d entries", ErrBadNode, MaxTree)
	}
	for _, e := range entries {
		path := join(dir, e.Name)
		if len(path) > MaxPath {
			return fmt.Errorf("%w: tree is deeper than %d bytes of path", ErrBadNode, MaxPath)
		}
		if err := w.fn(path, e); err != nil {
			if e.Kind == Dir && errors.Is(err, fs.SkipDir) {
				continue
			}
			return err
		}
		if e.Kind != Dir {
			continue
		}
		if err := w.dir(path, e.ID); err != nil {
			return err
		}
	}
	return nil
}

func inDir(dir string, err error) error {
	if dir == "" {
		return err
	}
	return fmt.Errorf("%q: %w", dir, err)
}

// Lookup returns the entry at a path, or an error that wraps fs.ErrNotExist. The
// empty path is the tree's root directory, of mode 0.
func Lookup(ctx context.Context, store blob.Store, tree blob.ID, path string) (Entry, error) {
	e := Entry{Kind: Dir, ID: tree}
	if path == "" {
		return e, nil
	}
	for name := range strings.SplitSeq(path, "/") {
		if e.Kind != Dir {
			return Entry{}, notExist(path)
		}
		entries, err := Load(ctx, store, e.ID)
		if err != nil {
			return Entry{}, fmt.Errorf("look up %q: %w", path, err)
		}
		i, ok := search(entries, name)
		if !ok {
			return Entry{}, notExist(path)
		}
		e = entries[i]
	}
	return e, nil
}

// LookupName returns the entry of a directory under a name, or an error that wraps
// fs.ErrNotExist. It stops reading the directory there and creates no other entries, for
// callers that look into many directories.
func LookupName(ctx context.Context, from blob.Reader, node blob.ID, name string) (Entry, error) {
	if node.IsZero() {
		return Entry{}, fs.ErrNotExist
	}
	data, err := from.Get(ctx, node)
	if err != nil {
		return Entry{}, fmt.Errorf("read directory node: %w", err)
	}
	e, err := findEntry(data, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Entry{}, fmt.Errorf("read directory node %s: %w", node, err)
	}
	return e, err
}

func notExist(path string) error { return fmt.Errorf("look up %q: %w", path, fs.ErrNotExist) }

// search finds a name among sorted entries.
func search(entries []Entry, name string) (int, bool) {
	lo, hi := 0, len(entries)
	for lo < hi {
		mid := (lo + hi) / 2
		if entries[mid].Name < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(entries) && entries[lo].Name == name
}

// Refs calls visit for every blob that a tree needs: nodes, contents, chunk lists and
// chunks. A blob for which visit returns false is not followed, so a caller that
// keeps a set of seen ids walks shared directories once.
func Refs(ctx context.Context, store blob.Store, tree blob.ID, visit func(blob.ID) bool) error {
	return SizedRefs(ctx, store, tree, func(id blob.ID, _ int64) bool { return visit(id) })
}

// SizedRefs is Refs, and visit gets the size that the tree claims for a content or a
// chunk, or -1 for blobs of the tree itself.
func SizedRefs(ctx context.Context, store blob.Store, tree blob.ID, visit func(id blob.ID, size int64) bool) error {
	if tree.IsZero() || !visit(tree, -1) {
		return nil
	}
	entries, err := Load(ctx, store, tree)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := entryRefs(ctx, store, e, visit); err != nil {
			return inDir(e.Name, err)
		}
	}
	return nil
}

func entryRefs(ctx context.Context, store blob.Store, e Entry, visit func(blob.ID, int64) bool) error {
	if e.Kind == Dir {
		return SizedRefs(ctx, store, e.ID, visit)
	}
	if !e.Chunked {
		visit(e.ID, e.Size)
		return nil
	}
	if !visit(e.ID, -1) {
		return nil
	}
	chunks, err := loadChunks(ctx, store, e)
	if err != nil {
		return err
	}
	for _, c := range chunks {
		visit(c.ID, c.Size)
	}
	return nil
}
