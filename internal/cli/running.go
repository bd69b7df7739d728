package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/checkpoint"
)

// evenIfRunningFlag adds the flag for going back although an agent is at work.
func evenIfRunningFlag(cmd *cobra.Command, even *bool) {
	cmd.Flags().BoolVar(even, "even-if-running", false, "do not ask, even if an agent or command is at work here")
}

// notUnder asks before files change under an agent or command that is at work in the
// workspace: it may write again at once, and does not know of the change. Without a
// terminal it fails and nothing is changed. -y is no answer to this question.
func (a *app) notUnder(ctx context.Context, open checkpoint.Turns, verb string, even bool) error {
	running := open.Running()
	if even || len(running) == 0 {
		return nil
	}
	var names []string
	for i := range running {
		names = append(names, a.atWorkText(&running[i]))
	}
	who := strings.Join(names, "; ")
	if !isTerminal(a.in) || a.json {
		return coded(ExitBusy, "at work here: %s; it may change the files again, so nothing was changed; wait until it ends, or pass --even-if-running", who)
	}
	fmt.Fprintf(a.err, "At work here: %s\n", who)
	answer, err := a.readLine(ctx, fmt.Sprintf("It may change files again at once. %s anyway? [y/N] ", verb))
	if err != nil {
		return err
	}
	if answer != "y" && answer != "yes" {
		return coded(ExitUsage, "nothing was changed")
	}
	return nil
}
