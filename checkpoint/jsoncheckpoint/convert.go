package jsoncheckpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

// relative returns the path of a URI inside a root directory.
func relative(root, uri string) (string, bool) {
	full, ok := URI{text: uri}.Path()
	if !ok {
		return "", false
	}
	rel, ok := strings.CutPrefix(full, strings.TrimSuffix(uriPath(root), "/")+"/")
	if !ok || workspace.CheckPath(rel) != nil {
		return "", false
	}
	return rel, true
}

// ToTree applies a target to a base tree of the directory root, and returns the new
// tree and the paths that differ. URIs that are not below root, that no tree can
// hold, or whose place is taken by something else (a directory where a file was) are
// returned as outside and skipped. Files keep their modes; new ones get 0644.
func ToTree(ctx context.Context, store blob.Store, base blob.ID, root string, t *Target) (tree blob.ID, paths, outside []string, err error) {
	c := &conversion{ctx: ctx, store: store, base: base, root: root, edits: map[string]*workspace.Entry{}}
	for _, uri := range t.Absent {
		if err := c.absent(uri); err != nil {
			return blob.ID{}, nil, nil, fmt.Errorf("convert %s: %w", uri, err)
		}
	}
	for _, uri := range t.Made {
		if err := c.folder(uri); err != nil {
			return blob.ID{}, nil, nil, fmt.Errorf("convert %s: %w", uri, err)
		}
	}
	for uri, content := range t.Files {
		if err := c.file(uri, content); err != nil {
			return blob.ID{}, nil, nil, fmt.Errorf("convert %s: %w", uri, err)
		}
	}
	for uri, id := range t.Blobs {
		if err := c.kept(uri, id); err != nil {
			return blob.ID{}, nil, nil, fmt.Errorf("convert %s: %w", uri, err)
		}
	}
	if tree, err = workspace.Edit(ctx, store, base, c.edits); err != nil {
		return blob.ID{}, nil, nil, err
	}
	if tree, err = dropEmpty(ctx, store, tree, root, t.Folders); err != nil {
		return blob.ID{}, nil, nil, err
	}
	changes, err := workspace.Diff(ctx, store, base, tree)
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	slices.Sort(c.outside)
	return tree, paths, c.outside, err
}

// Partial makes a tree of the files of a target alone. It returns the paths that must
// not exist, sorted, folders among them, and what ToTree returns as outside.
func Partial(ctx context.Context, store blob.Store, root string, t *Target) (tree blob.ID, absent, outside []string, err error) {
	tree, _, outside, err = ToTree(ctx, store, blob.ID{}, root, t)
	for _, uri := range slices.Concat(t.Absent, t.Folders) {
		if rel, ok := relative(root, uri); ok {
			absent = append(absent, rel)
		}
	}
	slices.Sort(absent)
	return tree, slices.Compact(absent), slices.Compact(outside), err
}

// conversion gathers the edits of one ToTree.
type conversion struct {
	ctx     context.Context // of the call
	store   blob.Store
	base    blob.ID
	root    string
	edits   map[string]*workspace.Entry
	outside []string
}

// standing returns the entry at a path of a tree, or nil.
func standing(ctx context.Context, store blob.Store, tree blob.ID, rel string) (*workspace.Entry, error) {
	e, err := workspace.Lookup(ctx, store, tree, rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &e, err
}

// place returns the path of a URI and the entry there. If nothing may be put or
// removed there, ok is false and the URI is recorded as outside.
func (c *conversion) place(uri string) (rel string, old *workspace.Entry, ok bool, err error) {
	rel, ok = relative(c.root, uri)
	for dir := path.Dir(rel); ok && dir != "."; dir = path.Dir(dir) {
		e, err := standing(c.ctx, c.store, c.base, dir)
		if err != nil {
			return "", nil, false, err
		}
		_, goes := c.edits[dir]
		ok = e == nil || e.Kind == workspace.Dir || goes
	}
	if ok {
		if old, err = standing(c.ctx, c.store, c.base, rel); err != nil {
			return "", nil, false, err
		}
	}
	if !ok {
		c.outside = append(c.outside, uri)
	}
	return rel, old, ok, nil
}

// absent removes a file. It leaves a directory in its place alone.
func (c *conversion) absent(uri string) error {
	rel, old, ok, err := c.place(uri)
	switch {
	case err != nil || !ok:
		return err
	case old != nil && old.Kind == workspace.Dir:
		c.outside = append(c.outside, uri)
	default:
		c.edits[rel] = nil
	}
	return nil
}

// folder creates a missing folder.
func (c *conversion) folder(uri string) error {
	rel, old, ok, err := c.place(uri)
	if err != nil || !ok {
		return err
	}
	_, goes := c.edits[rel]
	switch {
	case old == nil || goes:
		c.edits[rel] = &workspace.Entry{Kind: workspace.Dir, Mode: workspace.NewDirMode}
	case old.Kind != workspace.Dir:
		c.outside = append(c.outside, uri)
	}
	return nil
}

// kept puts a file whose content is a blob.
func (c *conversion) kept(uri string, id blob.ID) error {
	r, err := blob.Open(c.ctx, c.store, id)
	if err != nil {
		return err
	}
	return errors.Join(c.put(uri, r), r.Close())
}

func (c *conversion) file(uri, content string) error { return c.put(uri, strings.NewReader(content)) }

func (c *conversion) put(uri string, content io.Reader) error {
	rel, old, ok, err := c.place(uri)
	if err != nil || !ok {
		return err
	}
	if old != nil && old.Kind == workspace.Dir {
		c.outside = append(c.outside, uri)
		return nil
	}
	e, err := workspace.PutFile(c.ctx, c.store, content)
	if err != nil {
		return err
	}
	e.Mode = newFileMode
	if old != nil && old.Kind == workspace.File {
		e.Mode = old.Mode
	}
	c.edits[rel] = &e
	return nil
}

// newFileMode is the mode of new files.
const newFileMode = 0o644

// dropEmpty removes empty folders, deepest first.
func dropEmpty(ctx context.Context, store blob.Store, tree blob.ID, root string, folders []string) (blob.ID, error) {
	for _, uri := range slices.Backward(folders) {
		rel, ok := relative(root, uri)
		if !ok {
			continue
		}
		e, err := standing(ctx, store, tree, rel)
		if err != nil {
			return blob.ID{}, err
		}
		if e == nil || e.Kind != workspace.Dir {
			continue
		}
		entries, err := workspace.Load(ctx, store, e.ID)
		if err != nil {
			return blob.ID{}, err
		}
		if len(entries) > 0 {
			continue
		}
		if tree, err = workspace.Edit(ctx, store, tree, map[string]*workspace.Entry{rel: nil}); err != nil {
			return blob.ID{}, err
		}
	}
	return tree, nil
}

// FromTree describes a tree by its difference from another one, which holds V0 of
// every file. It returns the paths that the form cannot express: binary files, links,
// modes and their changes, changes of line ends, and removed folders.
func FromTree(ctx context.Context, store blob.Store, v0, tree blob.ID, root string) (cp *Checkpoint, unsaid []string, err error) {
	changes, err := workspace.Diff(ctx, store, v0, tree)
	if err != nil {
		return nil, nil, err
	}
	cp = &Checkpoint{}
	for _, c := range changes {
		said, err := cp.add(ctx, store, c, FileURI(strings.TrimSuffix(root, "/")+"/"+c.Path))
		if err != nil {
			return nil, nil, fmt.Errorf("convert %q: %w", c.Path, err)
		}
		if !said {
			unsaid = append(unsaid, c.Path)
		}
	}
	return cp, unsaid, nil
}

func (c *Checkpoint) add(ctx context.Context, store blob.Store, ch workspace.Change, uri URI) (said bool, err error) {
	isDir := func(e *workspace.Entry) bool { return e != nil && e.Kind == workspace.Dir }
	switch {
	case isDir(ch.After) && !isDir(ch.Before):
		if ch.Before != nil {
			c.NonExistent = append(c.NonExistent, uri) // the file that it replaces
		}
		c.NewFolders = append(c.NewFolders, uri)
		return ch.After.Mode == workspace.NewDirMode, nil
	case ch.After == nil && isDir(ch.Before):
		return false, nil // its content is listed, and the folder stays
	case ch.After == nil:
		c.NonExistent = append(c.NonExistent, uri)
		return true, nil
	case ch.After.Kind != workspace.File || ch.Before != nil && ch.Before.Kind != workspace.File:
		return false, nil
	}
	after, ok, err := content(ctx, store, ch.After)
	if err != nil || !ok {
		return false, err
	}
	f := File{URI: uri, NewlyCreated: ch.Before == nil}
	before := ""
	if ch.Before != nil {
		if before, ok, err = content(ctx, store, ch.Before); err != nil || !ok {
			return false, err
		}
	}
	if f.Changes, ok = changesTo(before, after); !ok {
		return false, nil
	}
	c.Files = append(c.Files, f)
	if ch.Before == nil {
		return ch.After.Mode == newFileMode, nil
	}
	return ch.Before.Mode == ch.After.Mode, nil
}

// content returns a text file; ok is false for one that JSON cannot hold as text.
func content(ctx context.Context, store blob.Store, e *workspace.Entry) (text string, ok bool, err error) {
	data, err := workspace.ReadFile(ctx, store, *e)
	return string(data), utf8.Valid(data) && bytes.IndexByte(data, 0) < 0, err
}
