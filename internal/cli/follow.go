package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/cloudagent"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

type followFlags struct {
	from string
	once bool
}

func (a *app) followCommand() *cobra.Command {
	var flags followFlags
	cmd := &cobra.Command{
		Use:     "follow AGENT",
		Short:   "Keep a copy of an agent that runs on a server",
		GroupID: groupMove,
		Long: `Follow an agent of a server and keep a copy of it in this store: its events, its
states with their blobs, its status, and the place up to which it was followed. Events are
printed when they are stored.

--from is the http(s) address of the server (with STET_TOKEN_FILE or STET_TOKEN); a read
token is enough. Omit --from to continue a copy. After an interruption, even by kill -9,
run the command again: it continues where it stopped, and every event is copied once. It
ends when the agent has ended; --once copies the existing events and does not wait for more.

'stet ls --agents', 'stet tail' and the page of 'stet serve' show the copy like any other
agent, without the server. Only its server can change the copy. The agent's conversation
is not copied: use 'stet pull'. 'stet rm' removes a copy.`,
		Example: "  stet follow a1 --from https://stet.example\n  stet follow a1\n  stet follow a1 --once --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if isRemote(a.storePlace()) {
				return usage(errors.New("the copy is stored on this machine; name the server with --from, not --store"))
			}
			return a.withStore(cmd.Context(), true, func(db *stet.DB) error {
				return a.follow(cmd.Context(), db, args[0], flags)
			})
		},
	}
	cmd.Flags().StringVar(&flags.from, "from", "", "address of the server")
	cmd.Flags().BoolVar(&flags.once, "once", false, "copy existing events and exit")
	return cmd
}

func (a *app) follow(ctx context.Context, db *stet.DB, name string, flags followFlags) error {
	address := strings.TrimSuffix(flags.from, "/")
	if address == "" {
		copied, err := findAgent(ctx, db, name)
		if err != nil {
			return err
		}
		if name, address = copied.ID, copied.Origin.Address; address == "" {
			return usage(fmt.Errorf("agent %s runs in this store; 'stet tail' follows it", printable(name)))
		}
	}
	if !isRemote(address) {
		return usage(fmt.Errorf("--from: %q is not an http or https address", address))
	}
	c, err := a.dialRemote(ctx, address)
	if err != nil {
		return err
	}
	defer c.Close()
	agent, err := c.Agents().Get(ctx, name)
	if err != nil {
		return err
	}
	return a.copyAgent(ctx, db, c, agent, flags.once)
}

// copyAgent prints events as they are stored. With once it ends where the agent's log
// ends now.
func (a *app) copyAgent(ctx context.Context, db *stet.DB, c *client.Client, agent *stetv1.Agent, once bool) error {
	head, err := cloudagent.ParseOffset(agent.GetOffsetKey())
	if err != nil && once {
		return err
	}
	if here, err := db.Agents().Get(ctx, agent.GetId()); once && err == nil && here.Origin.Offset == agent.GetOffsetKey() {
		return nil
	}
	for e, err := range c.Agents().Copy(ctx, agent.GetId(), db.Agents(), nil) {
		if err != nil {
			return err
		}
		if err := a.printEvent("stet.follow.v1", e); err != nil {
			return err
		}
		if n := len(e.Missing); n > 0 {
			a.warn("%s cannot provide %s of the state %s", printable(agent.GetId()), plural(int64(n), "blob"), e.StateID.Short())
		}
		if at, err := cloudagent.ParseOffset(e.Offset); once && err == nil && at.Seq >= head.Seq {
			return nil
		}
	}
	return nil
}

// findAgent finds an agent by its id, the beginning of it, or its name.
func findAgent(ctx context.Context, db *stet.DB, name string) (cloudagent.Agent, error) {
	agent, err := db.Agents().Find(ctx, name)
	var several *cloudagent.AmbiguousError
	switch {
	case errors.As(err, &several):
		err = usage(fmt.Errorf("agent %w", several))
	case errors.Is(err, cloudagent.ErrNotFound):
		err = coded(ExitNotFound, "no agent %s in this store; name its server with --from", printable(name))
	}
	return agent, err
}
