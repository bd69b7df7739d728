package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"znkr.io/diff"
	"znkr.io/diff/textdiff"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/unsaved"
	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/highlight"
	"github.com/stet-dev/stet/workspace"
)

const (
	maxShown    = 256 << 10 // bytes of one file in an answer
	maxDiffText = 2 << 20   // bytes of lines in one answer, all files together
	maxCompared = 4 << 20   // size of the largest file whose lines are compared
	fastDiff    = 128 << 10 // above it a quick comparison has to do
	maxFiles    = 10_000    // entries of a list of files
	fileBytes   = 64        // bytes of an entry beside its path
	lineBytes   = 16        // bytes of a line in an answer beside its texts
	lookBytes   = 1 << 30   // of a workspace that are put aside for a look at it
	looksBinary = 8000      // bytes in which a NUL makes a file binary
)

// lost tells that a checkpoint names content that the store does not have, which is
// not the same as asking for something that never was.
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
	return &stetv1.CheckpointFile{Path: valid(path), PathBytes: workspace.PathBytes(path), Kind: e.Kind.String(), Mode: e.Mode, Size: e.Size, Id: e.ID.Bytes()}
}

// Files lists what is below a directory, sorted by path. A list that is too long
// leaves out what lies deepest, which can be asked for by its directory.
func (s *checkpointService) Files(ctx context.Context, req *connect.Request[stetv1.CheckpointFilesRequest]) (*connect.Response[stetv1.CheckpointFilesResponse], error) {
	rec, err := s.resolve(ctx, req.Msg.GetWorkspace(), "", req.Msg.GetRef())
	if err != nil {
		return nil, err
	}
	top, err := s.lookup(ctx, rec.Tree, req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	if top.Kind != workspace.Dir {
		return nil, invalid("%q is a %s", req.Msg.GetPath(), top.Kind)
	}
	type dir struct {
		path string
		node blob.ID
	}
	res, bytes := &stetv1.CheckpointFilesResponse{}, maxMessage/2
	for todo := []dir{{req.Msg.GetPath(), top.ID}}; len(todo) > 0; todo = todo[1:] {
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
	return connect.NewResponse(res), nil
}

// File gives the content of a file, or the target of a link.
func (s *checkpointService) File(ctx context.Context, req *connect.Request[stetv1.CheckpointFileRequest]) (*connect.Response[stetv1.CheckpointFileResponse], error) {
	rec, err := s.resolve(ctx, req.Msg.GetWorkspace(), "", req.Msg.GetRef())
	if err != nil {
		return nil, err
	}
	path := req.Msg.GetPath()
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
	if res.Binary = isBinary(res.Content); !res.Binary {
		res.Html = pageFile(ctx, path, valid(string(res.Content)))
	}
	return connect.NewResponse(res), nil
}

// beginning returns as much of a file or link as an answer holds.
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

func isBinary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), looksBinary)], 0) >= 0 }

func (s *checkpointService) Diff(ctx context.Context, req *connect.Request[stetv1.DiffRequest]) (*connect.Response[stetv1.DiffResponse], error) {
	m := req.Msg
	if err := checkPaths(m.GetPaths()); err != nil {
		return nil, err
	}
	look := unsaved.New(s.db.Blobs(), &unsaved.Options{MaxBytes: lookBytes}) // reading stores nothing
	defer look.Close()
	from, err := s.treeAt(ctx, look, m, m.GetFrom())
	if err != nil {
		return nil, err
	}
	to, err := s.treeAt(ctx, look, m, cmp.Or(m.GetTo(), "@"))
	if err != nil {
		return nil, err
	}
	changes, err := workspace.Diff(ctx, look, from, to)
	if err != nil {
		return nil, lost(err)
	}
	res, room := &stetv1.DiffResponse{}, maxDiffText
	if m.GetStatOnly() {
		room = -1
	}
	coloured, done := highlight.Request(ctx)
	defer done()
	for _, c := range changes {
		if !ofFile(c) || !asked(m.GetPaths(), c.Path) {
			continue
		}
		file, err := fileDiff(ctx, coloured, look, c, &room)
		if err != nil {
			return nil, lost(fmt.Errorf("compare %q: %w", c.Path, err))
		}
		res.Files = append(res.Files, file)
		res.Added += file.GetAdded()
		res.Removed += file.GetRemoved()
	}
	return connect.NewResponse(res), nil
}

// treeAt returns the tree that a reference names; the present is looked at, and its
// blobs are in look only.
func (s *checkpointService) treeAt(ctx context.Context, look blob.Store, m *stetv1.DiffRequest, ref string) (tree blob.ID, err error) {
	if ref != "@" {
		rec, err := s.resolve(ctx, m.GetWorkspace(), m.GetConversation(), ref)
		if err != nil {
			return tree, err
		}
		return rec.Tree, nil
	}
	err = s.inBy(ctx, s.db.Checkpoints().Looking(look), m.GetWorkspace(), func(w *checkpoint.Workspace) error {
		seen, err := w.Present(ctx)
		if err == nil {
			tree = seen.Tree
		}
		return err
	})
	return tree, err
}

// ofFile reports whether a change is about more than directories.
func ofFile(c workspace.Change) bool {
	return c.Before != nil && c.Before.Kind != workspace.Dir || c.After != nil && c.After.Kind != workspace.Dir
}

// asked reports whether a path is one of the given ones or below one.
func asked(paths []string, path string) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool {
		return path == p || strings.HasPrefix(path, p+"/")
	})
}

// fileDiff compares the lines of a file. Room is what is left for lines in the
// answer; if it is negative, lines are counted only. Lines are highlighted until
// coloured is done.
func fileDiff(ctx, coloured context.Context, blobs blob.Store, c workspace.Change, room *int) (*stetv1.FileDiff, error) {
	out := &stetv1.FileDiff{Path: valid(c.Path), PathBytes: workspace.PathBytes(c.Path), Action: c.Op()}
	if c.Before != nil && c.After != nil && c.Before.ID == c.After.ID && c.Before.Kind == c.After.Kind {
		return out, nil // only the mode differs
	}
	for _, e := range []*workspace.Entry{c.Before, c.After} {
		if e != nil && e.Kind == workspace.File && e.Size > maxCompared {
			out.Truncated = true
			return out, nil
		}
	}
	before, err := entryText(ctx, blobs, c.Before)
	if err != nil {
		return nil, err
	}
	after, err := entryText(ctx, blobs, c.After)
	if errors.Is(err, blob.ErrTooLarge) { // so much is new that it was not put aside
		out.Truncated = true
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	if out.Binary = isBinary(before) || isBinary(after); out.Binary {
		return out, nil
	}
	option := textdiff.IndentHeuristic()
	if len(before)+len(after) > fastDiff {
		option = diff.Fast()
	}
	text := maxShown // bytes of lines of this file
	var shade shades
	if *room >= 0 {
		shade = newShades(coloured, c.Path, before, after)
	}
	for _, h := range textdiff.Hunks(string(before), string(after), option) {
		addHunk(out, h, &text, room, shade)
	}
	return out, nil
}

// entryText returns what is compared of an entry: nothing and directories have none.
func entryText(ctx context.Context, blobs blob.Store, e *workspace.Entry) ([]byte, error) {
	switch {
	case e == nil || e.Kind == workspace.Dir:
		return nil, nil
	case e.Kind == workspace.Symlink:
		target, err := workspace.ReadLink(ctx, blobs, *e)
		return []byte(target), err
	}
	return workspace.ReadFile(ctx, blobs, *e)
}

// addHunk counts the lines of a hunk and adds as many of them as there is room for: in
// the text of its file, and in the answer, which has every line twice.
func addHunk(out *stetv1.FileDiff, h textdiff.Hunk[string], text, room *int, shade shades) {
	hunk := &stetv1.DiffHunk{FromLine: firstLine(h.LineNoX, h.EndLineNoX), ToLine: firstLine(h.LineNoY, h.EndLineNoY)}
	for _, edit := range h.Edits {
		op := " "
		switch edit.Op {
		case diff.Insert:
			op = "+"
			out.Added++
		case diff.Delete:
			op = "-"
			out.Removed++
		}
		if *room < 0 || out.Truncated {
			continue
		}
		line := valid(strings.TrimSuffix(edit.Line, "\n"))
		html := shade.line(op, edit.LineNoX, edit.LineNoY, line)
		size := len(line) + len(html) + lineBytes
		if len(edit.Line) > *text || size > *room {
			out.Truncated = true // and nothing after it, lest there be gaps
			continue
		}
		*text -= len(edit.Line)
		*room -= size
		hunk.Lines = append(hunk.Lines, &stetv1.DiffLine{Op: op, Text: line, Html: html})
	}
	if len(hunk.Lines) > 0 {
		out.Hunks = append(out.Hunks, hunk)
	}
}

// firstLine numbers lines as unified diffs do: from 1, and an empty range by the
// line before it.
func firstLine(from, to int) uint32 {
	if from == to {
		return uint32(from)
	}
	return uint32(from + 1)
}
