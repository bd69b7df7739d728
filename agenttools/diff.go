package agenttools

import (
	"cmp"
	"context"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/unsaved"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/transcript"
	"github.com/stet-dev/stet/workspace"
)

// DiffArgs are the arguments of the tool diff.
type DiffArgs struct {
	From  string   `json:"from,omitempty" jsonschema:"a checkpoint: c7, turn:5, before:turn:6, pin:NAME, an id, or @{10m} for ten minutes ago; the last checkpoint if missing"`
	To    string   `json:"to,omitempty" jsonschema:"another one; the workspace now if missing"`
	Paths []string `json:"paths,omitempty" jsonschema:"only these files and directories"`
	Stat  bool     `json:"stat,omitempty" jsonschema:"only names of files and numbers of lines"`
}

// Diff shows what changed between two checkpoints, or since one.
func (t *Tools) Diff(ctx context.Context, args DiffArgs) (text string, err error) {
	err = t.use(ctx, false, func(p *Place) error {
		text, err = t.diff(ctx, p, args)
		return err
	})
	return text, err
}

func (t *Tools) diff(ctx context.Context, p *Place, args DiffArgs) (string, error) {
	c, err := t.caller(ctx, p)
	if err != nil {
		return "", err
	}
	paths, err := p.inside(args.Paths)
	if err != nil {
		return "", err
	}
	from, to := args.From, cmp.Or(args.To, "@")
	if from == "" {
		last, err := p.latest(ctx)
		if err != nil {
			return "", err
		}
		if last == nil {
			return "", refused("there is no checkpoint to compare with; the tool `checkpoint` makes one")
		}
		from = last.ID
	}
	var a answer
	err = p.look(ctx, func(w *checkpoint.Workspace, blobs *unsaved.Store) error {
		before, fromName, err := side(ctx, w, from, c.id)
		if err != nil {
			return err
		}
		after, toName, err := side(ctx, w, to, c.id)
		if err != nil {
			return err
		}
		changes, err := workspace.Diff(ctx, blobs, before, after)
		if err != nil {
			return err
		}
		changes = linediff.Files(changes, paths)
		a.line("From %s to %s: %s changed", fromName, toName, plural(len(changes), "file"))
		if args.Stat {
			return a.files(ctx, blobs, changes)
		}
		return a.diffs(ctx, blobs, changes)
	})
	return a.String(), err
}

// side returns the tree that a reference names, and its label.
func side(ctx context.Context, w *checkpoint.Workspace, ref, conversation string) (blob.ID, string, error) {
	rec, err := w.Resolve(ctx, ref, conversation)
	if err != nil {
		return blob.ID{}, "", err
	}
	if rec != nil {
		return rec.Tree, code(rec.Name()), nil
	}
	res, err := w.Present(ctx)
	if err != nil {
		return blob.ID{}, "", err
	}
	return res.Tree, "the workspace now", nil
}

// diffs shows the lines of as many files as fit into an answer, and lists the rest.
func (a *answer) diffs(ctx context.Context, blobs blob.Store, changes []workspace.Change) error {
	var rest []string
	for i, change := range changes {
		f, err := linediff.Compare(ctx, blobs, change)
		if err != nil {
			return err
		}
		text, whole := f.Unified(), true
		if room := maxAnswer - 2<<10; len(text) > room {
			text, whole = cut(text, room), false
		}
		if a.full(len(text)+1<<10) && i > 0 {
			rest = append(rest, change.Path)
			continue
		}
		a.line("\n%s", fileLine(f))
		if text != "" {
			a.WriteString(transcript.Fence("diff", text))
		}
		if !whole {
			a.line("(the rest of %s is left out)", code(change.Path))
		}
	}
	if len(rest) > 0 {
		a.line("\n%s left out: %s. `diff` with paths shows them.", plural(len(rest), "file"), few(rest, maxPaths))
	}
	return nil
}
