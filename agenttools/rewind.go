package agenttools

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/stet-dev/stet/blob/unsaved"
	"github.com/stet-dev/stet/checkpoint"
)

// maxPreviews is how many previews can be carried out; older ones are forgotten.
const maxPreviews = 16

// preview is a plan that was shown.
type preview struct {
	token   string
	request checkpoint.RewindRequest
}

// PreviewArgs are the arguments of the tool rewind_preview.
type PreviewArgs struct {
	To        string   `json:"to,omitempty" jsonschema:"where to go: a checkpoint such as c7, turn:5 (after that turn), before:turn:6, pin:NAME; the beginning of the current turn if missing"`
	OnlyTurn  int      `json:"only_turn,omitempty" jsonschema:"instead of to: take back this turn only and keep later changes"`
	Paths     []string `json:"paths,omitempty" jsonschema:"only these files and directories"`
	Conflicts string   `json:"conflicts,omitempty" jsonschema:"files that others changed after the session: keep (if missing) leaves them, merge removes only the session's lines"`
	Session   string   `json:"session,omitempty" jsonschema:"whose changes to take back; the calling session if missing"`
	Exact     bool     `json:"exact,omitempty" jsonschema:"make the files exactly those of the checkpoint: takes back changes of the user and of other sessions, too; ask the user first"`
}

// RewindPreview shows what a rewind would do, and the token that carries it out.
func (t *Tools) RewindPreview(ctx context.Context, args PreviewArgs) (text string, err error) {
	err = t.use(ctx, false, func(p *Place) error {
		text, err = t.preview(ctx, p, args)
		return err
	})
	return text, err
}

func (t *Tools) preview(ctx context.Context, p *Place, args PreviewArgs) (string, error) {
	c, err := t.caller(ctx, p)
	if err != nil {
		return "", err
	}
	req, err := t.request(ctx, p, c, args)
	if err != nil {
		return "", err
	}
	var plan *checkpoint.Plan
	err = p.look(ctx, func(w *checkpoint.Workspace, _ *unsaved.Store) (err error) {
		plan, err = w.Plan(ctx, req)
		return err
	})
	if err != nil {
		return "", err
	}
	var a answer
	if err := a.plan(ctx, p, plan, c); err != nil {
		return "", err
	}
	if plan.Changes() == 0 {
		a.line("\nNothing to do.")
		return a.String(), nil
	}
	t.remember(preview{plan.Token, plan.Request()})
	a.line("\nTo carry out exactly this plan, call `rewind` with token=%q. If files change before, it refuses.", plan.Token)
	return a.String(), nil
}

// request makes the request of a preview. It moves files only: the agent's
// conversation continues in the agent, whatever happens to our copy.
func (t *Tools) request(ctx context.Context, p *Place, c caller, args PreviewArgs) (checkpoint.RewindRequest, error) {
	req := checkpoint.RewindRequest{To: args.To, Scope: checkpoint.FilesOnly, Exact: args.Exact, Author: c.author}
	var err error
	if req.Paths, err = p.inside(args.Paths); err != nil {
		return req, err
	}
	if req.Conversation, err = t.whose(ctx, p, c, args); err != nil {
		return req, err
	}
	switch args.Conflicts {
	case "", "keep":
		req.Choice = checkpoint.KeepMine
	case "merge":
		req.Choice = checkpoint.Merge
	default:
		return req, refused("conflicts must be keep or merge, not %q", args.Conflicts)
	}
	if args.Exact {
		req.Choice = ""
	}
	switch {
	case args.OnlyTurn < 0 || args.OnlyTurn > 0 && (args.To != "" || args.Exact):
		return req, refused("only_turn is a number from 1 and excludes to and exact")
	case args.OnlyTurn > 0:
		req.OnlyTurn = uint64(args.OnlyTurn)
	case args.To == "" && (c.turn == nil || c.id != req.Conversation && !args.Exact):
		return req, refused("the session has no running turn here, so say where to go with `to`; `history` lists checkpoints")
	case args.To == "":
		req.To = c.turn.Began
	}
	return req, nil
}

// whose returns the conversation whose changes to revert. Without one, the changes of
// the target's conversation, or of all, would be reverted.
func (t *Tools) whose(ctx context.Context, p *Place, c caller, args PreviewArgs) (string, error) {
	id := c.id
	if args.Session != "" && args.Session != own {
		var err error
		if id, err = p.conversation(ctx, args.Session); err != nil {
			return "", err
		}
	}
	if id == "" {
		if args.Exact {
			return "", nil
		}
		return "", refused("which session is calling is not known: pass `session` (`history` lists them)")
	}
	known, err := p.knows(ctx, id)
	switch {
	case err != nil:
		return "", err
	case known || args.Exact:
		return id, nil
	}
	return "", refused("nothing of session %s is recorded in %s, so nothing can be said to be its work; `stet connect` records the turns of an agent", code(id), code(p.Space.Path()))
}

func (t *Tools) remember(p preview) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.previews = append(slices.DeleteFunc(t.previews, func(q preview) bool { return q.token == p.token }), p)
	if extra := len(t.previews) - maxPreviews; extra > 0 {
		t.previews = slices.Delete(t.previews, 0, extra)
	}
}

// recall returns the request of a preview.
func (t *Tools) recall(token string) (checkpoint.RewindRequest, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.previews {
		if p.token == token {
			return p.request, true
		}
	}
	return checkpoint.RewindRequest{}, false
}

// RewindArgs are the arguments of the tool rewind.
type RewindArgs struct {
	Token string `json:"token" jsonschema:"the token of the plan, from rewind_preview"`
}

// Rewind carries out a plan that was shown.
func (t *Tools) Rewind(ctx context.Context, args RewindArgs) (text string, err error) {
	req, ok := t.recall(args.Token)
	if !ok {
		return "", refused("no plan has this token; call `rewind_preview`, which shows the plan and its token")
	}
	err = t.use(ctx, false, func(p *Place) error {
		done, err := p.Space.Rewind(ctx, req, args.Token)
		if errors.Is(err, checkpoint.ErrStalePlan) {
			return refused("the workspace is no longer as in the preview, nothing was changed; call `rewind_preview` again")
		}
		if err != nil {
			return err
		}
		text = doneText("Rewound", done)
		return nil
	})
	return text, err
}

// doneText says what was done and how to undo it.
func doneText(verb string, done *checkpoint.Applied) string {
	var a answer
	var paths []string
	for i := range done.Plan.Actions {
		if act := &done.Plan.Actions[i]; act.Changes() {
			paths = append(paths, act.Path)
		}
	}
	a.line("%s %s: %s", verb, plural(done.Files, "file"), few(paths, maxPaths))
	if done.Plan.Partial() {
		a.line("Left as they are: %s", done.Plan.LeftWords())
	}
	if done.Saved != nil {
		a.line("The state before is saved as %s.", code(done.Saved.Name()))
	}
	if len(done.NoSetgid) > 0 {
		a.line("Restored without the set-group-id bit: %s", few(done.NoSetgid, 5))
	}
	if len(done.Uncovered) > 0 {
		a.line("No longer ignored, never captured, and so left alone: %s", few(done.Uncovered, maxPaths))
	}
	return a.String()
}

// plan shows a plan. Its words address the user.
func (a *answer) plan(ctx context.Context, p *Place, plan *checkpoint.Plan, c caller) error {
	if err := a.target(ctx, p, plan); err != nil {
		return err
	}
	switch {
	case plan.Exact():
		a.line("Takes back all changes since, including those of the user and of other sessions.")
	case plan.Conversation != c.id:
		a.line("Takes back changes of session %s, which is not the calling one.", code(plan.Conversation))
	default:
		a.line("Takes back changes of the calling session only.")
	}
	a.line("Moves files only; the conversation stays as it is.\n")
	n := 0
	for i := range plan.Actions {
		act := &plan.Actions[i]
		if !act.Changes() && act.Kind != checkpoint.Conflict {
			continue
		}
		if n++; n <= 2*maxPaths {
			a.line("- %s", actionLine(act))
		}
	}
	if n > 2*maxPaths {
		a.line("- and %d more; `paths` limits the plan", n-2*maxPaths)
	}
	a.left(plan)
	for _, turn := range plan.AtWork {
		if turn.Conversation != c.id {
			a.line("Session %s is at work here and may change files again.", code(turn.Conversation))
		}
	}
	return nil
}

// target names the target of a plan.
func (a *answer) target(ctx context.Context, p *Place, plan *checkpoint.Plan) error {
	if plan.Target == nil {
		a.line("Plan: take back turn %d and keep later changes.", plan.OnlyTurn())
		return nil
	}
	turn, err := p.timeline().Turn(ctx, plan.Target)
	if err != nil {
		return err
	}
	a.line("Plan: back to %s · %s · %s", code(plan.Target.Name()), when(plan.Target.Time), about(plan.Target, turn))
	return nil
}

func actionLine(act *checkpoint.Action) string {
	parts := []string{string(act.Kind), code(act.Path)}
	if words := lines(act.Add, act.Del); words != "" {
		parts = append(parts, words)
	}
	if act.Merged {
		parts = append(parts, "merged")
	}
	text := strings.Join(parts, " ")
	if about := act.About(); about != "" {
		text += " · " + clip(about, 200)
	}
	if act.Kind == checkpoint.Conflict {
		text += ": left as it is"
	}
	return text
}

// left lists what a plan leaves alone.
func (a *answer) left(plan *checkpoint.Plan) {
	kept := plan.Kept()
	for _, k := range kept {
		a.line("Left alone: %s (%s)", few(k.Paths, 5), k.Words)
	}
	if plan.Untouched > 0 {
		a.line("Not concerned: %s", plural(plan.Untouched, "other file"))
	}
	if len(kept)+len(plan.Conflicts()) > 0 {
		a.line(`("you" and "yours" mean the user.)`)
	}
	if !plan.NotKept.None() {
		a.line("Some attributes of the replaced files, such as hard links or owners, are not kept: an undo does not bring them back.")
	}
}
