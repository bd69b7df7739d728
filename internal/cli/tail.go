package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/kv"
)

type tailFlags struct {
	after string
	once  bool
}

func (a *app) tailCommand() *cobra.Command {
	var flags tailFlags
	cmd := &cobra.Command{
		Use:     "tail NAME",
		Short:   "Follow an agent or a conversation",
		GroupID: groupLook,
		Long: `Follow what an agent does, or the saves of a conversation, as it happens. Lost
connections to a server are reopened; every event comes once and in order.

stet follows an agent until it has ended, and a conversation until you stop. --after
continues after an offset that an earlier run printed with --json; for a conversation, the
offset is the number of a save. --once prints the existing events, or the state of an agent
that was imported without events, and does not wait for more.`,
		Example: "  stet tail a1\n  stet tail 01JCX4 --json\n  stet --store http://127.0.0.1:7717 tail a1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				return a.tail(cmd.Context(), db, args[0], flags)
			})
		},
	}
	cmd.Flags().StringVar(&flags.after, "after", "", "continue after this offset")
	cmd.Flags().BoolVar(&flags.once, "once", false, "print existing events and exit")
	return cmd
}

func (a *app) tail(ctx context.Context, db *stet.DB, name string, flags tailFlags) error {
	agent, err := db.Agents().Get(ctx, name)
	if err == nil {
		return a.tailAgent(ctx, db, agent, flags)
	}
	if !errors.Is(err, cloudagent.ErrNotFound) {
		return err
	}
	id, notFound := conversationID(ctx, db, name)
	if notFound == nil {
		return a.tailConversation(ctx, db, id, flags)
	}
	var several *cloudagent.AmbiguousError
	switch agent, err := db.Agents().Find(ctx, name); {
	case err == nil:
		return a.tailAgent(ctx, db, agent, flags)
	case errors.As(err, &several):
		return usage(fmt.Errorf("agent %w", several))
	case !errors.Is(err, cloudagent.ErrNotFound):
		return err
	}
	if absentName(notFound) {
		return nothingNamed(name, aConversation, anAgent)
	}
	return notFound
}

// pulled is a stream of this store as a connection of a follower.
type pulled struct {
	next func() (*aiserverv1.StreamConversationResponse, error, bool)
	stop func()
}

func (p *pulled) Receive(context.Context) (*aiserverv1.StreamConversationResponse, error) {
	m, err, ok := p.next()
	if !ok {
		return nil, io.EOF
	}
	return m, err
}

func (p *pulled) Close() error { p.stop(); return nil }

func (a *app) tailAgent(ctx context.Context, db *stet.DB, agent cloudagent.Agent, flags tailFlags) error {
	head := agent.Head.Seq
	events := cloudagent.Follow(ctx, cloudagent.FollowOptions{
		After: flags.after,
		Dial: func(ctx context.Context, after string) (cloudagent.Receiver, error) {
			next, stop := iter.Pull2(db.Agents().Stream(ctx, agent.ID, &cloudagent.StreamOptions{After: after}))
			return &pulled{next: next, stop: stop}, nil
		},
	})
	if flags.once && head == 0 && flags.after == "" && !agent.State.IsZero() {
		return a.tailImported(ctx, db, agent)
	}
	if flags.once && (head == 0 || flags.after == agent.Head.String()) {
		return nil
	}
	for e, err := range events {
		if errors.Is(err, cloudagent.ErrInvalid) {
			return usage(err)
		}
		if err != nil {
			return err
		}
		if e.Initial && flags.after != "" {
			a.warn("this store has no event at offset %s; starting with the state that it has", printable(flags.after))
		}
		if err := a.printEvent("stet.tail.v1", e); err != nil {
			return err
		}
		if at, err := cloudagent.ParseOffset(e.Offset); flags.once && err == nil && at.Seq >= head {
			return nil
		}
	}
	return nil
}

// tailImported prints the state of an agent: an import brings that, and no events.
func (a *app) tailImported(ctx context.Context, db *stet.DB, agent cloudagent.Agent) error {
	state, damage := db.Agents().State(ctx, agent.ID, agent.State)
	if err := a.printEvent("stet.tail.v1", cloudagent.Event{StateID: agent.State, State: state, Status: agent.Status}); err != nil {
		return err
	}
	return damage
}

func (a *app) printEvent(schema string, e cloudagent.Event) error {
	value := map[string]any{"schema": schema, "offset": e.Offset}
	text := ""
	switch {
	case e.Update != nil:
		raw, err := protojson.Marshal(e.Update)
		if err != nil {
			return err
		}
		value["kind"], value["update"] = "update", json.RawMessage(raw)
		text = e.Update.GetTextDelta().GetText()
		if text == "" {
			text = "\n" + clip(printable(string(raw)), 200) + "\n"
		}
	case !e.StateID.IsZero():
		value["kind"], value["state"] = "state", e.StateID.String()
		text = fmt.Sprintf("\nstate %s\n", e.StateID.Short())
		if failed := e.State.GetUserFacingErrorDetails(); failed != nil {
			value["error"] = map[string]string{"message": failed.GetErrorMessage(), "code": failed.GetErrorCode()}
			text += "error: " + printable(failed.GetErrorMessage())
			if code := failed.GetErrorCode(); code != "" {
				text += " (" + printable(code) + ")"
			}
			text += "\n"
		}
	default:
		value["kind"] = "status"
	}
	if e.Status != 0 {
		status := statusName(e.Status)
		value["status"] = status
		text += fmt.Sprintf("\n-- %s --\n", status)
	}
	return a.print(value, text)
}

// tailPoll is the poll interval, in case a hint is lost.
const tailPoll = 2 * time.Second

func (a *app) tailConversation(ctx context.Context, db *stet.DB, id string, flags tailFlags) error {
	var last uint64
	var roots []blob.ID
	if flags.after != "" {
		if _, err := fmt.Sscan(flags.after, &last); err != nil {
			return usage(fmt.Errorf("--after: %q is not the number of a save", flags.after))
		}
	}
	hints := db.Conversations().Watch(ctx, id)
	for {
		for save, err := range db.Conversations().History(ctx, id, &conversation.HistoryOptions{From: last + 1}) {
			if errors.Is(err, kv.ErrBusy) {
				break
			}
			if err != nil {
				return err
			}
			if err := a.printSave(save); err != nil {
				return err
			}
			last = save.Seq
			if flags.once { // else there is no end of them
				roots = append(roots, save.Root)
			}
		}
		if flags.once {
			return lostRoots(ctx, db, id, roots...)
		}
		select {
		case <-hints:
		case <-time.After(tailPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a *app) printSave(s conversation.Save) error {
	value := map[string]any{
		"schema": "stet.tail.v1", "kind": s.Kind.String(), "offset": fmt.Sprint(s.Seq), "root": s.Root.String(),
		"turns": s.Turns, "time": s.Time.UTC(), "message": s.MessageID, "author": s.Author,
	}
	return a.print(value, fmt.Sprintf("%s  %s %d  %s  root %s  %s\n",
		when(s.Time, now()), s.Kind, s.Seq, plural(int64(s.Turns), "turn"), s.Root.Short(), printable(s.MessageID)))
}
