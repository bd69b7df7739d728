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
	"github.com/stet-dev/stet/workspace"
)

// UndoOptions configure what to do about files that changed since. With nil options,
// and for conflicts that the choice does not resolve, such as colliding lines in a
// merge, the error is a ConflictError. A file that can no longer be captured, such as
// one that may not be read, is a conflict that only KeepMine resolves.
type UndoOptions struct {
	// Operation is the number of the operation to undo or redo, for callers that have
	// looked first. If another one is next, the error is ErrStalePlan. 0 means the next
	// one.
	Operation uint64
	Choice    Choice
	Choices   map[string]Choice
	Author    string
	Progress  func(done, all int)
}

// Undo reverts the last rewind of the workspace that was not undone yet, files and
// conversation. A conversation that the rewind did not move, or that went on without it,
// stays. Repeated, it goes further back. A redo counts as a rewind. It returns
// ErrNothing if there is none.
func (w *Workspace) Undo(ctx context.Context, opts *UndoOptions) (*Applied, error) {
	return w.change(ctx, OpUndo, func(st *state) (*job, error) {
		ops, err := w.stack(ctx)
		if err != nil {
			return nil, err
		}
		if len(ops.undo) == 0 {
			return nil, ErrNothing
		}
		return w.planBack(ctx, st, ops.undo[len(ops.undo)-1], OpUndo, opts)
	})
}

// Redo reverts the last Undo: files and conversation are as before it. It returns
// ErrNothing if there is nothing to redo, or if another rewind followed the undo.
func (w *Workspace) Redo(ctx context.Context, opts *UndoOptions) (*Applied, error) {
	return w.change(ctx, OpRedo, func(st *state) (*job, error) {
		ops, err := w.stack(ctx)
		if err != nil {
			return nil, err
		}
		if len(ops.redo) == 0 {
			return nil, ErrNothing
		}
		return w.planBack(ctx, st, ops.redo[len(ops.redo)-1], OpRedo, opts)
	})
}

// stack holds what can be undone and redone in a workspace, the next one last.
type stack struct{ undo, redo []step }

// step is an operation that can be undone or redone.
type step struct {
	*Operation
	// last did or undid it: itself, its latest undo or its latest redo. Going back means
	// to revert this one: others may have worked between them.
	last *Operation
}

// stacks reads from the log what can be undone and redone, by workspace.
func (s *Service) stacks(ctx context.Context) (map[string]*stack, error) {
	var log []*Operation
	for op, err := range s.Operations(ctx) {
		if err != nil {
			return nil, err
		}
		log = append(log, op)
	}
	return stacksOf(log), nil
}

// stacksOf goes through a log that begins with the newest entry.
func stacksOf(log []*Operation) map[string]*stack {
	stacks := map[string]*stack{}
	for _, op := range slices.Backward(log) {
		if op.Before == "" || op.After == "" {
			continue
		}
		st := stacks[op.Workspace]
		if st == nil {
			st = &stack{}
			stacks[op.Workspace] = st
		}
		st.step(op)
	}
	return stacks
}

// step advances to an operation.
func (st *stack) step(op *Operation) {
	switch op.Kind {
	case OpRewind:
		st.undo, st.redo = append(st.undo, step{op, op}), nil
	case OpUndo:
		if n := len(st.undo); n > 0 {
			st.redo = append(st.redo, step{st.undo[n-1].Operation, op})
			st.undo = st.undo[:n-1]
		}
	case OpRedo:
		if n := len(st.redo); n > 0 {
			st.undo = append(st.undo, step{st.redo[n-1].Operation, op})
			st.redo = st.redo[:n-1]
		}
	}
}

// stack returns the stack of the workspace.
func (w *Workspace) stack(ctx context.Context) (*stack, error) {
	stacks, err := w.s.stacks(ctx)
	if st := stacks[w.id]; st != nil {
		return st, err
	}
	return &stack{}, err
}

// planBack plans the undo or redo of an operation.
func (w *Workspace) planBack(ctx context.Context, st *state, op step, kind string, opts *UndoOptions) (*job, error) {
	if opts == nil {
		opts = &UndoOptions{}
	}
	if opts.Operation != 0 && opts.Operation != op.Seq {
		return nil, fmt.Errorf("%w: the next one to %s is %s", ErrStalePlan, kind, op.ID())
	}
	last, err := w.needed(ctx, op.last.After)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, op.ID(), err)
	}
	target, err := w.needed(ctx, op.last.Before)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, op.ID(), err)
	}
	present, err := w.captured(ctx, st, &Request{})
	if err != nil {
		return nil, err
	}
	p := &Plan{
		Target: target, Conversation: op.Conversation, origins: op.last.Origins, present: present.tree, NotCaptured: present.skipped, foreign: target.Received,
		request: RewindRequest{Choice: opts.Choice, Choices: opts.Choices, Author: opts.Author, Progress: opts.Progress},
	}
	if err := w.planRootBack(ctx, p, op.last); err != nil {
		return nil, err
	}
	paths, err := w.s.Paths(ctx, op.last)
	if err != nil {
		return nil, err
	}
	skipped, err := w.s.NotCaptured(ctx, target)
	if err != nil {
		return nil, err
	}
	e := Exchange{To: target.Tree, Last: last.Tree, Paths: paths}
	if present, err = w.exchange(ctx, st, p, e, newBlind(skipped), present); err != nil {
		return nil, err
	}
	blocked, err := w.blocked(ctx, p, paths, present)
	if err != nil {
		return nil, err
	}
	// An undo that passed over conflicts would count as done.
	if conflicts := append(p.Unchosen(), blocked...); len(conflicts) > 0 {
		slices.Sort(conflicts)
		return nil, &ConflictError{Paths: conflicts, Plan: p}
	}
	p.Untouched = untouched(present, p.Actions)
	p.sign(w.id)
	return &job{plan: p, present: present, kind: kind, of: op.Seq, scope: op.Scope}, nil
}

// blocked lists the paths that a plan should change and leaves alone because what is
// there now cannot be captured. What a rule hides is revealed instead.
func (w *Workspace) blocked(ctx context.Context, p *Plan, paths []string, present *capture) ([]string, error) {
	kinds := make(map[string]ActionKind, len(p.Actions))
	for i := range p.Actions {
		kinds[p.Actions[i].Path] = p.Actions[i].Kind
	}
	now := newBlind(present.skipped)
	var blocked []string
	for _, path := range paths {
		if k, ok := present.hides(now, path); !ok || k.Reason.ByRule() || p.request.keeps(path) {
			continue
		}
		at, err := w.entriesAt(ctx, path, present.tree)
		if err != nil {
			return nil, err
		}
		if at[0] != nil {
			continue // captured anyway
		}
		kind, listed := kinds[path]
		if !listed { // it should be removed, so the tree is as if that were done
			_, err := os.Lstat(filepath.Join(w.path, filepath.FromSlash(path)))
			if isNotExist(err) || errors.Is(err, syscall.ENOTDIR) {
				continue
			}
		}
		if !listed || kind == Keep {
			blocked = append(blocked, path)
		}
	}
	return blocked, nil
}

// needed loads a checkpoint of an operation. A retention policy may have removed an
// old one; then there is nothing to go back to.
func (w *Workspace) needed(ctx context.Context, id string) (*Record, error) {
	rec, err := w.s.Get(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%w: its checkpoint %s was forgotten by a retention policy", ErrNothing, id)
	}
	return rec, err
}

// planRootBack determines the new state of the conversation, if the operation moved
// it: one that it did not move stays, with all turns that came since. So does one that went
// on from where it was before the operation, as that of an agent does which did not follow a
// rewind: it has all turns already. A conversation that was removed since must not hinder
// the files.
func (w *Workspace) planRootBack(ctx context.Context, p *Plan, op *Operation) error {
	to, convs := op.RootBefore, w.s.opts.Conversations
	if op.RootAfter.IsZero() || op.RootBefore.IsZero() {
		return nil
	}
	if convs == nil {
		return ErrNoConversations
	}
	root, err := convs.Current(ctx, op.Conversation)
	if err != nil {
		return fmt.Errorf("find conversation %q: %w", op.Conversation, err)
	}
	if !op.movedConversation() {
		p.RootBefore, err = w.unlessLost(ctx, root)
		return err
	}
	if root.IsZero() {
		p.stays = staysRemoved
		return nil
	}
	had, err := convs.Had(ctx, op.Conversation, to)
	if err != nil {
		return fmt.Errorf("find a state of conversation %q: %w", op.Conversation, err)
	}
	if !had { // it was removed, and another one began under its name
		p.stays = "stays as it is, because it never had the state to return to"
		return nil
	}
	if p.RootBefore, err = w.unlessLost(ctx, root); err != nil {
		return err
	}
	from, err := convs.Continued(ctx, op.Conversation, to, op.RootAfter)
	if err != nil {
		return fmt.Errorf("find a state of conversation %q: %w", op.Conversation, err)
	}
	if from == to && root != to {
		p.stays = "stays as it is, because it went on from the state to return to"
		return nil
	}
	p.RootAfter = to
	return nil
}

// planExchange plans to go to a tree that no checkpoint has.
func (w *Workspace) planExchange(ctx context.Context, st *state, req RewindRequest) (*job, error) {
	if st.row.Id == "" {
		return nil, fmt.Errorf("%w: the workspace has no checkpoint yet", ErrNotFound)
	}
	present, err := w.captured(ctx, st, &Request{})
	if err != nil {
		return nil, err
	}
	p := &Plan{Conversation: req.Conversation, request: req, present: present.tree, NotCaptured: present.skipped, foreign: true}
	if present, err = w.exchange(ctx, st, p, *req.Exchange, nil, present); err != nil {
		return nil, err
	}
	p.Untouched = untouched(present, p.Actions)
	p.sign(w.id)
	return &job{plan: p, present: present, kind: OpRewind}, nil
}

// exchange decides about paths that differ between two trees: a path that equals the
// first is changed to the second; others are the user's, and so is what the second does
// not cover, such as a file that was purged from it. It returns the captured state that
// the plan is based on.
func (w *Workspace) exchange(ctx context.Context, st *state, p *Plan, e Exchange, then blind, present *capture) (*capture, error) {
	return w.decideFiles(ctx, st, p, present, func(present *capture) ([]PathState, Rules, error) {
		states, err := w.exchangeStates(ctx, e, then, present)
		return states, Rules{Whole: true, Choice: p.request.choice, Mine: func(_ string, by Writer) bool { return by.Class == ByHand }}, err
	})
}

func (w *Workspace) exchangeStates(ctx context.Context, e Exchange, then blind, present *capture) ([]PathState, error) {
	now := newBlind(present.skipped)
	states := make([]PathState, 0, len(e.Paths))
	listed := make(map[string]bool, len(e.Paths))
	for _, path := range slices.Compact(slices.Sorted(slices.Values(e.Paths))) {
		if err := workspace.CheckPath(path); err != nil {
			return nil, err
		}
		at, err := w.entriesAt(ctx, path, e.To, e.Last, present.tree)
		if err != nil {
			return nil, err
		}
		s := PathState{Path: path, Target: at[0], Present: at[2]}
		s.Writes = []Write{{Writer: Writer{Class: ByHand}, After: at[1]}}
		if !sameState(at[1], at[2]) {
			s.Writes = append(s.Writes, Write{Writer: Writer{Class: ByUser}, After: at[2]})
		}
		if k, ok := present.hides(now, path); ok && s.Present == nil {
			s.NotCaptured = k.Reason
		}
		if k, ok := then[path]; ok {
			s.NotCapturedThen = k.Reason
		}
		states = append(states, s)
		listed[path] = true
	}
	above, err := w.statesAbove(ctx, e, present, now, listed)
	if err != nil {
		return nil, err
	}
	states = append(states, above...)
	return states, w.occupied(states)
}

// statesAbove collects the directories above the paths of an exchange that differ.
// They are the user's: each stays unchanged unless something is restored in it.
func (w *Workspace) statesAbove(ctx context.Context, e Exchange, present *capture, now blind, listed map[string]bool) ([]PathState, error) {
	var states []PathState
	for _, path := range e.Paths {
		for dir, _ := splitPath(path); dir != "" && !listed[dir]; dir, _ = splitPath(dir) {
			listed[dir] = true
			at, err := w.entriesAt(ctx, dir, e.To, present.tree)
			if err != nil {
				return nil, err
			}
			if at[0] == nil || sameState(at[0], at[1]) {
				continue
			}
			s := PathState{Path: dir, Target: at[0], Present: at[1], Writes: []Write{{Writer: Writer{Class: ByUser}, After: at[1]}}}
			if k, ok := present.hides(now, dir); ok && s.Present == nil {
				s.NotCaptured = k.Reason
			}
			states = append(states, s)
		}
	}
	return states, nil
}

// entriesAt returns the entries of several trees at a path.
func (w *Workspace) entriesAt(ctx context.Context, path string, trees ...blob.ID) ([]*workspace.Entry, error) {
	at := make([]*workspace.Entry, len(trees))
	for i, tree := range trees {
		var err error
		if at[i], err = lookup(ctx, w.s.blobs, tree, path); err != nil {
			return nil, err
		}
	}
	return at, nil
}
