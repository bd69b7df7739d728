package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/unsaved"
	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/highlight"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/server/internal/wire"
	"github.com/stet-dev/stet/server/page"
	"github.com/stet-dev/stet/workspace"
)

const (
	maxShown    = 256 << 10 // bytes of one file in an answer
	maxDiffText = 2 << 20   // bytes of lines in one answer, all files together
	maxFiles    = 10_000    // entries of a list of files
	fileBytes   = 64        // bytes of an entry besides its path
	lineBytes   = 16        // bytes of a line in an answer besides its texts
	lookBytes   = 1 << 30   // limit of temporary content for reading a workspace
)

// lost marks an error as data loss: a checkpoint names content that the store does
// not have, unlike a request for something that never existed.
func lost(err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		return connect.NewError(connect.CodeDataLoss, err)
	}
	return err
}

// lookup finds a path in a tree.
func (s *checkpointService) lookup(ctx context.Context, tree blob.ID, path string) (workspace.Entry, error) {
	if path != "" {
		if err := workspace.CheckPath(path); err != nil {
			return workspace.Entry{}, err
		}
	}
	e, err := workspace.Lookup(ctx, s.db.Blobs(), tree, path)
	if errors.Is(err, fs.ErrNotExist) {
		return e, connect.NewError(connect.CodeNotFound, err)
	}
	return e, lost(err)
}

func wireFile(path string, e workspace.Entry) *stetv1.CheckpointFile {
	return &stetv1.CheckpointFile{Path: wire.Valid(path), PathBytes: workspace.PathBytes(path), Kind: e.Kind.String(), Mode: e.Mode, Size: e.Size, Id: e.ID.Bytes()}
}

// Files lists the files below a directory, sorted by path. A list that is too long
// omits the deepest files, which can be requested by their directory.
func (s *checkpointService) Files(ctx context.Context, req *stetv1.CheckpointFilesRequest) (*stetv1.CheckpointFilesResponse, error) {
	rec, err := s.resolve(ctx, req.GetWorkspace(), "", req.GetRef())
	if err != nil {
		return nil, err
	}
	top, err := s.lookup(ctx, rec.Tree, req.GetPath())
	if err != nil {
		return nil, err
	}
	if top.Kind != workspace.Dir {
		return nil, invalid("%q is a %s", req.GetPath(), top.Kind)
	}
	if req.GetShallow() || req.GetContains() != "" {
		res, err := s.countFiles(ctx, top.ID, req)
		if err != nil {
			return nil, err
		}
		return res, nil
	}
	type dir struct {
		path string
		node blob.ID
	}
	res, bytes := &stetv1.CheckpointFilesResponse{}, wire.MaxMessage/2
	for todo := []dir{{req.GetPath(), top.ID}}; len(todo) > 0; todo = todo[1:] {
		entries, err := workspace.Load(ctx, s.db.Blobs(), todo[0].node)
		if err != nil {
			return nil, lost(err)
		}
		if room := maxFiles - len(res.Files); len(entries) > room {
			entries, res.Truncated = entries[:room], true
		}
		for _, e := range entries {
			path := e.Name
			if todo[0].path != "" {
				path = todo[0].path + "/" + e.Name
			}
			if bytes -= len(path) + fileBytes; bytes < 0 {
				res.Truncated = true
				break
			}
			res.Files = append(res.Files, wireFile(path, e))
			if e.Kind == workspace.Dir {
				todo = append(todo, dir{path, e.ID})
			}
		}
		if res.Truncated {
			break
		}
	}
	slices.SortFunc(res.Files, func(a, b *stetv1.CheckpointFile) int { return cmp.Compare(a.GetPath(), b.GetPath()) })
	return res, nil
}

// File returns the content of a file, or the target of a link.
func (s *checkpointService) File(ctx context.Context, req *stetv1.CheckpointFileRequest) (*stetv1.CheckpointFileResponse, error) {
	rec, err := s.resolve(ctx, req.GetWorkspace(), "", req.GetRef())
	if err != nil {
		return nil, err
	}
	path := req.GetPath()
	e, err := s.lookup(ctx, rec.Tree, path)
	if err != nil {
		return nil, err
	}
	if e.Kind == workspace.Dir {
		return nil, invalid("%q is a directory", path)
	}
	res := &stetv1.CheckpointFileResponse{File: wireFile(path, e)}
	if res.Content, err = s.beginning(ctx, e); err != nil {
		return nil, lost(err)
	}
	res.Truncated = int64(len(res.Content)) < e.Size
	if res.Binary = linediff.Binary(res.Content); !res.Binary {
		res.Html = page.File(ctx, path, wire.Valid(string(res.Content)))
	}
	return res, nil
}

// beginning returns the part of a file or link that fits into an answer.
func (s *checkpointService) beginning(ctx context.Context, e workspace.Entry) ([]byte, error) {
	if e.Kind == workspace.Symlink {
		target, err := workspace.ReadLink(ctx, s.db.Blobs(), e)
		return []byte(target), err
	}
	r, err := workspace.OpenFile(ctx, s.db.Blobs(), e)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, maxShown))
	return data, errors.Join(err, r.Close())
}

func (s *checkpointService) Diff(ctx context.Context, req *stetv1.DiffRequest) (*stetv1.DiffResponse, error) {
	if err := checkPaths(req.GetPaths()); err != nil {
		return nil, err
	}
	look := unsaved.New(s.db.Blobs(), &unsaved.Options{MaxBytes: lookBytes}) // reading must not store
	defer look.Close()
	from, fromRec, err := s.treeAt(ctx, look, req, req.GetFrom())
	if err != nil {
		return nil, err
	}
	to, toRec, err := s.treeAt(ctx, look, req, cmp.Or(req.GetTo(), "@"))
	if err != nil {
		return nil, err
	}
	changes, err := workspace.Diff(ctx, look, from, to)
	if err == nil {
		changes, err = s.db.Checkpoints().Comparable(ctx, changes, fromRec, toRec)
	}
	if err != nil {
		return nil, lost(err)
	}
	res, room := &stetv1.DiffResponse{}, maxDiffText
	if req.GetStatOnly() {
		room = -1
	}
	coloured, done := highlight.Request(ctx)
	defer done()
	if req.GetPlain() {
		done() // nothing is highlighted after the time is over
	}
	for _, c := range linediff.Files(changes, req.GetPaths()) {
		compared, err := linediff.Compare(ctx, look, c)
		if err != nil {
			return nil, lost(err)
		}
		file := wireDiff(coloured, compared, &room)
		res.Files = append(res.Files, file)
		res.Added += file.GetAdded()
		res.Removed += file.GetRemoved()
	}
	return res, nil
}

// treeAt returns the tree that a reference names, and its checkpoint. The current
// workspace is scanned, and its blobs are only in look.
func (s *checkpointService) treeAt(ctx context.Context, look blob.Store, m *stetv1.DiffRequest, ref string) (tree blob.ID, rec *checkpoint.Record, err error) {
	if ref != "@" {
		rec, err := s.resolve(ctx, m.GetWorkspace(), m.GetConversation(), ref)
		if err != nil {
			return tree, nil, err
		}
		return rec.Tree, rec, nil
	}
	err = s.inBy(ctx, s.db.Checkpoints().Looking(look), m.GetWorkspace(), func(w *checkpoint.Workspace) error {
		seen, err := w.Present(ctx)
		if err == nil {
			tree = seen.Tree
		}
		return err
	})
	return tree, nil, err
}

// wireDiff describes a file and as many of its lines as there is room for: in the
// text of the file, and in the answer, which has every line twice. If room is
// negative, lines are only counted. Lines are highlighted until coloured is done.
func wireDiff(coloured context.Context, f *linediff.File, room *int) *stetv1.FileDiff {
	out := &stetv1.FileDiff{
		Path: wire.Valid(f.Path), PathBytes: workspace.PathBytes(f.Path), Action: f.Op(), Binary: f.Binary, Truncated: f.TooLarge,
		Added: uint32(f.Added), Removed: uint32(f.Removed),
	}
	if *room < 0 || len(f.Hunks) == 0 {
		return out
	}
	before, after := f.Shown()
	text, shade := maxShown, page.NewShades(coloured, f.Path, before, after)
	for _, h := range f.Hunks {
		hunk := &stetv1.DiffHunk{FromLine: uint32(linediff.FirstLine(h.From, h.FromLen)), ToLine: uint32(linediff.FirstLine(h.To, h.ToLen))}
		for _, l := range h.Lines {
			line := wire.Valid(strings.TrimSuffix(l.Text, "\n"))
			html := shade.Line(string(l.Op), l.From, l.To, line)
			size := len(line) + len(html) + lineBytes
			if len(l.Text) > text || size > *room {
				out.Truncated = true // and nothing after it, to avoid gaps
				break
			}
			text -= len(l.Text)
			*room -= size
			hunk.Lines = append(hunk.Lines, &stetv1.DiffLine{Op: string(l.Op), Text: line, Html: html})
		}
		if len(hunk.Lines) > 0 {
			out.Hunks = append(out.Hunks, hunk)
		}
		if out.Truncated {
			break
		}
	}
	return out
}
