package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

// pathBack looks up a path checkpoint by checkpoint, backwards in time. It reads many trees
// with one reader of the store, and only a few at first: most files are younger than their
// workspace.
type pathBack struct {
	v     *versions
	in    pathIn
	seen  *seenTrees
	last  int                // index of the checkpoint that found ends with
	found []*workspace.Entry // earlier ones first
	some  int                // read at once
}

const (
	firstTrees = 16
	mostTrees  = 1024
)

// at returns the entry at a path in the tree of a checkpoint, nil if there is none. Callers must
// go from newer checkpoints to older ones, and may change the path on the way.
func (b *pathBack) at(ctx context.Context, path string, i int) (*workspace.Entry, error) {
	if n := i - (b.last - len(b.found) + 1); path == b.in.path && n >= 0 && n < len(b.found) {
		return b.found[n], nil
	}
	b.some = min(max(2*b.some, firstTrees), mostTrees)
	if path != b.in.path {
		b.in, b.some = pathIn{path: path, names: strings.Split(path, "/")}, firstTrees
		b.seen = b.v.seenAt(path)
	}
	first := max(0, i-b.some+1)
	b.last, b.found = i, make([]*workspace.Entry, i-first+1)
	left := i - first // to be read, with those before it
	for ; left >= 0; left-- {
		e, ok := b.seen.at[b.v.records[first+left].Tree]
		if !ok {
			break
		}
		b.found[left] = e
	}
	if left < 0 {
		return b.found[len(b.found)-1], nil
	}
	err := blob.ReadMany(ctx, b.v.s.blobs, func(from blob.Reader) (err error) {
		for n := left; n >= 0; n-- {
			tree := b.v.records[first+n].Tree
			e, ok := b.seen.at[tree]
			if !ok {
				if e, err = b.in.at(ctx, from, tree); err != nil {
					b.found = b.found[n+1:]
					break
				}
				b.seen.add(tree, e)
			}
			b.found[n] = e
		}
		if len(b.found) == 0 {
			return err
		}
		return nil // a lost tree is an error only if it is needed
	})
	if err != nil {
		b.found = nil
		return nil, err
	}
	return b.found[len(b.found)-1], nil
}

// pathIn looks up a path in trees that differ little. It keeps the directories on the way.
type pathIn struct {
	path  string
	names []string
	steps []dirStep
}

// dirStep is a directory on the way, and what it has under the next name.
type dirStep struct {
	node  blob.ID
	entry *workspace.Entry
}

// at returns the entry in a tree, nil if there is none. It does not read a directory again that
// the previous tree shares.
func (p *pathIn) at(ctx context.Context, from blob.Reader, tree blob.ID) (*workspace.Entry, error) {
	node := tree
	for i, name := range p.names {
		if i == len(p.steps) {
			p.steps = append(p.steps, dirStep{})
		}
		step := &p.steps[i]
		if step.node != node || node.IsZero() {
			step.node, step.entry = node, nil
			e, err := workspace.LookupName(ctx, from, node, name)
			switch {
			case err == nil:
				step.entry = &e
			case !errors.Is(err, fs.ErrNotExist):
				p.steps = p.steps[:i]
				return nil, err
			}
		}
		if i == len(p.names)-1 {
			return step.entry, nil
		}
		if !isDir(step.entry) {
			return nil, nil
		}
		node = step.entry.ID
	}
	return nil, nil
}
