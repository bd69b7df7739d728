package checkpoint

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/workspace"
)

// Known returns the files that a checkpoint covers, including those that it records
// as missing. It returns nil for a checkpoint that covers its whole directory, as all
// but imported ones do.
func (s *Service) Known(ctx context.Context, rec *Record) (map[string]bool, error) {
	if rec == nil || rec.Kind != Import {
		return nil, nil
	}
	list, err := s.skippedList(ctx, rec)
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool)
	for _, path := range list.GetAbsent() {
		known[string(path)] = true
	}
	parents := make(map[string]bool)
	err = workspace.Walk(ctx, s.blobs, rec.Tree, func(path string, e workspace.Entry) error {
		known[path] = true
		if dir, _ := splitPath(path); dir != "" {
			parents[dir] = true
		}
		return nil
	})
	for dir := range parents { // it is there because of what is in it
		delete(known, dir)
	}
	return known, err
}

// partial reports whether a checkpoint may lack files that its directory had. Those of another
// program may; a branch has the whole directory.
func (r *Record) partial() bool {
	return r != nil && r.Kind == Import && !strings.HasPrefix(r.Source, BranchSource)
}

// Comparable leaves out the changes at paths that one of the compared checkpoints
// does not cover. Nil stands for the present.
func (s *Service) Comparable(ctx context.Context, changes []workspace.Change, compared ...*Record) ([]workspace.Change, error) {
	for _, rec := range compared {
		if !rec.partial() {
			continue
		}
		known, err := s.Known(ctx, rec)
		if err != nil {
			return nil, err
		}
		changes = slices.DeleteFunc(slices.Clone(changes), func(c workspace.Change) bool { return !known[c.Path] })
	}
	return changes, nil
}

// planImported decides about the paths that an imported checkpoint covers. The state
// of a path in the latest imported checkpoint of the conversation is the agent's; if
// it differs now, it was changed since.
func (w *Workspace) planImported(ctx context.Context, st *state, p *Plan, present *capture) (*capture, error) {
	known, err := w.s.Known(ctx, p.Target)
	if err != nil {
		return nil, err
	}
	var paths []string
	for path := range known {
		if p.request.asks(path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	last, err := w.s.lastImported(ctx, p.Target, paths)
	if err != nil {
		return nil, err
	}
	return w.decideFiles(ctx, st, p, present, func(present *capture) ([]PathState, Rules, error) {
		e, err := w.overlay(ctx, p.Target, last, paths, present)
		if err != nil {
			return nil, Rules{}, err
		}
		states, err := w.exchangeStates(ctx, e, nil, present)
		return states, Rules{Choice: p.request.choice, Mine: func(_ string, by Writer) bool { return by.Class == ByHand }}, err
	})
}

// lastImported returns, for each path, the entry in the newest imported checkpoint
// that covers it.
func (s *Service) lastImported(ctx context.Context, target *Record, paths []string) (map[string]*workspace.Entry, error) {
	last := make(map[string]*workspace.Entry, len(paths))
	for rec, err := range s.ListConversation(ctx, target.Conversation) {
		var unread *UnreadableError
		if errors.As(err, &unread) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if rec.Kind != Import || len(last) == len(paths) {
			continue
		}
		known, err := s.Known(ctx, rec)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if _, found := last[path]; found {
				continue
			}
			e, err := lookup(ctx, s.blobs, rec.Tree, path)
			if err != nil {
				return nil, err
			}
			if e != nil || known[path] {
				last[path] = e
			}
		}
	}
	return last, nil
}

// overlay puts the paths that an imported checkpoint covers on top of the present.
// The checkpoint has no modes, so those of the present stay.
func (w *Workspace) overlay(ctx context.Context, target *Record, last map[string]*workspace.Entry, paths []string, present *capture) (Exchange, error) {
	to, before := make(map[string]*workspace.Entry), make(map[string]*workspace.Entry)
	for _, path := range paths {
		if err := workspace.CheckPath(path); err != nil {
			return Exchange{}, err
		}
		at, err := w.entriesAt(ctx, path, target.Tree, present.tree)
		if err != nil {
			return Exchange{}, err
		}
		to[path], before[path] = withMode(at[0], at[1]), withMode(last[path], at[1])
	}
	e := Exchange{Paths: paths}
	var err error
	if e.To, err = workspace.Edit(ctx, w.s.blobs, present.tree, to); err != nil {
		return Exchange{}, err
	}
	e.Last, err = workspace.Edit(ctx, w.s.blobs, present.tree, before)
	return e, err
}

// withMode returns an entry with the current mode of the path, if that is of the same
// kind. A directory keeps its content.
func withMode(e, now *workspace.Entry) *workspace.Entry {
	if e == nil {
		return nil
	}
	out := *e
	if now != nil && now.Kind == e.Kind {
		out.Mode = now.Mode
	}
	if out.Kind == workspace.Dir {
		out = workspace.Entry{Kind: workspace.Dir, Mode: out.Mode}
	}
	return &out
}

// importedNamed finds an imported checkpoint by its name, such as "i7", or its source.
func (w *Workspace) importedNamed(ctx context.Context, conversation, ref string) (*Record, error) {
	if number, ok := strings.CutPrefix(strings.ToLower(ref), "i"); ok {
		if n, err := strconv.ParseUint(number, 10, 64); err == nil {
			return w.importedBy(ctx, conversation, ref, func(rec *Record) bool { return rec.Number == n })
		}
	}
	return w.importedBy(ctx, conversation, ref, func(rec *Record) bool { return rec.Source == ref })
}

// importedBy finds an imported checkpoint: the newest match in a conversation or,
// without a conversation, the only match among those of this directory or, if it has
// none, of all.
func (w *Workspace) importedBy(ctx context.Context, conversation, ref string, fits func(*Record) bool) (*Record, error) {
	list := w.s.listed(ctx, keyspace.Checkpoints(), true)
	if conversation != "" {
		list = w.s.ListConversation(ctx, conversation)
	}
	newest := make(map[string]*Record) // by conversation
	for rec, err := range list {
		var unread *UnreadableError
		if errors.As(err, &unread) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if rec.Kind == Import && fits(rec) && newest[rec.Conversation] == nil {
			newest[rec.Conversation] = rec
		}
	}
	var here, all []*Record
	for _, rec := range newest {
		all = append(all, rec)
		if rec.Workspace == w.id {
			here = append(here, rec)
		}
	}
	if len(here) > 0 {
		all = here
	}
	switch len(all) {
	case 0:
		return nil, ErrNotFound
	case 1:
		return all[0], nil
	}
	several := &AmbiguousError{Ref: ref}
	for _, rec := range all {
		several.Candidates = append(several.Candidates, rec.ID)
	}
	slices.Sort(several.Candidates)
	return nil, several
}
