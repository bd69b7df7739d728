package jsoncheckpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	rel, ok := strings.CutPrefix(full, strings.TrimSuffix(root, "/")+"/")
	if !ok || workspace.CheckPath(rel) != nil {
		return "", false
	}
	return rel, true
}

// ToTree returns the tree that results when a target is brought about in a base
// tree, which stands for the directory root, and the paths that differ. URIs
// that are not below root, or that no tree can hold, are returned as outside and
// left out. The mode of a file stays; a new one gets 0644.
func ToTree(ctx context.Context, store blob.Store, base blob.ID, root string, t *Target) (tree blob.ID, paths, outside []string, err error) {
	edits := map[string]*workspace.Entry{}
	for uri, content := range t.Files {
		rel, ok := relative(root, uri)
		if !ok {
			outside = append(outside, uri)
			continue
		}
		e, err := workspace.PutFile(ctx, store, strings.NewReader(content))
		if err != nil {
			return blob.ID{}, nil, nil, fmt.Errorf("convert %s: %w", uri, err)
		}
		e.Mode = 0o644
		old, err := workspace.Lookup(ctx, store, base, rel)
		switch {
		case err == nil && old.Kind == workspace.File:
			e.Mode = old.Mode
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return blob.ID{}, nil, nil, fmt.Errorf("convert %s: %w", uri, err)
		}
		edits[rel] = &e
	}
	for _, uri := range t.Absent {
		rel, ok := relative(root, uri)
		if !ok {
			outside = append(outside, uri)
			continue
		}
		edits[rel] = nil
	}
	if tree, err = workspace.Edit(ctx, store, base, edits); err != nil {
		return blob.ID{}, nil, nil, err
	}
	if tree, err = dropEmpty(ctx, store, tree, root, t.Folders); err != nil {
		return blob.ID{}, nil, nil, err
	}
	changes, err := workspace.Diff(ctx, store, base, tree)
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	slices.Sort(outside)
	return tree, paths, outside, err
}

// dropEmpty removes folders in which nothing is left, the deepest first.
func dropEmpty(ctx context.Context, store blob.Store, tree blob.ID, root string, folders []string) (blob.ID, error) {
	for _, uri := range slices.Backward(folders) {
		rel, ok := relative(root, uri)
		if !ok {
			continue
		}
		e, err := workspace.Lookup(ctx, store, tree, rel)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return blob.ID{}, err
		}
		entries, err := workspace.Load(ctx, store, e.ID)
		if err != nil {
			return blob.ID{}, err
		}
		if e.Kind != workspace.Dir || len(entries) > 0 {
			continue
		}
		if tree, err = workspace.Edit(ctx, store, tree, map[string]*workspace.Entry{rel: nil}); err != nil {
			return blob.ID{}, err
		}
	}
	return tree, nil
}

// FromTree describes a tree by how it differs from another one, which holds V0
// of every file. It returns the paths that the form has no words for: binary
// files, links, changes of mode and of line ends.
func FromTree(ctx context.Context, store blob.Store, v0, tree blob.ID, root string) (cp *Checkpoint, unsaid []string, err error) {
	changes, err := workspace.Diff(ctx, store, v0, tree)
	if err != nil {
		return nil, nil, err
	}
	cp = &Checkpoint{}
	for _, c := range changes {
		said, err := cp.add(ctx, store, c, FileURI(path.Join(root, c.Path)))
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
	case ch.Before == nil && isDir(ch.After):
		c.NewFolders = append(c.NewFolders, uri)
		return true, nil
	case ch.After == nil && isDir(ch.Before):
		return true, nil // what it held is listed
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
	return ch.Before == nil || ch.Before.Mode == ch.After.Mode, nil
}

// content returns a text file; ok is false for one that JSON cannot hold as text.
func content(ctx context.Context, store blob.Store, e *workspace.Entry) (text string, ok bool, err error) {
	data, err := workspace.ReadFile(ctx, store, *e)
	return string(data), utf8.Valid(data) && bytes.IndexByte(data, 0) < 0, err
}
