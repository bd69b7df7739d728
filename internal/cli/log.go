package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/timeline"
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
  P  a pinned checkpoint
  x  a checkpoint that a rewind left on a branch of its own; it is kept, and you
     can rewind to it as to any other

Below the newest checkpoint of a turn, the log shows the model, tokens, cost and time that
the agent recorded for the turn.

Each turn has one line, with the total of its changes. Checkpoints made during a turn are
left out, and so are those without changes, such as most of those before a turn; --all
shows them. With CONVERSATION, only its checkpoints are shown, including those that were
imported for a directory that is not on this machine.`,
		Example:           "  stet log\n  stet log 01JCX4 -n 100\n  stet log --json | jq -r .id",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeConversations,
		RunE: a.paged(func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.conversation = args[0]
			}
			return a.withView(cmd.Context(), func(p *place) error {
				return a.log(cmd.Context(), p, limit, all)
			})
		}),
	}
	countFlag(cmd.Flags(), &limit, "limit", "n", 30, "show at most this many checkpoints (0: all)")
	cmd.Flags().BoolVar(&all, "all", false, "include checkpoints without changes and those during a turn")
	a.noPagerFlag(cmd)
	return cmd
}

// timeline returns the reader of histories.
func (p *place) timeline() *timeline.Reader { return timeline.New(p.service, p.db.Conversations()) }

// history reads the checkpoints of the workspace, or those of a conversation in it. If a
// conversation has none here, its imported ones of another directory are read.
func (p *place) history(ctx context.Context, conversation string) (*timeline.History, error) {
	here, err := p.timeline().Read(ctx, timeline.Scope{Workspace: p.space.ID(), Conversation: conversation})
	if err != nil || conversation == "" || len(here.Entries)+len(here.Damaged) > 0 {
		return here, err
	}
	all, err := p.timeline().Read(ctx, timeline.Scope{Conversation: conversation})
	if err != nil || len(all.Entries) == 0 || !p.ofImported(records(all)...) {
		return here, err
	}
	return all, nil
}

func records(h *timeline.History) []*checkpoint.Record {
	var out []*checkpoint.Record
	for _, e := range h.Entries {
		out = append(out, e.Record)
	}
	return out
}

type logJSON struct {
	Schema string `json:"schema"`
	*checkpoint.RecordJSON
	Kind      string   `json:"kind"`
	Pins      []string `json:"pins,omitempty"`
	Rewound   bool     `json:"rewound"`
	RewoundAt string   `json:"rewound_at,omitempty"`
	Parent    string   `json:"parent,omitempty"`
	Continues string   `json:"continues,omitempty"`
	Branch    int      `json:"branch,omitempty"`
	Current   bool     `json:"current"`
	Forgotten uint64   `json:"forgotten,omitempty"`
	// Whole is the whole turn, at its newest checkpoint.
	Whole *turnJSON `json:"whole_turn,omitempty"`
}

type turnJSON struct {
	Files         uint64 `json:"files"`
	Added         uint64 `json:"added"`
	Removed       uint64 `json:"removed"`
	Partial       bool   `json:"partial,omitempty"`
	Checkpoints   int    `json:"checkpoints"`
	Interrupted   bool   `json:"interrupted,omitempty"`
	Automatic     bool   `json:"automatic,omitempty"`
	ContextTokens uint32 `json:"context_tokens,omitempty"`
	ContextLimit  uint32 `json:"context_limit,omitempty"`
	spentJSON
}

func newTurnJSON(total *timeline.Total, turn *timeline.Turn) *turnJSON {
	return &turnJSON{
		Files: total.Files, Added: total.Added, Removed: total.Removed, Partial: total.Partial, Checkpoints: len(total.Checkpoints),
		Interrupted: turn.Interrupted, Automatic: turn.Automatic, ContextTokens: turn.ContextTokens, ContextLimit: turn.ContextLimit,
		spentJSON: newSpentJSON(turn.Spent),
	}
}

func newLogJSON(e *timeline.Entry) logJSON {
	return logJSON{
		Schema: "stet.log.v1", RecordJSON: e.Record.JSON(), Kind: checkpoint.KindName(e.Record.Kind), Pins: e.Pins,
		Rewound: e.Left, RewoundAt: stamp(e.LeftAt), Parent: e.Record.Parent, Continues: e.Continues, Branch: e.Branch,
		Current: e.Current, Forgotten: e.Forgotten,
	}
}

func (a *app) log(ctx context.Context, p *place, limit int, all bool) error {
	conv, err := a.named(ctx, p.db)
	if err != nil {
		return err
	}
	history, err := p.history(ctx, conv)
	if err != nil {
		return err
	}
	if err := a.showLog(ctx, p, conv, history, limit, all); err != nil {
		return err
	}
	if err := unreadableCheckpoints(history.Damaged); err != nil {
		return err
	}
	var roots []blob.ID
	for _, rec := range records(history) {
		roots = append(roots, rec.Root)
	}
	return lostRoots(ctx, p.db, cmp.Or(conv, tilde(p.space.Path())), roots...)
}

// logLines prints the history as JSON.
func (a *app) logLines(ctx context.Context, history *timeline.History) error {
	for _, e := range history.Entries {
		value := newLogJSON(e)
		if e.Total != nil {
			turn, err := history.Turn(ctx, e)
			if err != nil {
				return err
			}
			value.Whole = newTurnJSON(e.Total, turn)
		}
		if err := a.printJSON(value); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) showLog(ctx context.Context, p *place, conv string, history *timeline.History, limit int, all bool) error {
	if a.json {
		return a.logLines(ctx, history)
	}
	shown, more := history.Entries, 0
	if !all {
		shown = history.Folded()
	}
	if limit > 0 && len(shown) > limit {
		shown, more = shown[:limit], len(shown)-limit
	}
	if len(shown) == 0 {
		if conv != "" {
			return a.logSaves(ctx, p, conv)
		}
		if p.space.Refused() != nil {
			a.say("no checkpoints in %s, which cannot be a workspace; 'stet ls' lists all conversations", tilde(p.space.Path()))
			return nil
		}
		a.say("no checkpoints in %s yet; 'stet checkpoint' creates one", tilde(p.space.Path()))
		return a.tellMoved(ctx, p)
	}
	if err := a.printLog(ctx, p, history, shown); err != nil {
		return err
	}
	if more > 0 {
		a.say("and %d more; -n 0 shows all", more)
	}
	return nil
}
