package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/timeline"
)

func (a *app) pinCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "pin [NAME REF]",
		Short:   "Name a checkpoint, or list the names",
		GroupID: groupBack,
		Long: `Name a checkpoint. You can then refer to it as pin:NAME, and retention policies keep it.
A name belongs to the project of its checkpoint: each project may have its own pin:works.
If another checkpoint of the project has the name, the name moves. For "@", stet first
makes a checkpoint of the current state. 'stet help diff' lists the forms of REF.

Without arguments, the names of all projects are listed, this project's first: name,
checkpoint, when it was taken, and project.`,
		Example:           "  stet pin before-retry c2\n  stet pin works @\n  stet rewind pin:works",
		Args:              cobra.MatchAll(cobra.MaximumNArgs(2), notOne),
		ValidArgsFunction: a.completePinArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.withStore(cmd.Context(), false, func(db *stet.DB) error { return a.listPins(cmd.Context(), db) })
			}
			return a.withPlace(cmd.Context(), false, func(p *place) error { return a.pin(cmd.Context(), p, args[0], args[1]) })
		},
	}
}

func notOne(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		return errors.New("NAME needs a REF")
	}
	return nil
}

func (a *app) completePinArgs(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return a.refNames(cmd), cobra.ShellCompDirectiveNoFileComp
	}
	return a.completePins(cmd, args, prefix)
}

func (a *app) pin(ctx context.Context, p *place, name, ref string) error {
	rec, lost, err := a.record(ctx, p, ref)
	if err != nil {
		return err
	}
	if err := p.service.Pin(ctx, name, rec.ID, author()); err != nil {
		return err
	}
	of := ""
	if rec.Workspace != p.space.ID() {
		of = " of another project"
	}
	a.say("pin:%s is %s%s", name, rec.Name(), of)
	if err := a.print(pinJSON{Schema: "stet.pin.v1", Name: name, ID: rec.ID, Checkpoint: rec.Name()}, rec.ID+"\n"); err != nil {
		return err
	}
	return lost
}

// record returns the checkpoint of a reference, and makes one of the present. lost is set
// if that one has the files alone, because the state of the conversation is lost.
func (a *app) record(ctx context.Context, p *place, ref string) (rec *checkpoint.Record, lost, err error) {
	conv, err := a.known(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	rec, err = p.space.Resolve(ctx, ref, conv)
	if err != nil || rec != nil {
		return rec, nil, err
	}
	req := checkpoint.Request{Conversation: conv, Author: author()}
	if conv != "" {
		if req.Root, err = rootAt(ctx, p, conv, ""); err != nil {
			return nil, nil, err
		}
	}
	res, err := p.space.Checkpoint(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	if res.Record == nil {
		return nil, nil, coded(ExitError, "no checkpoint was created: %s", res.Skipped)
	}
	return res.Record, stateLost(res), nil
}

type pinJSON struct {
	Schema     string `json:"schema"`
	Name       string `json:"name"`
	ID         string `json:"id,omitempty"`
	Checkpoint string `json:"checkpoint,omitempty"`
	Workspace  string `json:"workspace,omitempty"`
	Time       string `json:"time,omitempty"`
	Removed    bool   `json:"removed,omitempty"`
}

// listPins lists the names of all projects, those of this one first.
func (a *app) listPins(ctx context.Context, db *stet.DB) error {
	pins, err := timeline.New(db.Checkpoints(), db.Conversations()).Pins(ctx)
	if err != nil {
		return err
	}
	here := ""
	if dir, err := a.findWorkspace(ctx, db); err == nil { // pins of others are listed without one
		here = checkpoint.WorkspaceID(dir)
	}
	order := func(p timeline.Pinned) string {
		if p.Workspace == here {
			return ""
		}
		return p.Path
	}
	slices.SortStableFunc(pins, func(x, y timeline.Pinned) int { return cmp.Compare(order(x), order(y)) })
	if a.json {
		for _, pin := range pins {
			if err := a.printJSON(newPinJSON(pin)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(pins) == 0 {
		a.say("no pins yet; 'stet pin NAME REF' creates one")
	}
	_, err = fmt.Fprint(a.out, a.pinTable(pins))
	return err
}

func newPinJSON(pin timeline.Pinned) pinJSON {
	v := pinJSON{Schema: "stet.pin.v1", Name: pin.Name, ID: pin.Checkpoint, Workspace: pin.Path, Time: stamp(pin.Time)}
	if pin.Record != nil {
		v.Checkpoint = pin.Record.Name()
	}
	return v
}

// pinTable has a line for each pin. On a narrow terminal names and projects are shortened.
func (a *app) pinTable(pins []timeline.Pinned) string {
	var rows [][]string
	for _, pin := range pins {
		row := []string{printable(pin.Name), "(gone)", "-", printable(tilde(pin.Path))}
		if pin.Record != nil {
			row[1], row[2] = pin.Record.Name(), when(pin.Record.Time, now())
		}
		rows = append(rows, row)
	}
	widths := columnWidths(rows, 3)
	widths[0] = min(widths[0], max(12, a.width()-widths[1]-widths[2]-26))
	room := a.width() - widths[0] - widths[1] - widths[2] - 6
	paint := a.paint()
	var text strings.Builder
	for _, row := range rows {
		if isTerminal(a.out) {
			row[0], row[3] = cut(row[0], widths[0]), cutFront(row[3], max(8, room))
		}
		fmt.Fprintf(&text, "%s  %s  %s  %s\n", paint.bold(pad(row[0], widths[0])), paint.yellow(pad(row[1], widths[1])), paint.dim(pad(row[2], widths[2])), row[3])
	}
	return text.String()
}

func (a *app) unpinCommand() *cobra.Command {
	var project string
	cmd := &cobra.Command{
		Use:     "unpin NAME",
		Short:   "Remove a name; the checkpoint stays",
		GroupID: groupBack,
		Long: `Remove a name from this project. The checkpoint stays, and so do the names of other
projects. --project removes the name from another project, which need not exist any more.`,
		Example:           "  stet unpin before-retry\n  stet unpin works --project ~/src/shop",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePins,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				return a.unpin(cmd.Context(), db, args[0], project)
			})
		},
	}
	cmd.Flags().StringVar(&project, "project", "", "the project that has the name, as 'stet pin' shows it")
	return cmd
}

func (a *app) unpin(ctx context.Context, db *stet.DB, name, project string) error {
	pins, err := timeline.New(db.Checkpoints(), db.Conversations()).Pins(ctx)
	if err != nil {
		return err
	}
	if project == "" {
		if project, err = a.findWorkspace(ctx, db); err != nil {
			return err
		}
	}
	var others []string
	for _, pin := range pins {
		switch {
		case pin.Name != name:
		case pin.Workspace == "" || pin.Path == project || pin.Workspace == projectID(project): // or of nobody
			if err := db.Checkpoints().Unpin(ctx, pin.Workspace, name, author()); err != nil {
				return err
			}
			return a.print(pinJSON{Schema: "stet.pin.v1", Name: name, Workspace: pin.Path, Removed: true}, "")
		default:
			others = append(others, tilde(pin.Path))
		}
	}
	if len(others) > 0 {
		return coded(ExitNotFound, "no pin %q in %s; %s has one: 'stet unpin %s --project PATH' removes it", name, tilde(project), few(others, 3), name)
	}
	return coded(ExitNotFound, "no pin %q; 'stet pin' lists all", name)
}

// projectID returns the id of a directory, which need not exist.
func projectID(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	return checkpoint.WorkspaceID(abs)
}
