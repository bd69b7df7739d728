package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// putSkipped stores the list of uncaptured paths. Most checkpoints of a workspace
// share one list, so it is a separate blob.
func (s *Service) putSkipped(ctx context.Context, c *capture, rec *Record, b *kv.Batch) error {
	skipped := c.skipped
	rec.NotCaptured, rec.notCaptured = uint64(len(skipped)), blob.ID{}
	if len(skipped) == 0 && len(c.stamps) == 0 && len(c.changedIgnored) == 0 {
		return nil
	}
	list := &stetv1.NotCapturedList{
		Entries: make([]*stetv1.NotCaptured, len(skipped)), Stamps: wireStamps(c.stamps), ChangedIgnored: pathBytes(c.changedIgnored),
	}
	for i, k := range skipped {
		// Sizes of growing files would make every list a new one, so only files that
		// are too large keep theirs.
		e := &stetv1.NotCaptured{Path: []byte(k.Path), Reason: string(k.Reason), Dir: k.Dir}
		if k.Reason == workspace.ReasonTooLarge {
			e.Size = uint64(k.Size)
		}
		list.Entries[i] = e
	}
	data, err := marshal(list)
	if err != nil {
		return fmt.Errorf("encode what was not captured: %w", err)
	}
	content := blob.New(data)
	if err := s.blobs.Put(ctx, content); err != nil {
		return fmt.Errorf("store what was not captured: %w", err)
	}
	rec.notCaptured = content.ID
	b.Refs = append(b.Refs, content.ID)
	return nil
}

// NotCaptured lists, sorted by path, what a checkpoint saw but did not capture.
func (s *Service) NotCaptured(ctx context.Context, rec *Record) ([]workspace.Skipped, error) {
	list, err := s.skippedList(ctx, rec)
	if err != nil || len(list.GetEntries()) == 0 {
		return nil, err
	}
	out := make([]workspace.Skipped, len(list.Entries))
	for i, e := range list.Entries {
		out[i] = workspace.Skipped{Path: string(e.Path), Reason: workspace.Reason(e.Reason), Dir: e.Dir, Size: int64(e.Size)}
	}
	return out, nil
}

// skippedList reads the list of a checkpoint; without one it returns nil.
func (s *Service) skippedList(ctx context.Context, rec *Record) (*stetv1.NotCapturedList, error) {
	if rec == nil || rec.notCaptured.IsZero() {
		return nil, nil
	}
	data, err := s.blobs.Get(ctx, rec.notCaptured)
	if err != nil {
		return nil, fmt.Errorf("read what checkpoint %s left out: %w", rec.ID, err)
	}
	var list stetv1.NotCapturedList
	if err := proto.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("read what checkpoint %s left out: %w: %v", rec.ID, ErrBadRecord, err)
	}
	return &list, nil
}

// mergeSkipped replaces, in the list of a whole workspace, the entries of the paths
// that a scan covered. Paths are relative and clean.
func mergeSkipped(before []workspace.Skipped, res *workspace.Result, paths []string) []workspace.Skipped {
	if res.Base.IsZero() {
		return res.NotCaptured // a full scan
	}
	came := make(map[string]bool)
	for _, c := range res.Changed {
		came[c.Path] = c.Before == nil
	}
	var out []workspace.Skipped
	for _, k := range before {
		if !came[k.Path] && !slices.ContainsFunc(paths, func(p string) bool { return looksAt(p, k) }) {
			out = append(out, k)
		}
	}
	for _, k := range res.NotCaptured {
		if !slices.ContainsFunc(out, func(o workspace.Skipped) bool { return o.Path == k.Path }) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b workspace.Skipped) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// looksAt reports whether a scan of a path covers an uncaptured path. With an ignore
// file it covers everything that the file may affect.
func looksAt(p string, k workspace.Skipped) bool {
	if within(k.Path, p) {
		return true
	}
	dir, name := splitPath(p)
	return k.Reason.ByRule() && workspace.IsIgnoreFile(name) && within(k.Path, dir)
}

// relative converts a caller's paths to those of trees. Paths outside the workspace
// and empty ones stay unchanged, and the scan rejects them.
func (w *Workspace) relative(paths []string) []string {
	if paths == nil {
		return nil
	}
	out := make([]string, len(paths))
	for i, p := range paths {
		if filepath.IsAbs(p) {
			if rel, err := filepath.Rel(w.path, p); err == nil && filepath.IsLocal(rel) {
				p = rel
			}
		}
		if p != "" { // a variable that is not set must not mean everything
			p = path.Clean(filepath.ToSlash(p))
		}
		out[i] = p
	}
	return out
}

// within reports whether a path is dir or below it. Everything is within "".
func within(path, dir string) bool {
	return dir == "" || dir == "." || path == dir || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}

// blind is the set of paths that a tree does not cover.
type blind map[string]workspace.Skipped

func newBlind(skipped []workspace.Skipped) blind {
	b := make(blind, len(skipped))
	for _, k := range skipped {
		b[k.Path] = k
	}
	return b
}

// at returns why a tree does not cover a path: it was not captured, or a directory
// above it was not.
func (b blind) at(path string) (workspace.Skipped, bool) {
	if len(b) == 0 {
		return workspace.Skipped{}, false
	}
	if k, ok := b[path]; ok {
		return k, true
	}
	for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path[:i], '/') {
		if k, ok := b[path[:i]]; ok && k.Dir {
			return k, true
		}
	}
	return workspace.Skipped{}, false
}

// lost returns why a tree does not cover a path that the previous tree had. A
// captured file in an ignored directory stays captured while it exists, so its
// absence means that it was removed.
func (b blind) lost(path string) (workspace.Skipped, bool) {
	k, ok := b.at(path)
	if ok && k.Reason == workspace.ReasonIgnored && k.Path != path {
		return workspace.Skipped{}, false
	}
	return k, ok
}
