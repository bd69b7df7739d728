package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/checkpoint"
)

func (a *app) logCommand() *cobra.Command {
	var limit int
	var all bool
	cmd := &cobra.Command{
		Use:     "log [CONVERSATION]",
		Short:   "Show the checkpoints of this workspace as a tree",
		GroupID: groupLook,
		Long: `Show what happened in this workspace, newest first:

  @  the workspace now, and how it differs from the last checkpoint
  o  a checkpoint
  P  a pinned one
  x  one that a rewind left behind; it is kept, and can be gone to like any other

Checkpoints that say nothing new, such as those before a turn that found nothing
changed, are left out; --all shows them. With a conversation only its checkpoints
are shown.`,
		Example:           "  stet log\n  stet log 01JCX4 -n 100\n  stet log --json | jq -r .id",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeConversations,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.conversation = args[0]
			}
			return a.withPlace(cmd.Context(), false, func(p *place) error {
				return a.log(cmd.Context(), p, limit, all)
			})
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 30, "at most this many checkpoints (0: all)")
	cmd.Flags().BoolVar(&all, "all", false, "show also those that say nothing new")
	return cmd
}

// logEntry is a checkpoint as the log shows it.
type logEntry struct {
	rec     *checkpoint.Record
	pins    []string
	gone    bool // left behind by a rewind
	goneAt  time.Time
	current bool   // where the workspace came from last
	missing uint64 // checkpoints right before it that are no longer kept
}

// quiet reports whether an entry says nothing that its neighbours do not say.
func (e *logEntry) quiet() bool {
	switch {
	case len(e.pins) > 0 || e.rec.Parent == "":
		return false
	case e.rec.Kind == checkpoint.Rewound:
		return true
	}
	return e.rec.FilesChanged == 0 && (e.rec.Kind == checkpoint.Safety || e.rec.Side == checkpoint.Before)
}

// history reads the checkpoints of the workspace, oldest first, and finds out
// which of them rewinds left behind.
func (p *place) history(ctx context.Context) ([]*logEntry, error) {
	var entries []*logEntry
	for rec, err := range p.space.List(ctx, nil) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, &logEntry{rec: rec})
	}
	slices.Reverse(entries)
	moves := make(map[string]*checkpoint.Operation) // by the checkpoint after
	for op, err := range p.service.Operations(ctx) {
		if err != nil {
			return nil, err
		}
		if op.Workspace == p.space.ID() && op.After != "" {
			moves[op.After] = op
		}
	}
	pins, err := p.pins(ctx)
	if err != nil {
		return nil, err
	}
	line := timeline{before: make(map[string]string)}
	var last checkpoint.Record
	for i, e := range entries {
		e.pins = pins[e.rec.ID]
		if e.rec.Parent != last.ID {
			e.missing = e.rec.Number - last.Number - 1
		}
		last = *e.rec
		line.step(entries[:i], e, moves[e.rec.ID])
	}
	for _, e := range entries {
		e.current = e.rec.ID == line.tip
	}
	return entries, nil
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

// timeline follows the workspace through its checkpoints, forwards and back.
type timeline struct {
	tip    string            // the checkpoint that the workspace continues
	before map[string]string // which one each continued
}

// step moves on to a checkpoint that op made, if op is not nil.
func (t *timeline) step(earlier []*logEntry, e *logEntry, op *checkpoint.Operation) {
	rec := e.rec
	t.before[rec.ID] = t.tip
	switch {
	case rec.Kind == checkpoint.Safety:
		return
	case op == nil || op.Target == "" || rec.Kind != checkpoint.Rewound:
		t.tip = rec.ID
		return
	}
	_, known := t.before[op.Target] // else it is no longer kept
	t.before[rec.ID] = op.Target
	t.tip = op.Target
	line := t.line(op.Target)
	for _, x := range earlier {
		if op.Conversation != "" && x.rec.Conversation != op.Conversation {
			continue // a rewind takes back one conversation's work
		}
		if !known && x.rec.ID < op.Target {
			continue // ids grow: it is older than where the rewind went
		}
		switch gone := !line[x.rec.ID]; {
		case !gone:
			x.gone = false
		case !x.gone:
			x.gone, x.goneAt = true, rec.Time
		}
	}
}

// line returns a checkpoint and all that it continues.
func (t *timeline) line(id string) map[string]bool {
	on := make(map[string]bool)
	for ; id != "" && !on[id]; id = t.before[id] {
		on[id] = true
	}
	return on
}

type logJSON struct {
	Schema string `json:"schema"`
	*checkpoint.RecordJSON
	Kind      string   `json:"kind"`
	Pins      []string `json:"pins,omitempty"`
	Rewound   bool     `json:"rewound"`
	RewoundAt string   `json:"rewound_at,omitempty"`
	Parent    string   `json:"parent,omitempty"`
	Current   bool     `json:"current"`
	Forgotten uint64   `json:"forgotten,omitempty"`
}

var kindNames = map[checkpoint.Kind]string{
	checkpoint.Manual: "manual", checkpoint.Auto: "auto", checkpoint.Safety: "safety",
	checkpoint.Rewound: "rewind", checkpoint.Import: "import",
}

func (e *logEntry) json() logJSON {
	return logJSON{
		Schema: "stet.log.v1", RecordJSON: e.rec.JSON(), Kind: kindNames[e.rec.Kind], Pins: e.pins,
		Rewound: e.gone, RewoundAt: stamp(e.goneAt), Parent: e.rec.Parent, Current: e.current, Forgotten: e.missing,
	}
}

// visible chooses what the log shows, newest first.
func visible(entries []*logEntry, conversation string, all bool) []*logEntry {
	var out []*logEntry
	for _, e := range slices.Backward(entries) {
		if conversation != "" && e.rec.Conversation != conversation || e.quiet() && !all {
			if len(out) > 0 {
				out[len(out)-1].missing += e.missing
			}
			continue
		}
		out = append(out, e)
	}
	return out
}

func (a *app) log(ctx context.Context, p *place, limit int, all bool) error {
	conv, err := a.named(ctx, p.db)
	if err != nil {
		return err
	}
	entries, err := p.history(ctx)
	if err != nil {
		return err
	}
	if a.json {
		for _, e := range visible(entries, conv, true) {
			if err := a.printJSON(e.json()); err != nil {
				return err
			}
		}
		return nil
	}
	shown, more := visible(entries, conv, all), 0
	if limit > 0 && len(shown) > limit {
		shown, more = shown[:limit], len(shown)-limit
	}
	if len(shown) == 0 {
		if conv != "" {
			return a.logSaves(ctx, p, conv)
		}
		a.say("no checkpoints in %s yet; 'stet checkpoint' makes one", tilde(p.space.Path()))
		return a.tellMoved(ctx, p)
	}
	if err := a.printLog(ctx, p, shown); err != nil {
		return err
	}
	if more > 0 {
		a.say("and %d more; -n 0 shows all", more)
	}
	return nil
}
