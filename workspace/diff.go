package workspace

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
)

// Diff lists, in the order of a walk, the paths that differ between tree a and
// tree b. Directories with the same id are not read. The zero id is the empty
// tree.
func Diff(ctx context.Context, store blob.Store, a, b blob.ID) ([]Change, error) {
	d := differ{ctx: ctx, store: store}
	err := d.dirs("", &dirRef{node: a}, &dirRef{node: b})
	return d.changes, err
}

// differ compares directories of indexes, so that a scan finds changes without
// reading nodes from the store.
type differ struct {
	ctx     context.Context
	store   blob.Store
	lenient bool // an unreadable directory counts as empty
	changes []Change
	added   *added // receives the new blobs, if not nil
	seen    int
}

func (d *differ) load(path string, ref *dirRef) ([]indexEntry, []*dirRef, error) {
	if ref == nil || ref.node.IsZero() && ref.rec.Load() == nil {
		return nil, nil, nil
	}
	if err := d.ctx.Err(); err != nil {
		return nil, nil, err
	}
	if len(path) > MaxPath {
		return nil, nil, fmt.Errorf("%w: tree is deeper than %d bytes of path", ErrBadNode, MaxPath)
	}
	dir, err := ref.load(d.ctx, d.store)
	if err != nil && d.lenient && d.ctx.Err() == nil {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, inDir(path, err)
	}
	if d.seen += len(dir.entries); d.seen > MaxTree {
		return nil, nil, fmt.Errorf("%w: trees of more than %d entries", ErrBadNode, MaxTree)
	}
	return dir.entries, dir.subs, nil
}

func (d *differ) dirs(path string, a, b *dirRef) error {
	if a != nil && b != nil && a.node == b.node {
		return nil
	}
	as, asubs, err := d.load(path, a)
	if err != nil {
		return err
	}
	bs, bsubs, err := d.load(path, b)
	if err != nil {
		return err
	}
	if d.added != nil && b != nil {
		d.added.id(b.node)
	}
	for len(as) > 0 || len(bs) > 0 {
		var before, after *indexEntry
		switch {
		case len(bs) == 0 || len(as) > 0 && as[0].name < bs[0].name:
			before, as = &as[0], as[1:]
		case len(as) == 0 || bs[0].name < as[0].name:
			after, bs = &bs[0], bs[1:]
		default:
			before, after, as, bs = &as[0], &bs[0], as[1:], bs[1:]
		}
		if err := d.pair(path, before, after, asubs, bsubs); err != nil {
			return err
		}
	}
	return nil
}

// pair compares two entries of the same name, one of which may be missing.
func (d *differ) pair(dir string, a, b *indexEntry, asubs, bsubs []*dirRef) error {
	inA, inB := a != nil && a.captured(), b != nil && b.captured()
	if !inA && !inB || inA && inB && a.equals(b) {
		return nil // nearly always, so allocate nothing before
	}
	if d.added != nil && inB && b.kind != Dir {
		d.added.entry(a, b)
	}
	var c Change
	var asub, bsub *dirRef
	if inA {
		e := a.entry()
		c.Before, asub = &e, subOf(a, asubs)
		c.Path = join(dir, a.name)
	}
	if inB {
		e := b.entry()
		c.After, bsub = &e, subOf(b, bsubs)
		c.Path = join(dir, b.name)
	}
	bothDirs := asub != nil && bsub != nil
	if !bothDirs || c.Before.Mode != c.After.Mode {
		d.changes = append(d.changes, c)
	}
	if asub == nil && bsub == nil {
		return nil
	}
	return d.dirs(c.Path, asub, bsub)
}

// equals is Entry.Same of two captured entries.
func (e *indexEntry) equals(o *indexEntry) bool {
	return e.mode == o.mode && e.size == o.size && e.hasContentOf(o)
}

// hasContentOf reports whether two captured entries name the same blobs.
func (e *indexEntry) hasContentOf(o *indexEntry) bool {
	return e.id == o.id && e.kind == o.kind && (e.flags^o.flags)&flagChunked == 0
}

func subOf(e *indexEntry, subs []*dirRef) *dirRef {
	if e.kind != Dir || e.sub < 0 {
		return nil
	}
	return subs[e.sub]
}
