package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"znkr.io/diff"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

// Lines are counted in files up to maxLineSize bytes; larger files, or files with a
// NUL among the first bytes, count as binary.
const (
	maxLineSize  = 1 << 20
	binaryWindow = 8000

	// maxCounted is the number of files of a checkpoint whose lines are counted.
	// Counting costs 0.1 ms a file, most of what a checkpoint of 1,000 would take.
	maxCounted = 256
)

func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), binaryWindow)], 0) >= 0
}

// splitLines splits text after every newline. The lines alias the text.
func splitLines(data []byte) []string {
	lines := make([]string, 0, bytes.Count(data, []byte{'\n'})+1)
	for text := string(data); text != ""; {
		n := strings.IndexByte(text, '\n') + 1
		if n == 0 {
			n = len(text)
		}
		lines = append(lines, text[:n])
		text = text[n:]
	}
	return lines
}

// lineCounts returns how many lines were added and removed between two texts.
func lineCounts(before, after []byte) (added, removed uint64) {
	for _, h := range diff.Hunks(splitLines(before), splitLines(after), diff.Context(0)) {
		added += uint64(h.EndY - h.PosY)
		removed += uint64(h.EndX - h.PosX)
	}
	return added, removed
}

// textOf returns the content of an entry whose lines can be counted; ok is false
// for one that is too large or binary. Nil and directories are empty texts.
func textOf(ctx context.Context, store blob.Store, e *workspace.Entry) (text []byte, ok bool, err error) {
	switch {
	case e == nil || e.Kind == workspace.Dir:
		return nil, true, nil
	case e.Size > maxLineSize || e.Chunked:
		return nil, false, nil
	case e.Kind == workspace.Symlink:
		target, err := workspace.ReadLink(ctx, store, *e)
		return []byte(target), true, err
	}
	data, err := store.Get(ctx, e.ID) // too small to be chunked
	if err != nil {
		return nil, false, err
	}
	return data, !isBinary(data), nil
}

// countLines compares two entries of a path. Lost or damaged content has no lines to
// count; that must not prevent checkpoints.
func countLines(ctx context.Context, store blob.Store, before, after *workspace.Entry) (added, removed uint64, err error) {
	if before != nil && after != nil && before.ID == after.ID && before.Chunked == after.Chunked {
		return 0, 0, nil
	}
	a, ok1, err := textOf(ctx, store, before)
	if isDamage(err) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	b, ok2, err := textOf(ctx, store, after)
	if isDamage(err) {
		return 0, 0, nil
	}
	if err != nil || !ok1 || !ok2 {
		return 0, 0, err
	}
	added, removed = lineCounts(a, b)
	return added, removed, nil
}

func isDamage(err error) bool {
	return errors.Is(err, blob.ErrCorrupt) || errors.Is(err, blob.ErrNotFound)
}

// count fills in the differences from the parent.
func (w *Workspace) count(ctx context.Context, changed []workspace.Change, rec *Record) error {
	rec.FilesChanged, rec.LinesAdded, rec.LinesRemoved, rec.LinesPartial = 0, 0, 0, false
	for _, c := range changed {
		if isDir(c.Before) && isDir(c.After) || c.Before == nil && isDir(c.After) || c.After == nil && isDir(c.Before) {
			continue
		}
		// The lines of a rewind are in its plan.
		if rec.FilesChanged++; rec.FilesChanged > maxCounted || rec.Kind == Rewound {
			rec.LinesPartial = true
			continue
		}
		added, removed, err := countLines(ctx, w.s.blobs, c.Before, c.After)
		if err != nil {
			return err
		}
		rec.LinesAdded += added
		rec.LinesRemoved += removed
	}
	return nil
}

func isDir(e *workspace.Entry) bool { return e != nil && e.Kind == workspace.Dir }

// Compare counts the files that differ between two checkpoints, and their lines. If
// many files differ, it counts the lines of only some of them and sets partial.
func (s *Service) Compare(ctx context.Context, older, newer *Record) (files, added, removed uint64, partial bool, err error) {
	changed, err := workspace.Diff(ctx, s.blobs, older.Tree, newer.Tree)
	if err == nil {
		changed, err = s.Comparable(ctx, changed, older, newer)
	}
	if err != nil {
		return 0, 0, 0, false, fmt.Errorf("compare %s with %s: %w", older.ID, newer.ID, err)
	}
	var counted Record
	err = (&Workspace{s: s}).count(ctx, changed, &counted)
	return counted.FilesChanged, counted.LinesAdded, counted.LinesRemoved, counted.LinesPartial, err
}

// Unlike lists the files that changed between two checkpoints and that differ between two
// others.
func (s *Service) Unlike(ctx context.Context, older, newer, one, other *Record) ([]string, error) {
	changed, err := workspace.Diff(ctx, s.blobs, older.Tree, newer.Tree)
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", older.ID, newer.ID, err)
	}
	var paths []string
	for _, c := range changed {
		at, err := (&Workspace{s: s}).entriesAt(ctx, c.Path, one.Tree, other.Tree)
		if err != nil {
			return nil, fmt.Errorf("compare %s with %s: %w", one.ID, other.ID, err)
		}
		if !sameState(at[0], at[1]) && !isDir(at[0]) && !isDir(at[1]) {
			paths = append(paths, c.Path)
		}
	}
	return paths, nil
}
