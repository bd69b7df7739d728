package agenttools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stet-dev/stet/blob/unsaved"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/workspace"
)

// own names the calling session in arguments.
const own = "own"

// HistoryArgs are the arguments of the tool history.
type HistoryArgs struct {
	Session string `json:"session,omitempty" jsonschema:"only this session: its id, the beginning of it, or \"own\" for the calling one; all sessions if missing"`
	Before  string `json:"before,omitempty" jsonschema:"continue a list: show what came before this checkpoint, such as c12"`
	Limit   int    `json:"limit,omitempty" jsonschema:"number of checkpoints, 20 if missing, at most 100"`
}

// History shows what happened in the workspace, newest first.
func (t *Tools) History(ctx context.Context, args HistoryArgs) (text string, err error) {
	most, err := limit(args.Limit, 20, 100)
	if err != nil {
		return "", err
	}
	err = t.use(ctx, false, func(p *Place) error {
		text, err = t.history(ctx, p, args, most)
		return err
	})
	return text, err
}

func (t *Tools) history(ctx context.Context, p *Place, args HistoryArgs, most int) (string, error) {
	c, err := t.caller(ctx, p)
	if err != nil {
		return "", err
	}
	scope := timeline.Scope{Workspace: p.Space.ID()}
	if scope.Conversation, err = t.named(ctx, p, c, args.Session); err != nil {
		return "", err
	}
	h, err := p.timeline().Read(ctx, scope)
	if err != nil {
		return "", err
	}
	shown, err := before(h.Shown(), args.Before)
	if err != nil {
		return "", err
	}
	var a answer
	if args.Before == "" {
		if err := a.head(ctx, p, c); err != nil {
			return "", err
		}
	}
	if len(shown) == 0 {
		a.line("No checkpoints. `stet connect` makes one for every turn of a coding agent; the tool `checkpoint` makes one now.")
		return a.String(), nil
	}
	left := 0
	for i, e := range shown {
		line, err := entryLine(ctx, h, e, c)
		if err != nil {
			return "", err
		}
		if i == most || a.full(len(line)+200) {
			left = len(shown) - i
			break
		}
		a.line("- %s", line)
	}
	if left > 0 {
		a.line("\n%s left out. Continue with `history` and before=%q.", plural(left, "older checkpoint"), shown[len(shown)-left-1].Record.Name())
	}
	if n := len(h.Damaged); n > 0 {
		a.line("\n%s cannot be read; `stet fsck` lists the damage.", plural(n, "checkpoint"))
	}
	return a.String(), nil
}

// named returns the conversation that an argument names, "" for all.
func (t *Tools) named(ctx context.Context, p *Place, c caller, name string) (string, error) {
	switch {
	case name == "":
		return "", nil
	case name != own:
		return p.conversation(ctx, name)
	case c.id == "":
		return "", refused("which session is calling is not known; `history` without session lists the sessions of this workspace")
	}
	return c.id, nil
}

// before drops the entries up to a checkpoint.
func before(shown []*timeline.Entry, name string) ([]*timeline.Entry, error) {
	if name == "" {
		return shown, nil
	}
	i := slices.IndexFunc(shown, func(e *timeline.Entry) bool { return e.Record.Name() == name || e.Record.ID == name })
	if i < 0 {
		return nil, refused("no checkpoint %s in this list", code(name))
	}
	return shown[i+1:], nil
}

// head names the workspace and the calling session, and what differs from the last
// checkpoint.
func (a *answer) head(ctx context.Context, p *Place, c caller) error {
	a.line("Workspace %s", code(p.Space.Path()))
	switch {
	case c.id == "":
		a.line("Calling session: not known")
	case c.turn != nil:
		a.line("Calling session: %s (%s), in turn %d", code(c.id), c.author, c.turn.Number)
	default:
		a.line("Calling session: %s (%s)", code(c.id), c.author)
	}
	last, err := p.latest(ctx)
	if err != nil || last == nil {
		return err
	}
	var changes []workspace.Change
	err = p.look(ctx, func(w *checkpoint.Workspace, blobs *unsaved.Store) error {
		res, err := w.Outline(ctx)
		if err == nil {
			changes, err = workspace.Diff(ctx, blobs, last.Tree, res.Tree)
		}
		return err
	})
	if err != nil {
		return err
	}
	var paths []string
	for _, change := range linediff.Files(changes, nil) {
		paths = append(paths, change.Path)
	}
	if len(paths) == 0 {
		a.line("Now: as in %s\n", last.Name())
		return nil
	}
	a.line("Now: differs from %s in %s (%s)\n", last.Name(), plural(len(paths), "file"), few(paths, 5))
	return nil
}

// entryLine is a checkpoint of a history on one line.
func entryLine(ctx context.Context, h *timeline.History, e *timeline.Entry, c caller) (string, error) {
	rec := e.Record
	turn, err := h.Turn(ctx, e)
	if err != nil {
		return "", err
	}
	parts := []string{strings.TrimSpace(fmt.Sprintf("%s %s %s", code(rec.Name()), when(rec.Time), about(rec, turn)))}
	if files := plural(int(rec.FilesChanged), "file"); rec.FilesChanged > 0 {
		parts = append(parts, strings.TrimSpace(files+" "+lines(rec.LinesAdded, rec.LinesRemoved)))
	}
	if words := turn.ToolWords(); len(words) > 0 {
		parts = append(parts, strings.Join(words, ", "))
	}
	if e.Total != nil { // the last of its turn
		parts = append(parts, turn.Spent.Words()...)
	}
	if turn.Interrupted {
		parts = append(parts, "interrupted")
	}
	if rec.Conversation != "" && rec.Conversation != c.id {
		parts = append(parts, "session "+code(rec.Conversation))
	}
	for _, pin := range e.Pins {
		parts = append(parts, code("pin:"+pin))
	}
	if e.Left {
		parts = append(parts, "rewound "+when(e.LeftAt)+", kept")
	}
	if e.Current {
		parts = append(parts, "current")
	}
	if e.Forgotten > 0 {
		parts = append(parts, fmt.Sprintf("%d before it no longer kept", e.Forgotten))
	}
	return strings.Join(parts, " · "), nil
}

// about describes a checkpoint: its turn with the prompt, its label, or why it was
// taken.
func about(rec *checkpoint.Record, turn *timeline.Turn) string {
	words := rec.Place()
	title := rec.Label
	switch {
	case title != "":
	case turn.Damaged:
		words += " (its prompt cannot be read)"
	case turn.Text() != "":
		title = turn.Text()
	case rec.Parent == "":
		words += " first checkpoint"
	case rec.Found() != "":
		words += " " + found(rec)
	case rec.Turn == 0:
		words += " " + checkpoint.KindName(rec.Kind)
	}
	if title != "" {
		words += fmt.Sprintf(" %q", clip(title, maxTitle))
	}
	return strings.TrimSpace(words)
}

// found says whose changes a checkpoint found, to an agent.
func found(rec *checkpoint.Record) string {
	if rec.Writer().Class == checkpoint.ByUser {
		return "found changed between turns"
	}
	return rec.Found()
}

// title describes a conversation on one line.
func (p *Place) title(ctx context.Context, id string) (conversation.Info, string, error) {
	info, err := p.DB.Conversations().Get(ctx, id)
	if errors.Is(err, conversation.ErrNotFound) {
		return info, code(id), nil
	}
	if err != nil {
		return info, "", err
	}
	text := code(id)
	if info.Title != "" {
		text += fmt.Sprintf(" %q", clip(info.Title, maxTitle))
	}
	if info.Agent != "" {
		text += " · " + info.Agent
	}
	return info, fmt.Sprintf("%s · %s", text, plural(int(info.Turns), "turn")), nil
}
