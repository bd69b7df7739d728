package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/workspace"
)

type checkpointFlags struct {
	label, message, tool, author string
	turn                         uint64
	pid                          int
	before, after, auto          bool
	touched                      []string
}

func (a *app) checkpointCommand() *cobra.Command {
	var flags checkpointFlags
	cmd := &cobra.Command{
		Use:     "checkpoint [-- PATH…]",
		Short:   "Save the current state of the workspace",
		GroupID: groupBack,
		Long: `Save the current state of the workspace and print the id of the checkpoint. Only
changes since the last one are read. A checkpoint has everything: new, empty and binary
files, ignored files that an agent touched, links and modes; .git is never touched. Paths
that could not be captured are listed, and so are files with hard links, extended
attributes or another owner, because checkpoints do not keep these.

Ignore files (.gitignore, .stetignore) apply only to new files: a file that an earlier
checkpoint has stays captured, and can be restored, even if a rule now ignores it. To
stop that, move it away, run 'stet checkpoint', and move it back.

An agent's hook passes its place in a conversation: -c names the conversation,
--message or --turn the place, and --before or --after the side. Changes between the
two sides count as the conversation's work, all others as yours. If the end of a turn
is never reported, the turn lasts until an hour after its last checkpoint; with --pid,
it ends with the agent's process.

With PATHs, only these paths are scanned, which is fast in large trees. A file whose
time stamps did not change counts as unchanged, unless a process had it open for
writing; --reread reads all files.`,
		Example: "  stet checkpoint -m 'before the refactoring'\n  stet -c 01JCX4 checkpoint --turn 5 --before",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return usage(errors.New("paths follow --; see 'stet checkpoint --help'"))
			}
			return a.withPlace(cmd.Context(), true, func(p *place) error {
				return a.makeCheckpoint(cmd.Context(), p, flags, args)
			})
		},
	}
	f := cmd.Flags()
	f.StringVarP(&flags.label, "text", "m", "", "description for the log")
	f.StringVar(&flags.message, "message", "", "id of the agent's current message")
	f.Uint64Var(&flags.turn, "turn", 0, "number of the agent's current turn")
	f.BoolVar(&flags.before, "before", false, "the checkpoint is taken before the agent works on the turn")
	f.BoolVar(&flags.after, "after", false, "the checkpoint is taken after the agent worked on the turn")
	f.StringVar(&flags.tool, "tool", "", "tool that made the changes")
	f.StringVar(&flags.author, "author", "", "author of the checkpoint (default: you)")
	f.StringArrayVar(&flags.touched, "touched", nil, "path that the tool wrote; captured even if it is ignored (may be repeated)")
	f.IntVar(&flags.pid, "pid", 0, "id of the process that works on the turn (with --before); the turn ends with it")
	f.BoolVar(&flags.auto, "auto", false, "make an automatic checkpoint, which may be skipped if it comes too soon")
	a.rereadFlag(cmd)
	exclude(cmd, "before", "after")
	return cmd
}

func (a *app) makeCheckpoint(ctx context.Context, p *place, flags checkpointFlags, args []string) error {
	req, err := a.request(ctx, p, flags, args)
	if err != nil {
		return err
	}
	read := a.counter("reading")
	req.Progress = func(s workspace.Stats) { read.set(s.Files) }
	res, err := p.space.Checkpoint(ctx, req)
	read.done()
	if err != nil {
		return err
	}
	a.tellRecovery(res.Recovered)
	if res.IndexError != nil {
		a.warn("the next checkpoint will take longer: %v", res.IndexError)
	}
	if res.Record == nil {
		if res.Skipped == checkpoint.SkippedOff {
			return coded(ExitError, "nothing was saved: %s (see 'stet config explain capture.enabled')", res.Skipped)
		}
		a.say("nothing was saved: %s", res.Skipped)
		if a.json {
			return a.printJSON(map[string]any{"schema": "stet.checkpoint.v1", "id": "", "skipped": res.Skipped})
		}
		return nil
	}
	a.say("%s", checkpointText(res))
	if err := a.print(newCheckpointJSON(res), res.Record.ID+"\n"); err != nil {
		return err
	}
	return stateLost(res)
}

// stateLost reports, after the files were captured, that the state of the conversation
// is lost.
func stateLost(res *checkpoint.Result) error {
	if res.StateError == nil {
		return nil
	}
	return fmt.Errorf("the files are captured, but not the state of the conversation: %w", res.StateError)
}

// request builds the request from the flags.
func (a *app) request(ctx context.Context, p *place, flags checkpointFlags, args []string) (checkpoint.Request, error) {
	req := checkpoint.Request{
		MessageID: flags.message, Turn: flags.turn, Label: flags.label, Tool: flags.tool, Author: flags.author, Auto: flags.auto,
	}
	if req.Author == "" {
		req.Author = author()
	}
	switch {
	case flags.before:
		req.Side = checkpoint.Before
	case flags.after:
		req.Side = checkpoint.After
	}
	var err error
	if req.Touched, err = p.pathsOf(flags.touched); err != nil {
		return req, err
	}
	if len(args) > 0 {
		if req.Paths, err = p.inside(args); err != nil {
			return req, err
		}
	}
	if req.Conversation, err = a.named(ctx, p.db); err != nil {
		return req, err
	}
	if flags.pid != 0 {
		if req.Side != checkpoint.Before || req.Conversation == "" {
			return req, usage(errors.New("--pid needs -c and --before"))
		}
		if req.Holder, err = checkpoint.HolderOf(flags.pid, flags.tool); err != nil {
			return req, err
		}
	}
	if req.Conversation == "" {
		return req, nil
	}
	req.Root, err = rootAt(ctx, p, req.Conversation, req.MessageID)
	return req, err
}

// rootAt returns the state of a conversation at a message, or else the current one;
// zero if only the name of the conversation is known.
func rootAt(ctx context.Context, p *place, id, message string) (blob.ID, error) {
	if message != "" {
		root, err := p.db.Conversations().MessageHead(ctx, id, message)
		if !errors.Is(err, conversation.ErrNotFound) {
			return root, err
		}
	}
	root, err := p.db.Conversations().Head(ctx, id)
	if errors.Is(err, conversation.ErrNotFound) {
		return blob.ID{}, nil
	}
	return root, err
}

type checkpointJSON struct {
	Schema string `json:"schema"`
	*checkpoint.RecordJSON
	Conversation string              `json:"conversation"` // even if it is empty
	Root         string              `json:"root"`
	NotCaptured  []workspace.Skipped `json:"not_captured"`
	NotKept      *workspace.NotKept  `json:"not_kept,omitempty"`
}

func newCheckpointJSON(res *checkpoint.Result) checkpointJSON {
	rec := res.Record.JSON()
	return checkpointJSON{"stet.checkpoint.v1", rec, rec.Conversation, rec.Root, append([]workspace.Skipped{}, res.NotCaptured...), orNil(&res.NotKept)}
}

// checkpointText describes what was saved, and what was not.
func checkpointText(res *checkpoint.Result) string {
	rec := res.Record
	text := fmt.Sprintf("%s  %s", rec.Name(), changeText(rec))
	if bad := notIgnored(res.NotCaptured); len(bad) > 0 {
		text += "\nnot captured: " + skippedText(bad, 5)
	}
	if lacks := notKeptText(&res.NotKept); lacks != "" {
		text += "\nnot kept: " + lacks
	}
	return text
}

// changeText describes how a checkpoint differs from the previous one.
func changeText(rec *checkpoint.Record) string {
	text := plural(int64(rec.FilesChanged), "file")
	if lines := linesChanged(rec.LinesAdded, rec.LinesRemoved, rec.LinesPartial); lines != "" {
		text += "  " + lines
	}
	return text
}

// notIgnored drops what nobody expects in a checkpoint: files that the user excluded, and
// git repositories.
func notIgnored(skipped []workspace.Skipped) []workspace.Skipped {
	var out []workspace.Skipped
	for _, s := range skipped {
		if !s.Reason.ByRule() && s.Reason != workspace.ReasonRepository {
			out = append(out, s)
		}
	}
	return out
}

func skippedText(skipped []workspace.Skipped, most int) string {
	var parts []string
	for _, s := range skipped[:min(most, len(skipped))] {
		parts = append(parts, fmt.Sprintf("%s (%s)", cmp.Or(printable(s.Path), "everything else"), s.Reason))
	}
	text := strings.Join(parts, ", ")
	if more := len(skipped) - len(parts); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
