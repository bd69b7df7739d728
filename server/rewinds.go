package server

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/unsaved"
	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/highlight"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/server/internal/wire"
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/workspace"
)

// plan makes the plan for a request.
func plan(ctx context.Context, w *checkpoint.Workspace, m *stetv1.PlanRewindRequest) (*checkpoint.Plan, error) {
	req := checkpoint.RewindRequest{
		To: m.GetRef(), Conversation: m.GetConversation(), Paths: m.GetPaths(), OnlyTurn: uint64(m.GetOnlyTurn()),
		Choice: checkpoint.Choice(m.GetConflicts()), Choices: make(map[string]checkpoint.Choice), Exact: m.GetExact(),
	}
	for path, choice := range m.GetChoices() {
		req.Choices[path] = checkpoint.Choice(choice)
	}
	req.Scope = checkpoint.ScopeOf(m.GetFiles(), m.GetWithConversation(), m.GetPaths())
	req.Lines = wantedLines(m.GetLines())
	switch {
	case req.OnlyTurn != 0 && req.To != "":
		return nil, invalid("name either a checkpoint or a turn")
	case req.Scope == checkpoint.ConversationOnly && len(req.Paths) > 0:
		return nil, invalid("a conversation has no paths")
	}
	if err := checkPaths(req.Paths); err != nil {
		return nil, err
	}
	p, err := w.Plan(ctx, req)
	if err != nil || !chooseShown(p, m, req.Choices) {
		return p, err
	}
	return w.Plan(ctx, req)
}

func wantedLines(m *stetv1.RestoreLines) *checkpoint.Lines {
	if m == nil {
		return nil
	}
	out := &checkpoint.Lines{Path: m.GetPath(), From: m.GetFrom()}
	for _, r := range m.GetRanges() {
		out.Ranges = append(out.Ranges, checkpoint.LineRange{
			Line: int(r.GetLine()), Lines: int(r.GetLines()), FromLine: int(r.GetFromLine()), FromLines: int(r.GetFromLines()),
		})
	}
	return out
}

// chooseShown adds choices for paths that are not valid text, which the caller names
// in their shown form. It reports whether there were any.
func chooseShown(p *checkpoint.Plan, m *stetv1.PlanRewindRequest, choices map[string]checkpoint.Choice) bool {
	some := false
	for _, path := range p.Conflicts() {
		if choice, ok := m.GetChoices()[wire.Valid(path)]; ok && wire.Valid(path) != path {
			choices[path], some = checkpoint.Choice(choice), true
		}
	}
	return some
}

func (s *checkpointService) PlanRewind(ctx context.Context, req *stetv1.PlanRewindRequest) (*stetv1.PlanRewindResponse, error) {
	// First, and in the store itself: the rewind does so, too, and finds the same plan.
	if err := s.settle(ctx, req.GetWorkspace()); err != nil {
		return nil, err
	}
	look := unsaved.New(s.db.Blobs(), &unsaved.Options{MaxBytes: lookBytes}) // reading must not store
	defer look.Close()
	var p *checkpoint.Plan
	err := s.inBy(ctx, s.db.Checkpoints().Looking(look), req.GetWorkspace(), func(w *checkpoint.Workspace) (err error) {
		p, err = plan(ctx, w, req)
		return err
	})
	if err != nil {
		return nil, err
	}
	res := &stetv1.PlanRewindResponse{
		PlanToken: p.Token, Untouched: uint32(p.Untouched), NotCaptured: wireSkipped(p.NotCaptured), NeedsChoice: len(p.Unchosen()) > 0,
		Files: wirePlanned(p.Actions), Partial: p.Partial(), NotKept: wireNotKept(&p.NotKept), AtWork: wireAtWork(p.AtWork),
	}
	if err := showMerged(ctx, look, p, res.Files); err != nil {
		return nil, err
	}
	if p.Target != nil {
		d, err := s.describer(ctx)
		if err != nil {
			return nil, err
		}
		if res.To, err = d.checkpoint(ctx, p.Target); err != nil {
			return nil, err
		}
	}
	turns := timeline.New(s.db.Checkpoints(), s.db.Conversations())
	res.ConversationEffect = p.Effect(func(root blob.ID) (int, error) { return turns.Turns(ctx, root) })
	return res, nil
}

// wireNotKept returns nil if everything is kept.
func wireNotKept(n *workspace.NotKept) *stetv1.NotKept {
	if n.None() {
		return nil
	}
	out := &stetv1.NotKept{HardLinks: uint64(n.Links), Owners: uint64(n.Owners), Attributes: uint64(n.Attributes)}
	for _, f := range n.Examples {
		out.Examples = append(out.Examples, &stetv1.NotKeptFile{Path: wire.Valid(f.Path), PathBytes: workspace.PathBytes(f.Path), What: string(f.What)})
	}
	return out
}

func wireAtWork(turns checkpoint.Turns) []*stetv1.AtWork {
	var out []*stetv1.AtWork
	for i := range turns {
		t := &turns[i]
		one := &stetv1.AtWork{Conversation: t.Conversation, Turn: uint32(t.Number), SinceMs: t.Since.UnixMilli(), SeenMs: t.Seen.UnixMilli()}
		for _, p := range t.Living() {
			one.Processes = append(one.Processes, &stetv1.AtWorkProcess{Pid: uint32(p.PID), Command: wire.Valid(p.Command)})
		}
		out = append(out, one)
	}
	return out
}

func wirePlanned(actions []checkpoint.Action) []*stetv1.PlannedFile {
	files := make([]*stetv1.PlannedFile, len(actions))
	for i, a := range actions {
		files[i] = &stetv1.PlannedFile{
			Path: wire.Valid(a.Path), PathBytes: workspace.PathBytes(a.Path), Action: string(a.Kind), Add: uint32(a.Add), Del: uint32(a.Del),
			Reason: a.Reason, Why: string(a.Why), About: a.About(), Merged: a.Merged, NoMerge: a.NoMerge,
		}
		if a.Writer != nil {
			files[i].ByConversation, files[i].ByTurn = a.Writer.Conversation, uint32(a.Writer.Turn)
		}
	}
	return files
}

// showMerged adds what merges change in the present files, since no version has the
// merged content yet.
func showMerged(ctx context.Context, blobs blob.Store, p *checkpoint.Plan, files []*stetv1.PlannedFile) error {
	room := maxDiffText
	coloured, done := highlight.Request(ctx)
	defer done()
	for i, a := range p.Actions {
		if !a.Merged {
			continue
		}
		compared, err := linediff.Compare(ctx, blobs, workspace.Change{Path: a.Path, Before: a.Before, After: a.After})
		if err != nil {
			return lost(err)
		}
		files[i].Merge = wireDiff(coloured, compared, &room).GetHunks()
	}
	return nil
}

// Rewind makes the plan again; its token shows whether it is still the confirmed
// plan. A plan without changes makes no operation.
func (s *checkpointService) Rewind(ctx context.Context, req *stetv1.RewindRequest) (*stetv1.RewindResponse, error) {
	m, token := req.GetPlan(), req.GetPlanToken()
	if token == "" {
		return nil, missing("a rewind needs the token of its plan")
	}
	return s.back(ctx, m.GetWorkspace(), func(w *checkpoint.Workspace) (*checkpoint.Applied, error) {
		p, err := plan(ctx, w, m)
		if err != nil {
			return nil, err
		}
		if p.Token != token {
			return nil, fmt.Errorf("rewind: %w: the workspace or the request has changed since", checkpoint.ErrStalePlan)
		}
		if paths := p.Unchosen(); len(paths) > 0 {
			return nil, fmt.Errorf("rewind: %w", &checkpoint.ConflictError{Paths: paths, Plan: p})
		}
		if p.Changes() == 0 && !p.Moves() {
			return &checkpoint.Applied{Plan: p}, nil
		}
		if err := notUnder(p.AtWork, req.GetEvenIfRunning()); err != nil {
			return nil, err
		}
		return w.Rewind(ctx, p.Request(), token)
	})
}

func (s *checkpointService) Undo(ctx context.Context, req *stetv1.UndoRequest) (*stetv1.RewindResponse, error) {
	return s.back(ctx, req.GetWorkspace(), undoing(ctx, req.GetEvenIfRunning(), (*checkpoint.Workspace).Undo))
}

func (s *checkpointService) Redo(ctx context.Context, req *stetv1.RedoRequest) (*stetv1.RewindResponse, error) {
	return s.back(ctx, req.GetWorkspace(), undoing(ctx, req.GetEvenIfRunning(), (*checkpoint.Workspace).Redo))
}

// undoing runs an undo or a redo, unless that would change files under a running process.
func undoing(ctx context.Context, even bool, run func(*checkpoint.Workspace, context.Context, *checkpoint.UndoOptions) (*checkpoint.Applied, error)) func(*checkpoint.Workspace) (*checkpoint.Applied, error) {
	return func(w *checkpoint.Workspace) (*checkpoint.Applied, error) {
		open, err := w.AtWork(ctx)
		if err == nil {
			err = notUnder(open, even)
		}
		if err != nil {
			return nil, err
		}
		return run(w, ctx, nil)
	}
}

// notUnder refuses to change files under a process that is at work in the workspace,
// unless the caller has confirmed that.
func notUnder(open checkpoint.Turns, even bool) error {
	running := open.Running()
	if even || len(running) == 0 {
		return nil
	}
	t := &running[0]
	living := t.Living()
	by := living[len(living)-1] // a run records its command after itself
	return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("at work in the workspace: %s (pid %d), turn %d of conversation %s, since %s; "+
		"it may change files again at once, so nothing was changed; set even_if_running to continue anyway",
		wire.Valid(by.Command), by.PID, t.Number, t.Conversation, t.Since.Format(time.DateTime)))
}

// back runs a rewind, an undo or a redo, and returns its result.
func (s *checkpointService) back(ctx context.Context, place string, do func(*checkpoint.Workspace) (*checkpoint.Applied, error)) (*stetv1.RewindResponse, error) {
	res := &stetv1.RewindResponse{}
	err := s.inSettled(ctx, place, func(w *checkpoint.Workspace) error {
		done, err := do(w)
		if err != nil {
			return err
		}
		res.Files = uint32(done.Files)
		res.Left = wirePlanned(done.Plan.Left())
		res.Partial = len(res.Left) > 0
		if done.Operation != nil {
			res.Operation = done.Operation.ID()
		}
		if done.Saved != nil {
			res.Saved = done.Saved.ID
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

func (s *checkpointService) Operations(ctx context.Context, req *stetv1.OperationsRequest) (*stetv1.OperationsResponse, error) {
	return wire.Fitting(uint32(wire.PageSize(req.GetPage().GetLimit())), func(limit int) (*stetv1.OperationsResponse, error) {
		place, before := req.GetWorkspace(), uint64(0)
		if cursor := req.GetPage().GetCursor(); cursor != "" {
			var err error
			if before, err = strconv.ParseUint(cursor, 10, 64); err != nil || before == 0 {
				return nil, errCursor()
			}
		}
		if filepath.IsAbs(place) { // the log of a directory outlives it
			if resolved, err := filepath.EvalSymlinks(place); err == nil {
				place = resolved
			}
			place = checkpoint.WorkspaceID(filepath.Clean(place))
		}
		var log []*checkpoint.Operation // complete, because the next undo may be anywhere in it
		for op, err := range s.db.Checkpoints().Operations(ctx) {
			if err != nil {
				return nil, err
			}
			if place == "" || op.Workspace == place {
				log = append(log, op)
			}
		}
		undo, redo := checkpoint.NextMoves(log)
		d, err := s.describer(ctx)
		if err != nil {
			return nil, err
		}
		res := &stetv1.OperationsResponse{}
		for _, op := range log {
			if before != 0 && op.Seq >= before {
				continue
			}
			if len(res.Operations) == limit {
				res.NextCursor = strconv.FormatUint(before, 10)
				break
			}
			where, err := d.path(ctx, op.Workspace)
			if err != nil {
				return nil, err
			}
			res.Operations = append(res.Operations, &stetv1.Operation{
				Id: op.ID(), Kind: op.Kind, TimeMs: op.Time.UnixMilli(), Author: op.Author, Workspace: where, Conversation: op.Conversation,
				Summary: op.Description, CanUndo: undo[op.Seq], CanRedo: redo[op.Seq], Saved: op.Before,
			})
			before = op.Seq
		}
		return res, nil
	})
}

func checkPaths(paths []string) error {
	for _, path := range paths {
		if err := workspace.CheckPath(path); err != nil {
			return err
		}
	}
	return nil
}
