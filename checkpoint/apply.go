package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// Applied is what a rewind, an undo or a redo came to.
type Applied struct {
	// Operation is its entry in the log.
	Operation *Operation
	// Saved is the checkpoint of the present before, and Record the one after.
	Saved, Record *Record
	// Files is the number of paths that were changed, all of them verified.
	Files int
	// Plan is what was done, without counts of lines; see CountLines.
	Plan *Plan
	// NoSetgid lists paths that have all but their set-group-id bit back: the kernel
	// gives it only to those who are in the group, and drops it without a word else.
	NoSetgid []string
	// Recovered tells about an earlier rewind that was settled first, or is nil.
	Recovered *Recovery
	// CleanupError is why staged files could not be removed, or nil. They are
	// removed when the workspace is next opened.
	CleanupError error
	// IndexError is why the stat index could not be saved, or nil.
	IndexError error
}

// Apply does what a plan says. The token must be the plan's; if the workspace is
// no longer what the plan was made for, Apply returns ErrStalePlan and changes
// nothing. It saves the present first. When it returns an error that wraps
// ErrRolledBack, everything is as it was; ErrUnsettled says that the next Open
// will see to it.
func (w *Workspace) Apply(ctx context.Context, plan *Plan, token string) (*Applied, error) {
	if plan == nil || plan.Token == "" || token != plan.Token {
		return nil, fmt.Errorf("rewind: %w: the token is not the plan's", ErrStalePlan)
	}
	return w.Rewind(ctx, plan.request, token)
}

// Rewind plans and applies in one go. If token is not empty, the plan must have
// it, or Rewind returns ErrStalePlan and changes nothing.
func (w *Workspace) Rewind(ctx context.Context, req RewindRequest, token string) (*Applied, error) {
	return w.change(ctx, "rewind", func(st *state) (*job, error) {
		job, err := w.plan(ctx, st, req)
		if err == nil && token != "" && job.plan.Token != token {
			err = ErrStalePlan
		}
		return job, err
	})
}

// change applies the plan that make makes.
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
	if isLost(err) && !errors.Is(err, ErrUnsettled) {
		// A collector took blobs that the index promised. All files are as they were:
		// begin again and read everything.
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

// tryAgain reads where the workspace stands first: the present may have been saved.
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
	r := &rewinding{w: w, st: st, job: job, plan: job.plan, steps: steps(job.plan.Actions)}
	return r.apply(ctx)
}

// rewinding is a rewind under way.
type rewinding struct {
	w     *Workspace
	st    *state
	job   *job
	plan  *Plan
	steps []*step

	saved     *Record
	disk      *disk
	stage     *stageDir // nil if there are no steps
	journaled bool
	began     int64 // when the first step was taken, by the clock that stamps files
	noSetgid  []string
}

func (r *rewinding) apply(ctx context.Context) (*Applied, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d, err := openDisk(r.w.path, r.w.s.opts.hook)
	if err != nil {
		return nil, err
	}
	r.disk = d
	defer d.close()
	if err := r.announce(ctx); err != nil {
		return nil, r.abort(ctx, err)
	}
	after, err := r.execute(ctx)
	if err != nil {
		return nil, r.abort(ctx, err)
	}
	return r.finish(ctx, after)
}

// announce saves the present, stages what is new and writes the journal. Nothing
// in the workspace has changed when it returns, but for the staging directory.
func (r *rewinding) announce(ctx context.Context) error {
	w := r.w
	r.saved = w.safety(r.plan)
	if len(r.steps) > 0 {
		name, err := newStageName(r.st.row.Nonce)
		if err != nil {
			return err
		}
		if r.stage, err = r.disk.stage(name, true); err != nil {
			return err
		}
		if err := w.fillStage(ctx, r.stage, r.steps); err != nil {
			return err
		}
	}
	b, err := w.prepare(ctx, r.st, r.job.present, r.saved, Holder{})
	if err != nil {
		return err
	}
	if len(r.steps) > 0 {
		j, err := w.journal(ctx, r.stage.name, r.steps, r.saved)
		if err != nil {
			return err
		}
		merge(b, j)
		// If the answer to the commit is lost, the journal may be there.
		r.journaled = true
	}
	if err := w.s.rows.Commit(ctx, b); err != nil {
		if errors.Is(err, blob.ErrReadOnly) && !errors.Is(err, kv.ErrUncertain) {
			r.journaled = false // nor could it be removed
		}
		return fmt.Errorf("save the present: %w", err)
	}
	recovered := r.st.recovered
	if r.st, err = w.load(ctx); err != nil {
		return err
	}
	r.st.recovered = recovered
	return nil
}

// safety describes the checkpoint of the present before a rewind.
func (w *Workspace) safety(p *Plan) *Record {
	return &Record{
		Kind: Safety, Conversation: p.Conversation, Root: p.RootBefore,
		Author: p.request.Author, Label: "before going back",
	}
}

// execute takes the steps and returns the tree afterwards, which it verified.
func (r *rewinding) execute(ctx context.Context) (*capture, error) {
	if len(r.steps) == 0 {
		c := *r.job.present
		c.changed = nil
		return &c, nil
	}
	if err := r.stage.check(r.steps); err != nil {
		return nil, err
	}
	if err := r.recheck(ctx); err != nil {
		return nil, err
	}
	r.began = stampClock()
	if err := r.w.run(ctx, r.stage, r.steps, r.plan.request.Progress); err != nil {
		return nil, err
	}
	after, err := r.verify(ctx)
	if err != nil {
		return nil, err
	}
	return after, r.stage.undisturbed(r.steps)
}

// recheck makes sure, by content, that the paths are what the plan saw.
func (r *rewinding) recheck(ctx context.Context) error {
	res, err := r.scan(ctx, workspace.Options{Reread: replaced(r.plan.Actions)})
	if err != nil {
		return err
	}
	changes, err := workspace.Diff(ctx, r.w.s.blobs, r.plan.present, res.Tree)
	if err != nil {
		return err
	}
	paths := r.paths()
	for _, c := range changes {
		if paths[c.Path] {
			return fmt.Errorf("%w: %q", ErrChanged, c.Path)
		}
	}
	return nil
}

// scan looks at the paths of the steps.
func (r *rewinding) scan(ctx context.Context, with workspace.Options) (*workspace.Result, error) {
	opts := r.w.s.opts.Scan
	opts.Force, opts.Touched, opts.Written, opts.Reread = r.w.s.opts.Force, with.Touched, with.Written, with.Reread
	opts.Full = false // directories on the way were looked at when the plan was made
	return workspace.ScanPaths(ctx, r.w.s.blobs, r.w.path, r.job.present.index, stepPaths(r.steps), &opts)
}

// written lists the files that need not be read back: while they were staged
// nobody else could reach them, and a write since then shows in their stamps. A
// file that was staged in the very tick in which the first step was taken is not
// among them.
func (r *rewinding) written() map[string]workspace.Written {
	m := make(map[string]workspace.Written, len(r.steps))
	for _, s := range r.steps {
		if s.stages() && s.to.Kind == workspace.File && s.staged.mtime < r.began {
			m[s.path] = workspace.Written{
				ID: s.to.ID, Chunked: s.to.Chunked, Size: s.to.Size, Inode: s.staged.ino, Mtime: s.staged.mtime,
			}
		}
	}
	return m
}

func (r *rewinding) paths() map[string]bool {
	m := make(map[string]bool, len(r.steps))
	for _, s := range r.steps {
		m[s.path] = true
	}
	return m
}

// touched lists the paths that are captured whatever ignore files say now. Of
// directories it is those that come back empty: others come with what they hold,
// and what else may be in them is none of ours.
func (r *rewinding) touched(want map[string]*workspace.Entry) []string {
	holds := map[string]bool{}
	for path, after := range want {
		if after != nil {
			dir, _ := splitPath(path)
			holds[dir] = true
		}
	}
	var paths []string
	for _, st := range r.steps {
		if st.stages() && (!isDir(st.to) || !holds[st.path]) {
			paths = append(paths, st.path)
		}
	}
	return paths
}

// verify looks at what was written and compares it with the plan.
func (r *rewinding) verify(ctx context.Context) (*capture, error) {
	want, had := make(map[string]*workspace.Entry, len(r.steps)), make(map[string]*workspace.Entry, len(r.steps))
	for i := range r.plan.Actions {
		if a := &r.plan.Actions[i]; a.Changes() {
			want[a.Path], had[a.Path] = a.After, a.Before
		}
	}
	touched := r.touched(want)
	res, err := r.scan(ctx, workspace.Options{Touched: touched, Written: r.written()})
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	changes := res.Changed // against the present, whose index the scan began with
	if changes == nil {
		if changes, err = workspace.Diff(ctx, r.w.s.blobs, r.plan.present, res.Tree); err != nil {
			return nil, fmt.Errorf("verify: %w", err)
		}
	}
	for _, c := range changes {
		after, planned := want[c.Path]
		if planned && !sameState(c.After, after) {
			if !lacksSetgid(c.After, after) {
				return nil, fmt.Errorf("verify: %w: %q is not what was written", ErrChanged, c.Path)
			}
			r.noSetgid = append(r.noSetgid, c.Path)
		}
		delete(want, c.Path)
	}
	for path, after := range want {
		if !lacksSetgid(had[path], after) {
			return nil, fmt.Errorf("verify: %w: %q did not change", ErrChanged, path)
		}
		r.noSetgid = append(r.noSetgid, path)
	}
	slices.Sort(r.noSetgid)
	skipped := mergeSkipped(r.job.present.skipped, res, stepPaths(r.steps))
	return &capture{tree: res.Tree, index: res.Index, skipped: skipped, changed: changes, scan: res}, nil
}

// finish records the rewind and removes what is no longer needed.
func (r *rewinding) finish(ctx context.Context, after *capture) (*Applied, error) {
	rec := r.result()
	op := r.operation()
	// From here on an interruption is no reason to go back: everything is in place.
	err := r.w.s.record(context.WithoutCancel(ctx), func(ctx context.Context) error {
		return r.commit(ctx, after, rec, op)
	})
	if errors.Is(err, kv.ErrUncertain) {
		// The files are in place. If the commit took place, that is how it stays; if not,
		// the journal is there, and recovery takes them back. Now nobody can tell.
		r.closeStage()
		return nil, fmt.Errorf("%w: %w", ErrUnsettled, err)
	}
	if err != nil {
		settled, lookErr := r.happened(ctx)
		if lookErr != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnsettled, errors.Join(err, lookErr))
		}
		if !settled {
			return nil, r.abort(ctx, err)
		}
	}
	done := &Applied{Operation: op, Saved: r.saved, Record: rec, Files: r.plan.Changes(), Plan: r.plan, NoSetgid: r.noSetgid}
	if r.closeStage(); r.stage != nil {
		done.CleanupError = r.disk.removeStage(r.stage.name)
	}
	done.IndexError = r.w.keepIndex(after.index)
	return done, nil
}

func (r *rewinding) closeStage() {
	if r.stage != nil {
		r.stage.close()
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
		rec.Label = r.job.kind + " to " + p.Target.Name()
	} else {
		rec.Label = r.job.kind
	}
	return rec
}

// operation describes the rewind for the log.
func (r *rewinding) operation() *Operation {
	p := r.plan
	op := &Operation{
		Kind: r.job.kind, Of: r.job.of, Author: p.request.Author, Workspace: r.w.id, Conversation: p.Conversation,
		Before: r.saved.ID, Files: uint64(p.Changes()), RootBefore: p.RootBefore, RootAfter: p.RootAfter,
		paths: stepPaths(r.steps),
	}
	if p.Target != nil {
		op.Target = p.Target.ID
		op.Description = fmt.Sprintf("%s to %s", op.Kind, p.Target.Name())
	} else if p.request.OnlyTurn != 0 {
		op.Description = fmt.Sprintf("%s of turn %d", op.Kind, p.request.OnlyTurn)
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
	return w.s.opts.Conversations.Rewind(ctx, r.plan.Conversation, r.plan.RootAfter, op.Author, func(to *kv.Batch) error {
		merge(to, b)
		return nil
	})
}

// happened reports whether a commit whose answer was an error took place.
func (r *rewinding) happened(ctx context.Context) (bool, error) {
	now, err := r.w.load(context.WithoutCancel(ctx))
	if err != nil {
		return false, err
	}
	return now.version != r.st.version, nil
}

// abort puts everything back and says why.
func (r *rewinding) abort(ctx context.Context, cause error) error {
	ctx = context.WithoutCancel(ctx)
	if r.stage == nil {
		return cause
	}
	defer r.stage.close()
	left, err := r.stage.rollback(r.steps)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsettled, errors.Join(cause, err))
	}
	if r.journaled {
		// The saved present stays as a checkpoint. A journal that never came to be is
		// no error.
		err := r.w.s.rows.Commit(ctx, &kv.Batch{Delete: []string{keyspace.Journal(r.w.id)}})
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnsettled, errors.Join(cause, err))
		}
	}
	err = r.disk.removeStage(r.stage.name)
	if len(left) > 0 {
		cause = fmt.Errorf("%w (changed by others meanwhile and left: %q)", cause, left)
	}
	return fmt.Errorf("%w: %w", ErrRolledBack, errors.Join(cause, err))
}
