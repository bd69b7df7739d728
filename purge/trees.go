package purge

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

// place is a path of a workspace.
type place struct{ workspace, path string }

// lookAtTrees finds the files of checkpoints.
func (p *Plan) lookAtTrees(ctx context.Context) error {
	files, partial := make(map[place][]string), make(map[place][]string)
	add := func(to map[place][]string, workspace, checkpoint string, paths []string) {
		for _, path := range paths {
			at := place{workspace, path}
			to[at] = append(to[at], checkpoint)
		}
	}
	for needs, err := range p.find.s.stores.Checkpoints.Needs(ctx) {
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			p.find.unread = append(p.find.unread, err)
			continue
		}
		rec := needs.Checkpoint
		if rec == nil {
			continue
		}
		gone, part, err := p.find.tree(ctx, rec.Tree)
		if err == nil && rec.Workspace == p.target.Workspace {
			gone, err = p.find.named(ctx, rec.Tree, p.target.Paths, gone)
		}
		if err != nil {
			if err := p.find.pass(rec.Tree, err); err != nil {
				return err
			}
		}
		add(files, rec.Workspace, rec.ID, gone)
		add(partial, rec.Workspace, rec.ID, part)
	}
	p.Files, p.Partly = listed(files), listed(partial)
	return nil
}

func listed(files map[place][]string) []File {
	out := make([]File, 0, len(files))
	for at, ids := range files {
		slices.Sort(ids)
		out = append(out, File{Workspace: at.workspace, Path: at.path, Checkpoints: ids})
	}
	slices.SortFunc(out, func(a, b File) int {
		return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Path, b.Path))
	})
	return out
}

// tree returns the paths below a directory whose content is removed, and those that
// contain it as a part. Directories that trees share are read once.
func (f *finder) tree(ctx context.Context, node blob.ID) (gone, part []string, err error) {
	if gone, ok := f.nodes[node]; ok {
		return gone, f.partial[node], nil
	}
	entries, err := workspace.Load(ctx, f.s.stores.Blobs, node)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if e.Kind == workspace.Dir {
			below, inside, err := f.tree(ctx, e.ID)
			if err != nil {
				return nil, nil, err
			}
			gone = append(gone, under(e.Name, below)...)
			part = append(part, under(e.Name, inside)...)
			continue
		}
		l, err := f.file(ctx, e)
		switch {
		case err != nil:
			return nil, nil, err
		case l == whole:
			gone = append(gone, e.Name)
		case l == partly:
			part = append(part, e.Name)
		}
	}
	f.nodes[node], f.partial[node] = gone, part
	return gone, part, nil
}

func under(dir string, paths []string) []string {
	out := make([]string, len(paths))
	for i, path := range paths {
		out[i] = dir + "/" + path
	}
	return out
}

// file returns the level of a file or link.
func (f *finder) file(ctx context.Context, e workspace.Entry) (level, error) {
	if f.exact[e.ID] {
		return whole, nil
	}
	if !e.Chunked {
		return f.level(ctx, e.ID)
	}
	if l, ok := f.chunked[e.ID]; ok {
		return l, nil
	}
	l, err := f.chunks(ctx, e.ID)
	if err == nil {
		f.chunked[e.ID] = l
	}
	return l, err
}

// chunks searches the chunks of a large file, and across their ends.
func (f *finder) chunks(ctx context.Context, list blob.ID) (level, error) {
	data, err := f.s.stores.Blobs.Get(ctx, list)
	if err != nil {
		return clean, err
	}
	chunks, err := workspace.DecodeChunks(data)
	if err != nil {
		return clean, err
	}
	l := clean
	var tail []byte
	for _, chunk := range chunks {
		one, err := f.level(ctx, chunk.ID)
		if err != nil {
			return clean, err
		}
		data, err := f.s.stores.Blobs.Get(ctx, chunk.ID)
		if err != nil {
			return max(l, one), err
		}
		edge := f.contents.longest
		joint := append(tail, data[:min(len(data), edge)]...)
		if f.secrets.in(joint) {
			one = whole
		} else if one == clean && f.contents.in(joint) {
			one = partly
		}
		if l = max(l, one); l == whole {
			return whole, nil
		}
		tail = slices.Clone(data[max(0, len(data)-edge):])
	}
	return l, nil
}

// named adds the files at and below named paths, whatever their content.
func (f *finder) named(ctx context.Context, tree blob.ID, paths, to []string) ([]string, error) {
	out := slices.Clone(to)
	add := func(path string) {
		if !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	for _, path := range paths {
		e, err := workspace.Lookup(ctx, f.s.stores.Blobs, tree, path)
		if err != nil {
			continue // it does not exist
		}
		if e.Kind != workspace.Dir {
			add(path)
			continue
		}
		err = workspace.Walk(ctx, f.s.stores.Blobs, e.ID, func(below string, e workspace.Entry) error {
			if e.Kind != workspace.Dir {
				add(strings.TrimPrefix(path+"/"+below, "/"))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
