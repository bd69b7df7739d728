package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/workspace"
)

func (a *app) showCommand() *cobra.Command {
	var stat, lines bool
	cmd := &cobra.Command{
		Use:     "show REF",
		Short:   "Show a checkpoint and what changed in it, or a conversation",
		GroupID: groupLook,
		Long: `Show everything about a checkpoint: its author, its place in a conversation, which
files had changed and how, and what it could not capture. More than 100 files are summed
up by directory; --full lists all and shows how they changed.
'stet help diff' lists the forms of REF; "@" shows the workspace now.

--lines shows for each file how many of the lines that the checkpoint's turn wrote are
still there, and who changed the others.

A conversation is shown turn by turn: what was said, which tools were called, and the
model, tokens, cost and time that the agent recorded for the turn. 'stet export' writes
everything. --store may name a state.vscdb or store.db.`,
		Example:           "  stet show c7\n  stet show turn:5\n  stet show turn:5 --lines\n  stet show pin:before-retry --json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRefs(1),
		RunE: a.paged(func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			done, err := a.withForeign(ctx, func(src *cursor.Store) error { return a.showForeign(ctx, src, args[0]) })
			if done {
				return err
			}
			return a.withView(ctx, func(p *place) error {
				if lines {
					return a.showLines(ctx, p, args[0])
				}
				return a.show(ctx, p, args[0], stat)
			})
		}),
	}
	a.noPagerFlag(cmd)
	a.fullFlag(cmd)
	cmd.Flags().BoolVar(&stat, "stat", false, "show only the names of changed files and line counts")
	cmd.Flags().BoolVar(&lines, "lines", false, "show what is left of the lines that the turn wrote")
	return cmd
}

type showJSON struct {
	Schema string `json:"schema"`
	*checkpoint.RecordJSON
	Kind        string              `json:"kind"`
	Parent      string              `json:"parent,omitempty"`
	ParentGone  bool                `json:"parent_gone,omitempty"`
	Pins        []string            `json:"pins,omitempty"`
	Spent       *spentJSON          `json:"spent,omitempty"`
	Files       []fileDiffJSON      `json:"files"`
	NotCaptured []workspace.Skipped `json:"not_captured"`
}

func (a *app) show(ctx context.Context, p *place, ref string, stat bool) error {
	about, err := a.subject(ctx, p, ref)
	rec := about.checkpoint
	switch {
	case err != nil:
		return err
	case about.conversation != "":
		return a.showConversation(ctx, p, about.conversation)
	case rec == nil:
		return a.status(ctx, p)
	}
	pins, err := p.pins(ctx)
	if err != nil {
		return err
	}
	value := showJSON{Schema: "stet.show.v1", RecordJSON: rec.JSON(), Kind: checkpoint.KindName(rec.Kind), Parent: rec.Parent, Pins: pins[rec.ID], Files: []fileDiffJSON{}}
	skipped, err := p.service.NotCaptured(ctx, rec)
	if err != nil {
		return err
	}
	value.NotCaptured = append([]workspace.Skipped{}, skipped...)
	files, err := changedFiles(ctx, p, rec)
	value.Files = withoutDiffs(files)
	if value.ParentGone = errors.Is(err, checkpoint.ErrNotFound); err != nil && !value.ParentGone {
		return err
	}
	turn, err := p.timeline().Turn(ctx, rec)
	if err != nil {
		return err
	}
	if !turn.Spent.IsZero() {
		spent := newSpentJSON(turn.Spent)
		value.Spent = &spent
	}
	text := a.showText(rec, value, turn)
	if !stat && rec.Parent != "" && !value.ParentGone && !a.folds(len(files)) {
		text += a.diffText(files)
	}
	if err := a.print(value, text); err != nil {
		return err
	}
	return lostRoots(ctx, p.db, rec.Name(), rec.Root)
}

// withoutDiffs returns what is known about files without their lines.
func withoutDiffs(files []fileDiffJSON) []fileDiffJSON {
	out := slices.Clone(files)
	for i := range out {
		out[i].Diff = ""
	}
	return out
}

// diffText shows how files changed.
func (a *app) diffText(files []fileDiffJSON) string {
	var text strings.Builder
	for _, f := range files {
		text.WriteString("\n" + a.fileText(f))
	}
	return text.String()
}

// pins lists the names of pinned checkpoints.
func (p *place) pins(ctx context.Context) (map[string][]string, error) {
	pins := make(map[string][]string)
	for pin, err := range p.service.Pins(ctx) {
		if err != nil {
			return nil, err
		}
		pins[pin.Checkpoint] = append(pins[pin.Checkpoint], pin.Name)
	}
	return pins, nil
}

// changedFiles compares a checkpoint with the previous one. The error wraps
// checkpoint.ErrNotFound if a retention policy has removed that one.
func changedFiles(ctx context.Context, p *place, rec *checkpoint.Record) ([]fileDiffJSON, error) {
	list := []fileDiffJSON{}
	var before blob.ID
	var parent *checkpoint.Record
	if rec.Parent != "" {
		var err error
		if parent, err = p.service.Get(ctx, rec.Parent); err != nil {
			return list, err
		}
		before = parent.Tree
	}
	changes, err := workspace.Diff(ctx, p.db.Blobs(), before, rec.Tree)
	if err == nil && parent != nil {
		changes, err = p.service.Comparable(ctx, changes, parent, rec)
	}
	if err != nil {
		return nil, err
	}
	for _, c := range linediff.Files(changes, nil) {
		file, err := fileDiff(ctx, p.db.Blobs(), c)
		if err != nil {
			return nil, err
		}
		list = append(list, file)
	}
	return list, nil
}

func (a *app) showText(rec *checkpoint.Record, v showJSON, turn *timeline.Turn) string {
	p := a.paint()
	var text strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&text, "%s  %s\n", p.dim(pad(name, 12)), value)
		}
	}
	line("checkpoint", p.yellow(rec.Name())+"  "+rec.ID)
	line("time", rec.Time.Local().Format("2006-01-02 15:04:05"))
	line("kind", v.Kind)
	line("place", describe(rec))
	line("about", clip(turnText(turn), 100))
	line("took", spentWords(turn.Spent))
	line("conversation", printable(rec.Conversation))
	line("message", printable(rec.MessageID))
	line("author", printable(rec.Author))
	line("tool", printable(rec.Tool))
	line("source", printable(rec.Source))
	line("pins", few(v.Pins, 10))
	line("tree", rec.Tree.String())
	if !rec.Root.IsZero() {
		line("root", rec.Root.String())
	}
	if len(v.NotCaptured) > 0 {
		line("not captured", skippedText(v.NotCaptured, 8))
	}
	if rec.Parent == "" {
		of := "workspace"
		if rec.Kind == checkpoint.Import {
			of = "conversation"
		}
		line("files", fmt.Sprintf("%d, the first checkpoint of the %s", len(v.Files), of))
		return text.String()
	}
	if v.ParentGone {
		line("files", fmt.Sprintf("%d changed; the checkpoint before it is no longer kept", rec.FilesChanged))
		return text.String()
	}
	text.WriteString("\n" + a.statText(v.Files))
	return text.String()
}
