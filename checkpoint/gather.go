package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	prefixes "github.com/stet-dev/stet/internal/lookup"
	"github.com/stet-dev/stet/workspace"
)

// Plan returns what a rewind would do. It captures the workspace and changes nothing
// in it.
func (w *Workspace) Plan(ctx context.Context, req RewindRequest) (*Plan, error) {
	if w.s.opts.DisableRead {
		return nil, fmt.Errorf("plan rewind: %w", ErrDisabled)
	}
	st, leave, err := w.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("plan rewind: %w", err)
	}
	defer leave()
	plan := func() (*job, error) { return w.plan(ctx, st, req) }
	job, err := w.confirmed(ctx, plan)
	if isLost(err) { // as in change
		if err = w.dropIndex(); err == nil {
			job, err = w.confirmed(ctx, plan)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("plan rewind: %w", err)
	}
	if err := w.CountLines(ctx, job.plan); err != nil {
		return nil, fmt.Errorf("plan rewind: %w", err)
	}
	// The index covers everything that a later rewind will scan.
	_ = w.keepIndex(job.present.index) // only a cache
	return job.plan, nil
}

// job is a plan together with its inputs.
type job struct {
	plan    *Plan
	present *capture
	kind    string   // of the operation
	of      uint64   // operation to undo or redo, or 0
	scope   []string // paths to which the operation is limited, or nil
	// compares means that the files are to be as at the target, as far as the request
	// asks for them: what differs from it afterwards is left, and is named.
	compares bool
}

// plan makes a plan. The caller holds the workspace's lock.
func (w *Workspace) plan(ctx context.Context, st *state, req RewindRequest) (*job, error) {
	if err := checkRequest(&req); err != nil {
		return nil, err
	}
	if err := w.listsTip(ctx, st); err != nil {
		return nil, err
	}
	if req.OnlyTurn != 0 {
		return w.planTurn(ctx, st, req)
	}
	if req.Exchange != nil {
		return w.planExchange(ctx, st, req)
	}
	if req.Lines != nil {
		return w.planLines(ctx, st, req)
	}
	ref, err := w.Resolve(ctx, req.To, req.Conversation)
	if err != nil {
		return nil, err
	}
	if ref == nil {
		return nil, fmt.Errorf("%w: %q is the present", ErrBadRef, req.To)
	}
	if ref.Workspace != w.id && !(ref.Kind == Import && req.Elsewhere) {
		return nil, fmt.Errorf("%w: %s", ErrOtherWorkspace, ref.ID)
	}
	present, err := w.captured(ctx, st, &Request{})
	if err != nil {
		return nil, err
	}
	p := &Plan{Target: ref, Conversation: req.Conversation, request: req, present: present.tree, NotCaptured: present.skipped, foreign: ref.Received}
	if p.Conversation == "" {
		if p.Conversation, err = w.heir(ctx, st, ref); err != nil {
			return nil, err
		}
	}
	if err := w.planAncestry(ctx, p); err != nil {
		return nil, err
	}
	if err := w.planConversation(ctx, p); err != nil {
		return nil, err
	}
	if err := w.checkPaths(ctx, req.Paths, ref.Tree, present.tree); err != nil {
		return nil, err
	}
	if req.Scope != ConversationOnly {
		files := w.planFiles
		if ref.Kind == Import {
			files = w.planImported
		}
		if present, err = files(ctx, st, p, present); err != nil {
			return nil, err
		}
		changes, err := w.ignoredIn(ctx, p, takenBack{from: ref})
		if err != nil {
			return nil, err
		}
		if err := w.nameIgnored(ctx, p, ref.Tree, changes); err != nil {
			return nil, err
		}
	}
	p.Untouched = untouched(present, p.Actions)
	p.sign(w.id)
	compares := req.Scope != ConversationOnly
	if compares {
		if err := w.nameUnrecorded(ctx, p, present); err != nil {
			return nil, err
		}
	}
	return &job{plan: p, present: present, kind: OpRewind, scope: req.Paths, compares: compares}, nil
}

// checkPaths rejects paths that are neither in one of several trees nor in the
// workspace, where they may be ignored.
func (w *Workspace) checkPaths(ctx context.Context, paths []string, trees ...blob.ID) error {
	for _, path := range paths {
		_, err := os.Lstat(filepath.Join(w.path, path))
		found := err == nil
		for _, tree := range trees {
			if found {
				break
			}
			entry, err := lookup(ctx, w.s.blobs, tree, path)
			if err != nil {
				return err
			}
			found = entry != nil
		}
		if !found {
			return fmt.Errorf("%w: %q is neither in the checkpoint nor in the workspace", ErrNoPath, path)
		}
	}
	return nil
}

// planConversation determines the current and the new state of the conversation.
func (w *Workspace) planConversation(ctx context.Context, p *Plan) error {
	scope, convs := p.request.Scope, w.s.opts.Conversations
	if convs == nil || p.Conversation == "" {
		if scope == ConversationOnly || scope == Both {
			return ErrNoConversations
		}
		return nil
	}
	root, err := convs.Current(ctx, p.Conversation)
	if err != nil {
		return fmt.Errorf("find conversation %q: %w", p.Conversation, err)
	}
	if p.RootBefore, err = w.unlessLost(ctx, root); err != nil {
		return err
	}
	if scope == FilesOnly {
		return nil
	}
	own := p.wasThere
	to := stateAt(p.Target, root)
	if own && p.Conversation != p.Target.Conversation && !to.IsZero() {
		if own, err = w.had(ctx, p.Conversation, to); err != nil {
			return err
		}
	}
	if own && !to.IsZero() {
		if root.IsZero() {
			p.stays = staysRemoved
			if scope == ConversationOnly || scope == Both {
				return fmt.Errorf("%w: conversation %q was removed", ErrNoConversations, p.Conversation)
			}
			return nil
		}
		p.RootAfter = to
		return w.stateThere(ctx, p)
	}
	if scope == ConversationOnly || scope == Both {
		return fmt.Errorf("%w: checkpoint %s names no state of conversation %q", ErrNoConversations, p.Target.ID, p.Conversation)
	}
	if p.wasThere && !root.IsZero() {
		p.stays = fmt.Sprintf("stays as it is, because %s has no state of it", p.Target.Name())
	}
	return nil
}

// staysRemoved is what Effect says about a conversation that no longer exists.
const staysRemoved = "was removed, and does not come back"

// stateAt returns the state of the conversation at a checkpoint, given its state now.
// Before its first turn a conversation has not been saved, and is empty.
func stateAt(rec *Record, now blob.ID) blob.ID {
	if rec.Root.IsZero() && !now.IsZero() && rec.Side == Before && rec.Turn == 1 && rec.Kind != Import {
		return conversation.EmptyRoot()
	}
	return rec.Root
}

// unlessLost returns a root, or zero if it is lost: nothing can go back to it then,
// and a conversation must be able to leave it.
func (w *Workspace) unlessLost(ctx context.Context, root blob.ID) (blob.ID, error) {
	if root.IsZero() {
		return root, nil
	}
	there, err := w.s.blobs.Has(ctx, root)
	if err != nil || !there[0] {
		return blob.ID{}, err
	}
	return root, nil
}

// stateThere fails if the state that a plan moves to is lost, before anything is done.
func (w *Workspace) stateThere(ctx context.Context, p *Plan) error {
	if p.RootAfter == conversation.EmptyRoot() {
		return nil // the rewind stores it
	}
	there, err := w.s.blobs.Has(ctx, p.RootAfter)
	if err != nil || there[0] {
		return err
	}
	return &conversation.HydrationError{
		Conversation: p.Conversation, Source: "checkpoint " + p.Target.Name(),
		Err: fmt.Errorf("state %s is lost; a rewind of the files alone does not need it", p.RootAfter.Short()),
	}
}

// planFiles decides about every path that differs from the target. It returns the
// captured state that the plan is based on.
func (w *Workspace) planFiles(ctx context.Context, st *state, p *Plan, present *capture) (*capture, error) {
	return w.decideFiles(ctx, st, p, present, func(present *capture) ([]PathState, Rules, error) {
		states, err := w.statesSince(ctx, st, p, p.Target, present)
		return states, Rules{
			Exact:   p.request.Exact,
			Choice:  p.request.choice,
			Mine:    func(_ string, by Writer) bool { return mine(p.ancestry, by) },
			Perhaps: func(by Writer) bool { return perhapsMine(p.ancestry, by, len(p.request.Paths) > 0) },
		}, err
	})
}

// statesSince collects the paths that differ from a checkpoint, and their authors
// since.
func (w *Workspace) statesSince(ctx context.Context, st *state, p *Plan, from *Record, present *capture) ([]PathState, error) {
	now, err := w.unsaved(ctx, st, p)
	if err != nil {
		return nil, err
	}
	h, err := w.since(ctx, from, now, present)
	if err != nil {
		return nil, err
	}
	return w.states(ctx, h, from, present, p.request.asks)
}

// mine reports whether a rewind of a conversation reverts a change. Without a
// conversation, it reverts everything that any checkpoint saw.
func mine(a ancestry, by Writer) bool {
	switch by.Class {
	case ByConversation:
		return a == nil || a.has(by.Conversation, by.Turn)
	case BySeveral:
		other := func(c string) bool { return a.index(c) < 0 }
		beside := func(t Turn) bool { return !a.has(t.Conversation, t.Number) } // of an origin
		return a == nil || len(by.Among) > 0 && !slices.ContainsFunc(by.Among, other) && !slices.ContainsFunc(by.turns, beside)
	case ByHand, ByForgotten:
		return a == nil
	}
	return false
}

// perhapsMine reports whether a conversation may be the author of a change although
// that is uncertain. If another one may be the author as well, that counts only for
// explicitly requested paths: a general choice must not undo the other's work. The
// same applies to the user's own changes since the last checkpoint in a rewind
// without a conversation.
func perhapsMine(a ancestry, by Writer, asked bool) bool {
	among := slices.ContainsFunc(by.Among, func(c string) bool { return a.index(c) >= 0 })
	switch by.Class {
	case ByForgotten:
		return true
	case BySeveral:
		return asked && among
	case ByUserOrLost:
		return asked && (a == nil || among)
	case ByUser, ByUnseen:
		return asked && a == nil
	}
	return false
}

// chooseActions turns states into the actions of a plan.
func (w *Workspace) chooseActions(ctx context.Context, p *Plan, states []PathState, rules Rules) error {
	known, err := w.markImpossible(states)
	if err != nil {
		return err
	}
	actions := Reconcile(Decide(states, rules), states, rules)
	if err := w.checkNames(actions, known); err != nil {
		return err
	}
	if err := w.mergeAll(ctx, actions, p.request.choice); err != nil {
		return err
	}
	if p.foreign {
		mask(actions)
	}
	p.Lost = w.lost(actions)
	p.Actions = slices.DeleteFunc(actions, func(a Action) bool { return a.Kind == Keep && !p.request.asks(a.Path) })
	return w.nameWriters(ctx, p.Actions)
}

// nameWriters looks up names for the conversations of conflicts that every command
// accepts.
func (w *Workspace) nameWriters(ctx context.Context, actions []Action) error {
	for i := range actions {
		a := &actions[i]
		if a.Kind != Conflict || a.Writer == nil || a.Writer.Conversation == "" {
			continue
		}
		id := a.Writer.Conversation
		short, err := prefixes.Short(ctx, w.s.rows, keyspace.Conversation, keyspace.Conversations(), []string{id}, 6)
		if err != nil {
			return fmt.Errorf("shorten ids: %w", err)
		}
		a.writerName = short[id]
	}
	return nil
}

// states collects the paths that differ from the target.
func (w *Workspace) states(ctx context.Context, h *history, target *Record, present *capture, asks func(string) bool) ([]PathState, error) {
	changes, err := h.diff(ctx, target.Tree, present.tree)
	if err != nil {
		return nil, err
	}
	then, err := h.blindAt(ctx, target)
	if err != nil {
		return nil, err
	}
	now := newBlind(present.skipped)
	states := make([]PathState, 0, len(changes))
	for _, c := range changes {
		// Trees come from a store that others may have written: one bad path rejects
		// the whole rewind.
		if err := workspace.CheckPath(c.Path); err != nil {
			return nil, fmt.Errorf("refuse checkpoint %s: %w", target.ID, err)
		}
		s := PathState{Path: c.Path, Target: c.Before, Present: c.After, Writes: h.after(c.Path, c.Before), Excluded: !asks(c.Path)}
		if k, ok := present.hides(now, c.Path); ok && c.After == nil {
			s.NotCaptured = k.Reason
		}
		if k, ok := then.at(c.Path); ok {
			s.NotCapturedThen, s.PerhapsThen = k.Reason, k.Path != c.Path
		}
		states = append(states, s)
	}
	slices.SortFunc(states, func(a, b PathState) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	return states, w.occupied(states)
}

// occupied finds the directories to be removed that contain something uncaptured,
// such as an ignored file or the .git of a nested repository.
func (w *Workspace) occupied(states []PathState) error {
	known := map[string]bool{}
	for i := range states {
		if states[i].Present != nil {
			known[states[i].Path] = true
		}
	}
	root, err := os.OpenRoot(w.path)
	if err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	defer root.Close()
	for i := range states {
		s := &states[i]
		if !isDir(s.Present) || isDir(s.Target) {
			continue
		}
		names, err := readNames(root, s.Path)
		if isNotExist(err) || errors.Is(err, syscall.ENOTDIR) {
			continue // the recheck before the first change detects it
		}
		if err != nil {
			return fmt.Errorf("look into %q: %w", s.Path, err)
		}
		s.Occupied = slices.ContainsFunc(names, func(name string) bool { return !known[s.Path+"/"+name] })
	}
	return nil
}

func readNames(root *os.Root, path string) ([]string, error) {
	// It may have become a FIFO without a writer. The slash makes opening fail for
	// anything but a directory.
	dir, err := root.OpenFile(path+"/", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	return names, errors.Join(err, dir.Close())
}

// untouched counts the files that a plan does not list.
func untouched(present *capture, actions []Action) int {
	n := int(present.stats.Files)
	for i := range actions {
		if a := &actions[i]; a.Before != nil && a.Before.Kind != workspace.Dir {
			n--
		}
	}
	return max(0, n)
}

// CountLines counts, for each action of a plan, the added and removed lines. Plan has
// counted them already; executed plans are counted only on request.
func (w *Workspace) CountLines(ctx context.Context, p *Plan) error {
	for i := range p.Actions {
		a := &p.Actions[i]
		if !a.Changes() {
			continue
		}
		var err error
		if a.Add, a.Del, err = countLines(ctx, w.s.blobs, a.Before, a.After); err != nil {
			return err
		}
	}
	return nil
}
