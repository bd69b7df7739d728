package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/carry"
)

// carryOn prepares the agent's own conversation after a rewind that moved ours. It
// returns nil if no agent is behind the conversation.
func (a *app) carryOn(ctx context.Context, p *place, done *checkpoint.Applied) *foreign.Continuation {
	if done.Operation == nil || done.Plan.Conversation == "" || done.Plan.RootAfter.IsZero() {
		return nil
	}
	host, err := foreign.ThisHost()
	if err != nil {
		return nil
	}
	c, err := carry.Prepare(ctx, p.db.Conversations(), host, done.Plan.Conversation)
	switch {
	case errors.Is(err, carry.ErrNoSession):
		return nil
	case err != nil:
		a.warn("the agent's own conversation was not rewound: %v", err)
		return nil
	}
	return &c
}

type continuationJSON struct {
	Session string   `json:"session,omitempty"`
	Prepare []string `json:"prepare,omitempty"`
	Command []string `json:"command"`
	Env     []string `json:"env,omitempty"`
	Dir     string   `json:"dir"`
}

func newContinuationJSON(c *foreign.Continuation) *continuationJSON {
	if c == nil {
		return nil
	}
	return &continuationJSON{Session: c.Session, Prepare: c.Prepare, Command: c.Command, Env: c.Env, Dir: c.Dir}
}

// commandText is a command as a person types it, behind the one that has to run before.
func commandText(c *foreign.Continuation) string {
	text := foreign.CommandLine(c.Command...)
	for _, variable := range slices.Backward(c.Env) {
		name, value, _ := strings.Cut(variable, "=")
		text = name + "=" + foreign.CommandLine(value) + " " + text
	}
	if len(c.Prepare) > 0 {
		text = foreign.CommandLine(c.Prepare...) + " && " + text
	}
	return printable(text)
}

func (a *app) resumeCommand() *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use:     "resume [REF]",
		Short:   "Continue an agent's own conversation after a rewind",
		GroupID: groupBack,
		Long: `Continue the conversation of a coding agent at the point of the last rewind, or after the
turn of REF. The agent's session is not changed: the conversation continues in a copy that
ends after that turn. Files are not changed, either; 'stet rewind' does that.

stet runs the command that 'stet rewind' names, in this terminal.`,
		Example:           "  stet rewind turn:2 && stet resume\n  stet resume turn:2 --print",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeRefs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var c foreign.Continuation
			err := a.withView(cmd.Context(), func(p *place) (err error) {
				c, err = a.continuation(cmd.Context(), p, args)
				return err
			})
			if err != nil {
				return err
			}
			if show || a.json {
				return a.print(struct {
					Schema string `json:"schema"`
					*continuationJSON
				}{"stet.resume.v1", newContinuationJSON(&c)}, commandText(&c)+"\n")
			}
			return replaceProcess(c)
		},
	}
	cmd.Flags().BoolVar(&show, "print", false, "print the command instead of running it")
	return cmd
}

// continuation returns how the conversation of a checkpoint, or the one that was rewound
// last, continues.
func (a *app) continuation(ctx context.Context, p *place, args []string) (foreign.Continuation, error) {
	host, err := foreign.ThisHost()
	if err != nil {
		return foreign.Continuation{}, err
	}
	conv, err := a.known(ctx, p)
	if err != nil {
		return foreign.Continuation{}, err
	}
	if len(args) > 0 {
		rec, err := p.space.Resolve(ctx, args[0], conv)
		if err != nil {
			return foreign.Continuation{}, err
		}
		if rec == nil {
			return foreign.Continuation{}, usage(fmt.Errorf("%q is the workspace now, which is at no turn; name a turn, or omit it", args[0]))
		}
		if rec.Conversation == "" {
			return foreign.Continuation{}, usage(fmt.Errorf("%s does not belong to a conversation", rec.Name()))
		}
		c, err := carry.AtRoot(ctx, p.db.Conversations(), host, rec.Conversation, rec.Root)
		return c, explainCarry(err)
	}
	if conv == "" {
		last, err := p.latest(ctx)
		if err != nil {
			return foreign.Continuation{}, err
		}
		if last == nil || last.Conversation == "" {
			return foreign.Continuation{}, coded(ExitNotFound, "no conversation has checkpoints here; name a turn, as in 'stet resume turn:2'")
		}
		conv = last.Conversation
	}
	c, err := carry.Prepare(ctx, p.db.Conversations(), host, conv)
	return c, explainCarry(err)
}

func explainCarry(err error) error {
	if errors.Is(err, carry.ErrNoSession) {
		return coded(ExitNotFound, "the conversation was not copied from an agent's session, so no agent can continue it")
	}
	return err
}

// replaceProcess runs a command in the place of this process.
func replaceProcess(c foreign.Continuation) error {
	path, err := exec.LookPath(c.Command[0])
	if err != nil {
		return coded(127, "%w; to continue elsewhere: %s", err, commandText(&c))
	}
	if c.Dir != "" {
		if err := os.Chdir(c.Dir); err != nil {
			return err
		}
	}
	if len(c.Prepare) > 0 {
		before := exec.Command(c.Prepare[0], c.Prepare[1:]...)
		before.Stdout, before.Stderr, before.Env = os.Stderr, os.Stderr, append(os.Environ(), c.Env...)
		if err := before.Run(); err != nil {
			return fmt.Errorf("%s: %w", foreign.CommandLine(c.Prepare...), err)
		}
	}
	return takeOver(path, c.Command, append(os.Environ(), c.Env...))
}
