package purge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/workspace"
)

// ErrNotCaptured says that no checkpoint has a named path.
var ErrNotCaptured = fault.New(fault.NotFound, "no checkpoint has this path")

// level is how far a purge concerns a blob.
type level uint8

const (
	clean  level = iota
	partly       // it holds the content of a named path, perhaps as a part
	whole        // it holds a secret, or is the content of a named path
)

// finder finds the blobs that hold the bytes. It reads each once.
type finder struct {
	s        *Service
	secrets  *patterns        // concern every content
	contents *patterns        // and of named paths: concern conversations and rows
	exact    map[blob.ID]bool // contents of named paths
	levels   map[blob.ID]level
	chunked  map[blob.ID]level    // by list of chunks
	nodes    map[blob.ID][]string // paths below a directory that are removed
	partial  map[blob.ID][]string // paths that hold a content as a part
	progress func(int)
	unread   []error
}

// again returns a finder for the same bytes that has read nothing yet.
func (f *finder) again() *finder {
	return &finder{
		s: f.s, secrets: f.secrets, contents: f.contents, exact: f.exact, progress: f.progress,
		levels: make(map[blob.ID]level), chunked: make(map[blob.ID]level),
		nodes: make(map[blob.ID][]string), partial: make(map[blob.ID][]string),
	}
}

// Find searches the whole store and changes nothing. It reads every blob.
func (s *Service) Find(ctx context.Context, target Target) (*Plan, error) {
	for _, secret := range target.Secrets {
		if err := CheckSecret(secret); err != nil {
			return nil, err
		}
	}
	pending, _, err := s.pending(ctx)
	if err != nil {
		return nil, err
	}
	f := (&finder{s: s, secrets: newPatterns(target.Secrets), exact: make(map[blob.ID]bool), progress: target.Progress}).again()
	bodies, err := f.versions(ctx, target)
	if errors.Is(err, ErrNotCaptured) && len(pending) > 0 {
		err = nil // an earlier purge of it was interrupted
	}
	if err != nil {
		return nil, err
	}
	f.contents = newPatterns(slices.Concat(target.Secrets, bodies))
	plan := &Plan{target: target, find: f, pending: pending, Unfinished: len(pending) > 0}
	return plan, plan.look(ctx)
}

// look fills the plan.
func (p *Plan) look(ctx context.Context) error {
	if err := p.find.all(ctx); err != nil {
		return err
	}
	for id, l := range p.find.levels {
		if l == whole || p.find.exact[id] {
			p.Contents++
		}
	}
	if err := p.lookAtTrees(ctx); err != nil {
		return err
	}
	if err := p.lookAtConversations(ctx); err != nil {
		return err
	}
	if err := p.lookBeside(ctx); err != nil {
		return err
	}
	if err := p.lookAtSessions(ctx); err != nil {
		return err
	}
	p.Unread = p.find.unread
	return nil
}

// versions collects what checkpoints have at the named paths.
func (f *finder) versions(ctx context.Context, target Target) (bodies [][]byte, err error) {
	if len(target.Paths) == 0 {
		return nil, nil
	}
	found := false
	seen := make(map[blob.ID]bool)
	add := func(e workspace.Entry) error {
		found = true
		if e.Kind == workspace.Dir || seen[e.ID] || e.Size < MinSecret {
			return nil
		}
		seen[e.ID] = true
		f.exact[e.ID] = true
		if e.Chunked || e.Size > MaxSecret {
			return nil
		}
		data, err := f.s.stores.Blobs.Get(ctx, e.ID)
		if err != nil {
			return f.pass(e.ID, err)
		}
		if body := bytes.TrimRight(data, "\r\n"); CheckSecret(body) == nil {
			bodies = append(bodies, body)
		}
		return nil
	}
	for needs, err := range f.s.stores.Checkpoints.Needs(ctx) {
		if err != nil {
			return nil, err
		}
		rec := needs.Checkpoint
		if rec == nil || rec.Workspace != target.Workspace {
			continue
		}
		for _, path := range target.Paths {
			e, err := workspace.Lookup(ctx, f.s.stores.Blobs, rec.Tree, path)
			if err != nil {
				continue // it does not exist, or the tree cannot be read, which look reports
			}
			if err := add(e); err != nil {
				return nil, err
			}
			if e.Kind != workspace.Dir {
				continue
			}
			err = workspace.Walk(ctx, f.s.stores.Blobs, e.ID, func(_ string, e workspace.Entry) error { return add(e) })
			if err != nil {
				return nil, f.pass(e.ID, err)
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("%w: %s", ErrNotCaptured, strings.Join(target.Paths, ", "))
	}
	return bodies, nil
}

// all reads every stored blob.
func (f *finder) all(ctx context.Context) error {
	var ids []blob.ID
	err := f.s.stores.Lister.List(ctx, blob.ID{}, func(i blob.Info) error { ids = append(ids, i.ID); return nil })
	if err != nil {
		if !errors.Is(err, blob.ErrCorrupt) {
			return fmt.Errorf("purge: %w", err)
		}
		f.unread = append(f.unread, err)
	}
	for _, id := range ids {
		if _, err := f.level(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// level returns the level of a blob; it reads the blob the first time.
func (f *finder) level(ctx context.Context, id blob.ID) (level, error) {
	if l, ok := f.levels[id]; ok {
		return l, nil
	}
	l, err := f.read(ctx, id)
	if err != nil {
		if err := f.pass(id, err); err != nil {
			return clean, err
		}
	}
	f.levels[id] = l
	if n := len(f.levels); f.progress != nil && n%1024 == 0 {
		f.progress(n)
	}
	return l, nil
}

// pass records a blob that cannot be read, and returns other errors.
func (f *finder) pass(id blob.ID, err error) error {
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return nil // removed meanwhile, or lost
	case errors.Is(err, blob.ErrCorrupt), errors.Is(err, blob.ErrWrongKey), errors.Is(err, workspace.ErrBadNode):
		f.unread = append(f.unread, fmt.Errorf("blob %s: %w", id, err))
		return nil
	}
	return fmt.Errorf("purge: %w", err)
}

// read searches content in overlapping windows.
func (f *finder) read(ctx context.Context, id blob.ID) (level, error) {
	r, err := blob.Open(ctx, f.s.stores.Blobs, id)
	if err != nil {
		return clean, err
	}
	l := clean
	err = windows(r, f.contents.longest, func(part []byte) bool {
		switch {
		case f.secrets.in(part):
			l = whole
		case l == clean && f.contents.in(part):
			l = partly
		}
		return l != whole
	})
	return l, errors.Join(err, r.Close())
}

// windowSize is how much content is searched at once.
const windowSize = 1 << 20

// windows calls fn with parts of r, each of which begins with the last bytes of the one
// before, so that what is at most longest bytes long is whole in one of them.
func windows(r io.Reader, longest int, fn func([]byte) bool) error {
	buf := make([]byte, 0, windowSize+longest)
	for {
		n, err := io.ReadFull(r, buf[len(buf):min(cap(buf), len(buf)+windowSize)])
		buf = buf[:len(buf)+n]
		if n > 0 && !fn(buf) {
			return nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		keep := min(len(buf), max(longest-1, 0))
		copy(buf, buf[len(buf)-keep:])
		buf = buf[:keep]
	}
}
