package workspace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stet-dev/stet/blob"
)

// NewDirMode is the mode of directories that Edit creates on the way to a path.
const NewDirMode = 0o755

// Edit stores a tree that differs from the given one at some paths and returns its
// id. A nil entry removes the path; any other entry, whose Name is ignored, replaces
// it. A directory entry with the zero ID sets the mode of the directory and keeps its
// content (none, if it is new). Missing parent directories are created; a file in
// their place is replaced. The zero id is the empty tree, so Edit also builds trees
// from nothing. Every path must pass CheckPath.
func Edit(ctx context.Context, store blob.Store, tree blob.ID, changes map[string]*Entry) (blob.ID, error) {
	root := &edit{}
	for path, e := range changes {
		if err := CheckPath(path); err != nil {
			return blob.ID{}, fmt.Errorf("edit tree: %w", err)
		}
		root.add(path, e)
	}
	ed := editor{ctx: ctx, store: store}
	id, err := ed.apply(tree, root)
	if err != nil {
		return blob.ID{}, fmt.Errorf("edit tree: %w", err)
	}
	if err := store.Put(ctx, ed.blobs...); err != nil {
		return blob.ID{}, fmt.Errorf("edit tree: %w", err)
	}
	return id, nil
}

// edit is the change at one path and below it.
type edit struct {
	set  bool   // to is valid
	to   *Entry // nil removes
	kids map[string]*edit
}

func (n *edit) add(path string, e *Entry) {
	for name := range strings.SplitSeq(path, "/") {
		if n.kids == nil {
			n.kids = map[string]*edit{}
		}
		kid := n.kids[name]
		if kid == nil {
			kid = &edit{}
			n.kids[name] = kid
		}
		n = kid
	}
	n.set, n.to = true, e
}

type editor struct {
	ctx   context.Context
	store blob.Store
	blobs []blob.Blob
}

// apply returns the node of a directory after the edits below it.
func (ed *editor) apply(node blob.ID, n *edit) (blob.ID, error) {
	if len(n.kids) == 0 && !node.IsZero() {
		return node, nil
	}
	old, err := Load(ed.ctx, ed.store, node)
	if err != nil {
		return blob.ID{}, err
	}
	entries := make([]Entry, 0, len(old)+len(n.kids))
	for _, e := range old {
		if n.kids[e.Name] == nil {
			entries = append(entries, e)
		}
	}
	for name, kid := range n.kids {
		var before *Entry
		if i, ok := search(old, name); ok {
			before = &old[i]
		}
		e, err := ed.entry(before, kid)
		if err != nil {
			return blob.ID{}, err
		}
		if e != nil {
			e.Name = name
			entries = append(entries, *e)
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	data, err := EncodeNode(entries)
	if err != nil {
		return blob.ID{}, err
	}
	b := blob.New(data)
	if b.ID != node {
		b.Like = node
		ed.blobs = append(ed.blobs, b)
	}
	return b.ID, nil
}

// entry returns the entry of a name after the edits there and below it, or nil.
func (ed *editor) entry(before *Entry, n *edit) (*Entry, error) {
	e := before
	if n.set {
		e = n.to
		if e != nil {
			c := *e
			e = &c
			if e.Kind == Dir && e.ID.IsZero() && before != nil && before.Kind == Dir {
				e.ID = before.ID
			}
		}
	}
	if !n.makesDir(e) {
		return e, nil
	}
	if e == nil || e.Kind != Dir {
		e = &Entry{Kind: Dir, Mode: NewDirMode}
	}
	id, err := ed.apply(e.ID, n)
	if err != nil {
		return nil, err
	}
	c := *e
	c.ID = id
	return &c, nil
}

// makesDir reports whether the path is a directory afterwards. Removals below a path
// that is not a directory need none.
func (n *edit) makesDir(e *Entry) bool {
	if e != nil && e.Kind == Dir {
		return true
	}
	for _, kid := range n.kids {
		if kid.set && kid.to != nil || kid.makesDir(nil) {
			return true
		}
	}
	return false
}
