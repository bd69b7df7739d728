package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/spool"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/workspace"
)

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "init",
		Short:   "Create the store if it does not exist",
		GroupID: groupStart,
		Long: `Create the store if it does not exist, and check whether this directory can be a
workspace. Nothing in the directory is changed. The store is outside of it: one store
serves all your workspaces. Running the command again is harmless.

For an encrypted store, run 'stet keys init' instead.`,
		Example: "  stet init\n  stet run -- make test",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd.Context(), true, func(db *stet.DB) error { return a.initialize(cmd.Context(), db) })
		},
	}
}

func (a *app) initialize(ctx context.Context, db *stet.DB) error {
	value := map[string]any{"schema": "stet.init.v1", "store": shown(a.storePlace()), "encrypted": db.Ring() != nil}
	p, err := a.openPlace(ctx, db)
	var refused *codedError
	switch {
	case err == nil:
		value["workspace"] = p.space.Path()
		err = p.space.Close()
		a.say("ready; to make checkpoints of %s, run 'stet run -- CMD…' or 'stet checkpoint'", tilde(p.space.Path()))
	case errors.Is(err, workspace.ErrRootRefused) || errors.As(err, &refused):
		a.say("ready; this directory cannot be a workspace: %v", err)
		err = nil
	}
	if err != nil {
		return err
	}
	return a.print(value, shown(a.storePlace())+"\n")
}

func (a *app) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show the store, the workspace, and what changed since the last checkpoint",
		GroupID: groupStart,
		Long: `Show which store and workspace are in use, whether capture is on, the last checkpoint
and the changes since, active turns, paths that cannot be captured, and the last
operation. Active turns are commands of 'stet run', including those that continue after
it was killed, and turns that an agent has begun. Agents that are open between turns are
also shown, and so are connected agents that do not run the hooks.`,
		Example: "  stet status\n  stet status --json | jq '.changes[].path'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withView(cmd.Context(), func(p *place) error { return a.status(cmd.Context(), p) })
		},
	}
	a.rereadFlag(cmd)
	return cmd
}

type statusJSON struct {
	Schema       string                 `json:"schema"`
	Store        string                 `json:"store"`
	Encrypted    bool                   `json:"encrypted"`
	Workspace    string                 `json:"workspace"`
	Refused      string                 `json:"refused,omitempty"` // why the directory cannot be a workspace
	Capture      bool                   `json:"capture"`
	Rewind       bool                   `json:"rewind"`
	Last         *checkpoint.RecordJSON `json:"last"`
	Conversation *conversationJSON      `json:"conversation,omitempty"`
	Changes      []changeJSON           `json:"changes"`
	NotCaptured  []workspace.Skipped    `json:"not_captured"`
	NotKept      *workspace.NotKept     `json:"not_kept,omitempty"`
	Ignored      []nameJSON             `json:"ignored_changed,omitempty"`
	Lost         []nameJSON             `json:"repositories_lost,omitempty"`
	Operation    *operationJSON         `json:"operation,omitempty"`
	AtWork       []checkpoint.TurnJSON  `json:"at_work"`
	Idle         []idleJSON             `json:"idle,omitempty"`
	HookFailures []hookFailure          `json:"hook_failures,omitempty"`
	Blocked      []blockedJSON          `json:"agents_blocked,omitempty"`
	Remote       *copiesJSON            `json:"remote,omitempty"`
	ignored      []string
	lost         []string // repositories
	last         *checkpoint.Record
	atWork       checkpoint.Turns
	idle         []spool.OpenSession
}

type changeJSON struct {
	Path      string `json:"path"`
	PathBytes []byte `json:"path_bytes,omitempty"`
	Op        string `json:"op"`
}

func (a *app) status(ctx context.Context, p *place) error {
	if _, err := a.known(ctx, p); err != nil {
		return err
	}
	all, err := a.settings()
	if err != nil {
		return err
	}
	value := statusJSON{
		Schema: "stet.status.v1", Store: shown(a.storePlace()), Encrypted: p.db.Ring() != nil, Workspace: p.space.Path(),
		Capture: all.on("capture.enabled"), Rewind: all.on("rewind.enabled"), Changes: []changeJSON{}, NotCaptured: []workspace.Skipped{},
		HookFailures: a.hookFailures(now().Add(-24 * time.Hour)), Blocked: a.blockedAgents(ctx),
	}
	if value.Remote, err = a.copyStatus(ctx, p.db); err != nil {
		return err
	}
	if value.last, err = p.latest(ctx); err != nil {
		return err
	}
	if refused := p.space.Refused(); refused != nil {
		value.Refused = refused.Error()
	} else if err := p.withLook(ctx, func(l look) error { return value.present(ctx, l) }); err != nil {
		return err
	}
	if value.atWork, err = p.space.AtWork(ctx); err != nil {
		return err
	}
	value.AtWork = value.atWork.JSON()
	value.idle = a.idleAgents(p.space.Path(), value.atWork)
	value.Idle = idleValues(value.idle)
	if value.last != nil {
		value.Last = value.last.JSON()
		changed, err := p.service.IgnoredChanges(ctx, value.last)
		if err != nil {
			return err
		}
		value.ignored, value.lost = splitLost(changed)
		value.Ignored, value.Lost = namesJSON(value.ignored), namesJSON(value.lost)
		if err := value.named(ctx, p); err != nil {
			return err
		}
	}
	for op, err := range p.service.Operations(ctx) {
		if err != nil {
			return err
		}
		if op.Workspace == p.space.ID() {
			last := newOperationJSON(op)
			value.Operation = &last
			break
		}
	}
	if value.last == nil {
		if err := a.tellMoved(ctx, p); err != nil {
			return err
		}
	}
	return a.print(value, a.statusText(value))
}

// present adds what changed since the last checkpoint, and what is not captured.
func (v *statusJSON) present(ctx context.Context, l look) error {
	now, err := l.space.Outline(ctx)
	if err != nil {
		return err
	}
	v.NotCaptured = append([]workspace.Skipped{}, now.NotCaptured...)
	v.NotKept = orNil(&now.NotKept)
	if v.last == nil {
		return nil
	}
	changes, err := workspace.Diff(ctx, l.blobs, v.last.Tree, now.Tree)
	if err != nil {
		return err
	}
	left := make(map[string]bool, len(v.NotCaptured))
	for _, k := range v.NotCaptured {
		left[k.Path] = true
	}
	for _, c := range linediff.Files(changes, nil) {
		if c.After == nil && leftOut(left, c.Path) {
			continue // no longer captured, which is not a change of the file
		}
		v.Changes = append(v.Changes, changeJSON{c.Path, workspace.PathBytes(c.Path), c.Op()})
	}
	return nil
}

// leftOut reports whether a path, or a directory above it, is in a set.
func leftOut(left map[string]bool, path string) bool {
	for !left[path] {
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return false
		}
		path = path[:i]
	}
	return true
}

// named adds the conversation of the last checkpoint.
func (v *statusJSON) named(ctx context.Context, p *place) error {
	if v.last.Conversation == "" {
		return nil
	}
	info, err := p.db.Conversations().Get(ctx, v.last.Conversation)
	if errors.Is(err, conversation.ErrNotFound) {
		return nil
	}
	if err == nil {
		out := infoJSON(info)
		v.Conversation = &out
	}
	return err
}

func (a *app) statusText(v statusJSON) string {
	p := a.paint()
	var text strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&text, "%s  %s\n", p.dim(pad(name, 12)), strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
	sealed := ""
	if v.Encrypted {
		sealed = ", encrypted"
	}
	line("store", "%s%s", tilde(v.Store), sealed)
	line("workspace", "%s", tilde(v.Workspace))
	if v.Refused != "" {
		line("", "%s", p.yellow(printable("cannot be a workspace: "+v.Refused)))
	}
	if v.Remote != nil {
		line("remote", "%s", v.Remote.text())
	}
	if !v.Capture {
		line("capture", "%s", p.red("OFF: no checkpoints are made (capture.enabled)"))
	}
	if !v.Rewind {
		line("rewind", "%s", p.red("OFF (rewind.enabled)"))
	}
	if n := len(v.HookFailures); n > 0 {
		last := v.HookFailures[n-1]
		first, _, _ := strings.Cut(last.Error, "\n")
		line("agents", "%s", p.red(fmt.Sprintf("%s of hooks in the last day; %s, %s: %s", plural(int64(n), "failure"),
			when(last.Time, now()), printable(last.Event), clip(first, 200))))
	}
	for _, b := range v.Blocked {
		line("agents", "%s", p.yellow(printable(b.Agent+" reports nothing: "+b.Why)))
	}
	if v.last == nil {
		if v.Refused == "" {
			line("checkpoints", "none yet; create one with 'stet checkpoint'")
		}
		if secrets := secretsText(v.NotCaptured); secrets != "" {
			line("secrets", "%s", secrets)
		}
		return text.String()
	}
	line("last", "%s  %s  %s", p.yellow(v.last.Name()), when(v.last.Time, now()), describe(v.last))
	if v.Conversation != nil {
		line("conversation", "%s  %q", printable(v.Conversation.ID), clip(v.Conversation.Title, 60))
	}
	for i := range v.atWork {
		line("at work", "%s", a.atWorkText(&v.atWork[i]))
	}
	if len(v.atWork) > 0 {
		line("", "%s", atWorkMeaning(v.atWork))
	}
	for _, o := range v.idle {
		line("open", "%s", idleText(o))
	}
	if op := v.Operation; op != nil {
		line("operation", "%s  %s", op.ID, clip(op.Description, 60))
	}
	if len(v.Changes) == 0 {
		line("changes", "none since %s", v.last.Name())
	} else {
		line("changes", "%s since %s", plural(int64(len(v.Changes)), "file"), v.last.Name())
	}
	const most = 20
	for _, c := range v.Changes[:min(most, len(v.Changes))] {
		mark := map[string]string{"add": p.green("+"), "remove": p.red("-"), "modify": p.cyan("~")}[c.Op]
		fmt.Fprintf(&text, "  %s %s\n", mark, printable(c.Path))
	}
	if more := len(v.Changes) - most; more > 0 {
		fmt.Fprintf(&text, "  and %d more\n", more)
	}
	if len(v.ignored) > 0 {
		line("ignored", "%s", ignoredText(v.ignored))
	}
	if len(v.lost) > 0 {
		line("lost", "%s", p.red(repositoriesText(v.lost)))
	}
	if secrets := secretsText(v.NotCaptured); secrets != "" {
		line("secrets", "%s", secrets)
	}
	if bad := notIgnored(v.NotCaptured); len(bad) > 0 {
		line("not captured", "%s", skippedText(bad, 8))
	}
	if v.NotKept != nil {
		line("not kept", "%s", notKeptText(v.NotKept))
	}
	return text.String()
}

// describe says briefly where a checkpoint was taken.
func describe(rec *checkpoint.Record) string {
	var parts []string
	if place := rec.Place(); place != "" {
		parts = append(parts, place)
	}
	if rec.Label != "" {
		parts = append(parts, fmt.Sprintf("%q", clip(rec.Label, 60)))
	}
	return strings.Join(parts, " ")
}
