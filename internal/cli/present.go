package cli

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/unsaved"
	"github.com/stet-dev/stet/checkpoint"
)

// latest returns the newest checkpoint of the workspace, or nil.
func (p *place) latest(ctx context.Context) (*checkpoint.Record, error) {
	for rec, err := range p.space.List(ctx, &checkpoint.ListOptions{Limit: 1}) {
		return rec, err
	}
	return nil, nil
}

// side is one end of a comparison: a tree and what to call it.
type side struct {
	rec  *checkpoint.Record // nil for the present
	tree blob.ID
	name string
}

// look is the workspace of a place for verbs that only look: what they read is compared,
// and never stored.
type look struct {
	space *checkpoint.Workspace
	blobs *unsaved.Store // with what the look found on top
}

// withLook runs fn with a look at the workspace.
func (p *place) withLook(ctx context.Context, fn func(look) error) error {
	blobs := unsaved.New(p.db.Blobs(), nil)
	space, err := p.service.Looking(blobs).Look(ctx, p.space.Path())
	if err != nil {
		return errors.Join(err, blobs.Close())
	}
	return errors.Join(fn(look{space, blobs}), space.Close(), blobs.Close())
}

// side returns the tree that a reference names.
func (l look) side(ctx context.Context, ref, conversation string) (side, error) {
	rec, err := l.space.Resolve(ctx, ref, conversation)
	if err != nil {
		return side{}, err
	}
	if rec == nil {
		res, err := l.space.Present(ctx)
		if err != nil {
			return side{}, err
		}
		return side{tree: res.Tree, name: "working tree"}, nil
	}
	return side{rec: rec, tree: rec.Tree, name: rec.Name()}, nil
}

// inside converts paths relative to the current directory to paths of the workspace. Among
// them the workspace itself means all: without paths, verbs are about everything.
func (p *place) inside(paths []string) ([]string, error) {
	within, err := p.pathsOf(paths)
	if slices.Contains(within, ".") {
		return nil, err
	}
	return within, err
}

// pathsOf is inside for paths that stand for themselves: the workspace is ".".
func (p *place) pathsOf(paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil // without paths, the current directory may be gone
	}
	here, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	if resolved, err := filepath.EvalSymlinks(here); err == nil {
		here = resolved
	}
	root := p.space.Path()
	if _, ok := relative(root, here); !ok {
		here = root // with -C from elsewhere, paths are relative to the workspace
	}
	out := make([]string, len(paths))
	for i, path := range paths {
		if path == "" { // a variable that is not set must not mean everything
			return nil, coded(ExitUsage, "an empty path names nothing; use . for everything below the current directory")
		}
		full := path
		if !filepath.IsAbs(full) {
			full = filepath.Join(here, path)
		}
		rel, ok := relative(root, full)
		if !ok {
			rel, ok = relative(root, resolveAbove(root, full))
		}
		if !ok {
			return nil, coded(ExitUsage, "%s is outside the workspace %s", path, root)
		}
		out[i] = rel
	}
	return out, nil
}

// resolveAbove follows the links that lead to a path which may no longer exist. Its last
// element may be a link that is meant, unless that leads to the workspace.
func resolveAbove(root, path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil && resolved == root {
		return root
	}
	dir, rest := filepath.Split(filepath.Clean(path))
	for {
		dir = filepath.Clean(dir)
		if resolved, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(resolved, rest)
		}
		above := filepath.Dir(dir)
		if above == dir {
			return path
		}
		dir, rest = above, filepath.Join(filepath.Base(dir), rest)
	}
}

func relative(root, path string) (string, bool) {
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return filepath.ToSlash(rel), true
}
