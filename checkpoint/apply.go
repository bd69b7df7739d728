package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/swapdir"
	"github.com/stet-dev/stet/kv"
)

// Applied is the result of a rewind, an undo or a redo.
type Applied struct {
	// Operation is its entry in the log.
	Operation *Operation
	// Saved is the checkpoint of the state before, and Record the one after.
	Saved, Record *Record
	// Files is the number of files that were changed, all of them verified. Directories
	// are not counted.
	Files int
	// Plan is what was done, without counts of lines; see CountLines.
	Plan *Plan
	// NoSetgid lists paths that were restored without their set-group-id bit: the
	// kernel sets it only for members of the group, and drops it silently otherwise.
	NoSetgid []string
	// Uncovered lists paths that the plan did not name, and that its changes of ignore files
	// uncovered: they were never captured, and are left alone. Plan has them by now.
	Uncovered []string
	// Recovered describes an interrupted rewind that was recovered first, or is nil.
	Recovered *Recovery
	// CleanupError is why staged files could not be removed, or nil. They are
	// removed when the workspace is next opened.
	CleanupError error
	// IndexError is why the stat index could not be saved, or nil.
	IndexError error
}

// Rewind plans and applies in one call. With the request and the token of an earlier
// plan, it does exactly what that plan lists: if the workspace has changed since, the
// token differs, and Rewind returns ErrStalePlan and changes nothing. An empty token
// accepts any plan.
//
// It saves the current state first. If the error wraps ErrRolledBack, nothing has
// changed; after ErrInterrupted the next Open rolls the rewind back or finds that it
// succeeded.
func (w *Workspace) Rewind(ctx context.Context, req RewindRequest, token string) (*Applied, error) {
	return w.change(ctx, "rewind", func(st *state) (*job, error) {
		job, err := w.plan(ctx, st, req)
		if err == nil && token != "" && job.plan.Token != token {
			err = ErrStalePlan
		}
		return job, err
	})
}

// change applies the plan that make returns.
func (w *Workspace) change(ctx context.Context, what string, make func(*state) (*job, error)) (*Applied, error) {
	if w.s.opts.DisableRead || w.s.opts.DisableWrite {
		return nil, fmt.Errorf("%s: %w", what, ErrDisabled)
	}
	st, leave, err := w.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	defer leave()
	done, err := w.tryChange(ctx, st, make)
	if isLost(err) && !errors.Is(err, ErrInterrupted) {
		// A collector removed blobs that the index has. No file has changed: start
		// over and read everything.
		if err = w.dropIndex(); err == nil {
			done, err = w.tryAgain(ctx, make)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	done.Recovered = st.recovered
	return done, nil
}

// tryAgain first reloads the state of the workspace: the current state may have been
// saved.
func (w *Workspace) tryAgain(ctx context.Context, make func(*state) (*job, error)) (*Applied, error) {
	st, err := w.load(ctx)
	if err != nil {
		return nil, err
	}
	return w.tryChange(ctx, st, make)
}

func (w *Workspace) tryChange(ctx context.Context, st *state, make func(*state) (*job, error)) (*Applied, error) {
	job, err := w.confirmed(ctx, func() (*job, error) { return make(st) })
	if err != nil {
		return nil, err
	}
	if agree := job.plan.request.Agree; agree != nil {
		if err := agree(ctx, job.plan); err != nil {
			return nil, err
		}
	}
	r := &rewinding{w: w, st: st, job: job, plan: job.plan, changes: changes(job.plan.Actions)}
	return r.apply(ctx)
}

// rewinding is a running rewind.
type rewinding struct {
	w       *Workspace
	st      *state
	job     *job
	plan    *Plan
	changes []swapdir.Change

	saved     *Record
	swap      *swapdir.Swap // nil if there are no changes
	journaled bool
	announced bool // files may have changed
	noSetgid  []string
	uncovered []string
}

func (r *rewinding) apply(ctx context.Context) (*Applied, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	root, err := r.w.openRoot()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	defer r.closeSwap()
	if err := r.announce(ctx, root); err != nil {
		return nil, r.abort(ctx, err)
	}
	r.announced = true
	after, err := r.execute(ctx)
	if err != nil {
		return nil, r.abort(ctx, err)
	}
	return r.finish(ctx, after)
}

// announce saves the current state, stages new content and writes the journal. When
// it returns, nothing in the workspace has changed but the staging directory.
func (r *rewinding) announce(ctx context.Context, root *swapdir.Root) error {
	w := r.w
	r.saved = w.safety(r.plan)
	if err := w.describe(r.st, w.s.opts.Now()); err != nil {
		return err
	}
	if len(r.changes) > 0 {
		name, err := newStageName(r.st.row.Nonce)
		if err != nil {
			return err
		}
		if r.swap, err = root.Begin(name, r.changes, w.contents(r.plan.Actions)); err != nil {
			return err
		}
		if err := r.swap.Stage(ctx); err != nil {
			return err
		}
	}
	b, err := w.prepare(ctx, r.st, r.job.present, r.saved, Holder{})
	if err != nil {
		return err
	}
	if r.swap != nil {
		j, err := w.journal(ctx, r.swap, r.saved)
		if err != nil {
			return err
		}
		merge(b, j)
		// If the answer to the commit is lost, the journal may exist.
		r.journaled = true
	}
	if err := w.s.rows.Commit(ctx, b); err != nil {
		if errors.Is(err, blob.ErrReadOnly) && !errors.Is(err, kv.ErrUncertain) {
			r.journaled = false // nor could it be removed
		}
		return fmt.Errorf("save the current state: %w", err)
	}
	recovered := r.st.recovered
	if r.st, err = w.load(ctx); err != nil {
		return err
	}
	r.st.recovered = recovered
	return nil
}

// safety describes the checkpoint before a rewind.
func (w *Workspace) safety(p *Plan) *Record {
	return &Record{
		Kind: Safety, Conversation: p.Conversation, Root: p.RootBefore,
		Author: p.request.Author, Label: "before going back",
	}
}

// execute takes the steps and returns the tree afterwards, which it verified.
func (r *rewinding) execute(ctx context.Context) (*capture, error) {
	if r.swap == nil {
		c := *r.job.present
		c.changed = nil
		return &c, nil
	}
	if err := r.swap.Check(); err != nil {
		return nil, err
	}
	if err := r.recheck(ctx); err != nil {
		return nil, err
	}
	opts := &swapdir.RunOptions{Timeout: r.w.s.opts.timeout, Progress: r.plan.request.Progress}
	if err := r.swap.Run(ctx, opts); err != nil {
		return nil, err
	}
	after, err := r.verify(ctx)
	if err != nil {
		return nil, err
	}
	return after, r.swap.Undisturbed()
}

// finish records the rewind and removes the staged files.
func (r *rewinding) finish(ctx context.Context, after *capture) (*Applied, error) {
	rec := r.result()
	op := r.operation()
	// From here on an interruption does not roll back: everything is in place.
	err := r.w.s.record(context.WithoutCancel(ctx), func(ctx context.Context) error {
		return r.commit(ctx, after, rec, op)
	})
	if errors.Is(err, kv.ErrUncertain) {
		// The files are in place. If the commit happened, they stay; if not, the
		// journal exists, and recovery rolls back. The outcome is unknown now.
		return nil, fmt.Errorf("%w: %w", ErrInterrupted, err)
	}
	if err != nil {
		happened, lookErr := r.happened(ctx)
		if lookErr != nil {
			return nil, fmt.Errorf("%w: %w", ErrInterrupted, errors.Join(err, lookErr))
		}
		if !happened {
			return nil, r.abort(ctx, err)
		}
	}
	done := &Applied{Operation: op, Saved: r.saved, Record: rec, Files: r.plan.Files(), Plan: r.plan, NoSetgid: r.noSetgid, Uncovered: r.uncovered}
	if r.swap != nil {
		done.CleanupError = r.swap.Remove()
	}
	done.IndexError = r.w.keepIndex(after.index)
	return done, nil
}

func (r *rewinding) closeSwap() {
	if r.swap != nil {
		r.swap.Close()
	}
}

// result describes the checkpoint after the rewind.
func (r *rewinding) result() *Record {
	p := r.plan
	rec := &Record{Kind: Rewound, Conversation: p.Conversation, Root: p.RootBefore, Author: p.request.Author}
	if !p.RootAfter.IsZero() {
		rec.Root = p.RootAfter
	}
	if p.Target != nil {
		rec.MessageID, rec.Turn = p.Target.MessageID, p.Target.Turn
		rec.Label = r.job.kind + labelTo + p.Target.Name()
	} else if rec.Label = r.job.kind; p.Adopts() != "" {
		rec.Label = "adopt " + p.Adopts()
	}
	return rec
}

// operation describes the rewind for the log.
func (r *rewinding) operation() *Operation {
	p := r.plan
	op := &Operation{
		Kind: r.job.kind, Of: r.job.of, Author: p.request.Author, Workspace: r.w.id, Conversation: p.Conversation, Origins: p.origins,
		Before: r.saved.ID, Files: uint64(p.Files()), RootBefore: p.RootBefore, RootAfter: p.RootAfter,
		paths: r.paths(), Scope: r.job.scope,
	}
	if p.Target != nil {
		op.Target = p.Target.ID
		op.Description = fmt.Sprintf("%s to %s", op.Kind, p.Target.Name())
		if l := p.request.Lines; l != nil {
			op.Description = fmt.Sprintf("%s of lines of %s to %s", op.Kind, l.Path, p.Target.Name())
		}
	} else if p.request.OnlyTurn != 0 {
		op.Description = fmt.Sprintf("%s of turn %d", op.Kind, p.request.OnlyTurn)
	} else if p.Adopts() != "" {
		op.Description = "adopt " + p.Adopts()
	}
	return op
}

// commit closes the journal, moves the conversation and adds the checkpoint and
// the entry of the log, all at once.
func (r *rewinding) commit(ctx context.Context, after *capture, rec *Record, op *Operation) error {
	w := r.w
	b, err := w.prepare(ctx, r.st, after, rec, Holder{})
	if err != nil {
		return err
	}
	op.After, op.Time = rec.ID, rec.Time
	if err := w.s.Append(ctx, op, b); err != nil {
		return err
	}
	if r.journaled {
		b.Delete = append(b.Delete, keyspace.Journal(w.id))
	}
	if r.plan.RootAfter.IsZero() || r.plan.RootAfter == r.plan.RootBefore {
		return w.s.rows.Commit(ctx, b)
	}
	return w.s.opts.Conversations.Rewind(ctx, r.plan.Conversation, r.plan.RootBefore, r.plan.RootAfter, op.Author, func(to *kv.Batch) error {
		merge(to, b)
		return nil
	})
}

// happened reports whether a commit that returned an error happened.
func (r *rewinding) happened(ctx context.Context) (bool, error) {
	now, err := r.w.load(context.WithoutCancel(ctx))
	if err != nil {
		return false, err
	}
	return now.version != r.st.version, nil
}

// ifFull says what to do if the disk of the workspace had no room for what was staged. A
// store that is full says so itself.
func (w *Workspace) ifFull(cause error) error {
	full := errors.Is(cause, syscall.ENOSPC) || errors.Is(cause, syscall.EDQUOT)
	if !full || errors.Is(cause, blob.ErrFull) {
		return cause
	}
	return fmt.Errorf("nothing was changed, because the disk of %s has no space left for the files; free some there, and try again: %w", w.path, cause)
}

// abort rolls everything back and returns the cause, as ErrRolledBack if files may have
// changed.
func (r *rewinding) abort(ctx context.Context, cause error) error {
	ctx = context.WithoutCancel(ctx)
	if !r.announced {
		cause = r.w.ifFull(cause)
	}
	if r.swap == nil {
		return cause
	}
	left, err := r.swap.RollBack()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInterrupted, errors.Join(cause, err))
	}
	if r.journaled {
		// The saved state stays as a checkpoint. A missing journal is not an error.
		err := r.w.s.rows.Commit(ctx, &kv.Batch{Delete: []string{keyspace.Journal(r.w.id)}})
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInterrupted, errors.Join(cause, err))
		}
	}
	err = r.swap.Remove()
	if len(left) > 0 {
		cause = fmt.Errorf("%w (changed by others meanwhile and left: %q)", cause, left)
	}
	if !r.announced {
		return errors.Join(cause, err)
	}
	return fmt.Errorf("%w: %w", ErrRolledBack, errors.Join(cause, err))
}
