package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// putSkipped stores the list of what a tree leaves out. Most checkpoints of a
// workspace share one list, so it is a blob of its own.
func (s *Service) putSkipped(ctx context.Context, skipped []workspace.Skipped, rec *Record, b *kv.Batch) error {
	rec.NotCaptured, rec.notCaptured = uint64(len(skipped)), blob.ID{}
	if len(skipped) == 0 {
		return nil
	}
	list := &stetv1.NotCapturedList{Entries: make([]*stetv1.NotCaptured, len(skipped))}
	for i, k := range skipped {
		// An ignored directory is named by itself; sizes of logs that grow would
		// make every list a new one, so only limits on size keep theirs.
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

// NotCaptured lists, sorted by path, what a checkpoint saw and left out.
func (s *Service) NotCaptured(ctx context.Context, rec *Record) ([]workspace.Skipped, error) {
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
	out := make([]workspace.Skipped, len(list.Entries))
	for i, e := range list.Entries {
		out[i] = workspace.Skipped{Path: string(e.Path), Reason: workspace.Reason(e.Reason), Dir: e.Dir, Size: int64(e.Size)}
	}
	return out, nil
}

// mergeSkipped replaces, in the list of a whole workspace, what concerns the
// paths that were looked at again.
func mergeSkipped(before, seen []workspace.Skipped, paths []string) []workspace.Skipped {
	var out []workspace.Skipped
	for _, k := range before {
		looked := slices.ContainsFunc(paths, func(p string) bool { return within(k.Path, strings.Trim(p, "/")) })
		if !looked {
			out = append(out, k)
		}
	}
	for _, k := range seen {
		if !slices.ContainsFunc(out, func(o workspace.Skipped) bool { return o.Path == k.Path }) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b workspace.Skipped) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// within reports whether a path is dir or below it. Everything is within "".
func within(path, dir string) bool {
	return dir == "" || dir == "." || path == dir || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}

// blind is the set of paths that a tree says nothing about.
type blind map[string]workspace.Skipped

func newBlind(skipped []workspace.Skipped) blind {
	b := make(blind, len(skipped))
	for _, k := range skipped {
		b[k.Path] = k
	}
	return b
}

// at returns why a tree says nothing about a path: it was left out, or a
// directory above it was.
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
