package agenttools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/transcript"
	"github.com/stet-dev/stet/workspace"
)

// ShowArgs are the arguments of the tool show.
type ShowArgs struct {
	Ref  string `json:"ref" jsonschema:"a checkpoint (c7, turn:5, before:turn:6, pin:NAME, an id), or a session (its id or the beginning of it, \"own\" for the calling one)"`
	Turn int    `json:"turn,omitempty" jsonschema:"of a session: the first turn to show, counted from 1; the last turns if missing"`
	Full bool   `json:"full,omitempty" jsonschema:"of a session: show the input and output of tools, and more of long texts"`
}

// Show shows a checkpoint with the files that had changed, or a conversation.
func (t *Tools) Show(ctx context.Context, args ShowArgs) (text string, err error) {
	if args.Ref == "" {
		return "", refused("ref is empty")
	}
	if args.Turn < 0 {
		return "", refused("turns are counted from 1")
	}
	err = t.use(ctx, false, func(p *Place) error {
		text, err = t.show(ctx, p, args)
		return err
	})
	return text, err
}

func (t *Tools) show(ctx context.Context, p *Place, args ShowArgs) (string, error) {
	c, err := t.caller(ctx, p)
	if err != nil {
		return "", err
	}
	if args.Ref == own {
		id, err := t.named(ctx, p, c, own)
		if err != nil {
			return "", err
		}
		return p.showConversation(ctx, id, args)
	}
	rec, err := p.Space.Resolve(ctx, args.Ref, c.id)
	if errors.Is(err, checkpoint.ErrNotFound) || args.Turn > 0 {
		id, findErr := p.DB.Conversations().Find(ctx, args.Ref)
		if findErr == nil {
			return p.showConversation(ctx, id, args)
		}
		if !errors.Is(findErr, conversation.ErrNotFound) {
			return "", findErr
		}
	}
	switch {
	case err != nil:
		return "", err
	case rec == nil:
		return "", refused("%q is the workspace now: `diff` shows how it differs", args.Ref)
	}
	return p.showCheckpoint(ctx, rec)
}

func (p *Place) showCheckpoint(ctx context.Context, rec *checkpoint.Record) (string, error) {
	turn, err := p.timeline().Turn(ctx, rec)
	if err != nil {
		return "", err
	}
	var a answer
	a.line("Checkpoint %s (%s) · %s · %s", code(rec.Name()), rec.ID, when(rec.Time), strings.TrimSpace(about(rec, turn)))
	if rec.Conversation != "" {
		_, title, err := p.title(ctx, rec.Conversation)
		if err != nil {
			return "", err
		}
		a.line("Session %s", title)
	}
	if rec.Author != "" {
		a.line("Made by %s", clip(rec.Author, maxTitle))
	}
	if words := turn.ToolWords(); len(words) > 0 {
		a.line("Tools %s", strings.Join(words, ", "))
	}
	if words := turn.Spent.Words(); len(words) > 0 {
		a.line("Took %s", strings.Join(words, " · "))
	}
	if rec.NotCaptured > 0 {
		a.line("Not captured: %s", plural(int(rec.NotCaptured), "path"))
	}
	changes, err := p.changed(ctx, rec)
	switch {
	case errors.Is(err, checkpoint.ErrNotFound):
		a.line("\n%s changed; the checkpoint before it is no longer kept.", plural(int(rec.FilesChanged), "file"))
		return a.String(), nil
	case err != nil:
		return "", err
	case rec.Parent == "":
		a.line("\nThe first checkpoint of the workspace, with %s.", plural(len(changes), "file"))
		return a.String(), nil
	}
	a.line("\n%s changed since the checkpoint before it:", plural(len(changes), "file"))
	if err := a.files(ctx, p.DB.Blobs(), changes); err != nil {
		return "", err
	}
	a.line("\n`diff` with from=%q and to=%q shows the lines.", rec.Parent, rec.ID)
	return a.String(), nil
}

// changed lists the files in which a checkpoint differs from the one before it.
func (p *Place) changed(ctx context.Context, rec *checkpoint.Record) ([]workspace.Change, error) {
	var before blob.ID
	if rec.Parent != "" {
		parent, err := p.Checkpoints.Get(ctx, rec.Parent)
		if err != nil {
			return nil, err
		}
		before = parent.Tree
	}
	changes, err := workspace.Diff(ctx, p.DB.Blobs(), before, rec.Tree)
	return linediff.Files(changes, nil), err
}

// files lists changed files with their numbers of lines.
func (a *answer) files(ctx context.Context, blobs blob.Store, changes []workspace.Change) error {
	for i, change := range changes {
		if i == maxPaths {
			a.line("- and %d more", len(changes)-i)
			break
		}
		f, err := linediff.Compare(ctx, blobs, change)
		if err != nil {
			return err
		}
		a.line("- %s", fileLine(f))
	}
	return nil
}

// fileLine is a changed file on one line.
func fileLine(f *linediff.File) string {
	parts := []string{f.Op(), code(f.Path)}
	switch {
	case f.Binary:
		parts = append(parts, "binary")
	case f.TooLarge:
		parts = append(parts, "too large to compare")
	default:
		parts = append(parts, lines(uint64(f.Added), uint64(f.Removed)))
	}
	if mode := f.ModeChange(); mode != "" {
		parts = append(parts, "mode "+mode)
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// lastTurns is how many turns of a conversation are shown by default.
const lastTurns = 3

func (p *Place) showConversation(ctx context.Context, id string, args ShowArgs) (string, error) {
	info, title, err := p.title(ctx, id)
	if err != nil {
		return "", err
	}
	var a answer
	a.line("Session %s", title)
	if info.Workspace != "" {
		a.line("Workspace %s", code(info.Workspace))
	}
	if info.Root.IsZero() {
		a.line("\nIt has no turns yet.")
		return a.String(), nil
	}
	t, err := transcript.New(p.DB.Conversations(), p.DB.Blobs()).Conversation(ctx, id)
	if err != nil {
		return "", err
	}
	details, err := p.timeline().Details(ctx, id, info.Root)
	if err != nil {
		return "", err
	}
	first := args.Turn
	if first == 0 {
		first = max(1, t.Turns()-lastTurns+1)
	}
	if first > t.Turns() {
		return "", refused("session %s has %s", code(id), plural(t.Turns(), "turn"))
	}
	if first > 1 {
		a.line("Turns before %d: `show` with ref=%q and turn=1.", first, id)
	}
	for n := first; n <= t.Turns(); n++ {
		var took []string
		if d := details[uint64(n)]; d != nil {
			took = timeline.SpentOf(d).Words()
		}
		text, err := turnText(ctx, t, n, took, args.Full)
		if err != nil {
			return "", err
		}
		if a.full(len(text)) && n > first {
			a.line("\nTurns from %d: `show` with ref=%q and turn=%d.", n, id, n)
			break
		}
		a.WriteString("\n" + text)
	}
	return a.String(), nil
}

// turnText is a turn as Markdown. A turn that is larger than an answer is shown
// without its middle messages.
func turnText(ctx context.Context, t *transcript.Transcript, n int, took []string, full bool) (string, error) {
	head := fmt.Sprintf("## Turn %d", n)
	if at := when(t.TurnTime(n - 1)); at != "" {
		head += " · " + at
	}
	head = strings.Join(append([]string{head}, took...), " · ") + "\n"
	var parts []string
	size := 0
	opts := &transcript.Options{TurnFrom: n - 1, TurnTo: n, WithoutHeavyOutput: true, WithoutSubagents: true, WithoutSummaries: true, Lenient: true}
	for m, err := range t.Messages(ctx, opts) {
		if err != nil {
			return "", err
		}
		part := messageText(m, full)
		parts, size = append(parts, part), size+len(part)
	}
	const room = maxAnswer - 1<<10
	from := len(parts)
	for from > 1 && size > room { // the prompt and the last words say most
		from--
		size -= len(parts[len(parts)-from])
	}
	if dropped := len(parts) - from; dropped > 0 {
		parts = append(append(parts[:1:1], fmt.Sprintf("(%s left out)\n", plural(dropped, "message"))), parts[1+dropped:]...)
	}
	return head + strings.Join(parts, ""), nil
}

// messageText is a message of a transcript as Markdown.
func messageText(m transcript.Message, full bool) string {
	most := maxText
	if full {
		most *= 4
	}
	switch m.Kind {
	case transcript.ToolCall, transcript.Shell:
		return toolText(m, full, most)
	case transcript.Thinking:
		if !full {
			return ""
		}
		return "Thinking:\n" + transcript.Fence("text", cut(m.Text, most))
	case transcript.Failure:
		return "(a part cannot be read: " + clip(m.Text, 200) + ")\n"
	}
	name := map[transcript.Role]string{transcript.User: "User", transcript.Assistant: "Agent", transcript.System: "Note"}[m.Speaker()]
	return name + ":\n" + transcript.Fence("text", cut(m.Words(), most))
}

func toolText(m transcript.Message, full bool, most int) string {
	tool := m.Tool
	if tool == nil {
		return "User ran " + code(clip(m.Text, 200)) + "\n"
	}
	line := "Tool " + code(tool.Name)
	if m.Kind == transcript.Shell {
		line = "User ran " + code(clip(m.Text, 200))
	}
	if tool.Path != "" {
		line += " " + code(tool.Path)
	}
	if words := lines(uint64(max(0, tool.Added)), uint64(max(0, tool.Removed))); words != "" {
		line += " " + words
	}
	line += fmt.Sprintf(" · %s", tool.Status)
	if tool.Exit != 0 {
		line += fmt.Sprintf(", exit code %d", tool.Exit)
	}
	line += "\n"
	if !full {
		return line
	}
	if tool.Input != nil {
		line += transcript.Fence("text", cut(fmt.Sprint(tool.Input), most))
	}
	if tool.Diff != "" {
		line += transcript.Fence("diff", cut(tool.Diff, most))
	} else if tool.Output != "" {
		line += transcript.Fence("text", cut(tool.Output, most))
	}
	return line
}
