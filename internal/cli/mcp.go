package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/agenttools"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign/agents"
	"github.com/stet-dev/stet/sqlite"
)

// sessionVariables are set by agents for the programs that they start.
var sessionVariables = []string{"CLAUDE_CODE_SESSION_ID", "GEMINI_SESSION_ID", "CODEX_SESSION_ID"}

// sessionVariableOf is the one that an agent sets for the servers that it starts. An agent
// that another one started inherits that of the other.
var sessionVariableOf = map[string]string{
	"claude-code": "CLAUDE_CODE_SESSION_ID", "gemini": "GEMINI_SESSION_ID", "codex": "CODEX_SESSION_ID",
}

// directoryVariables name the directory that the agent works in, where that is not the
// one in which it starts programs. Other agents set Claude's, too.
var directoryVariables = []string{"GEMINI_CWD", "CLAUDE_PROJECT_DIR"}

func (a *app) mcpCommand() *cobra.Command {
	var session, agent string
	cmd := &cobra.Command{
		Use:     "mcp",
		Short:   "Serve an agent its own history, and let it take back its own work",
		GroupID: groupServe,
		Long: `Serve tools to a coding agent over the Model Context Protocol, on the standard input
and output: history, search, show, diff, checkpoint, rewind_preview, rewind, undo. The
agent starts this server; 'stet connect --mcp' registers it, and docs/agents/MCP.md
explains how to add it by hand.

A rewind needs the token of a preview and does exactly what the preview listed. By
default it takes back only what the calling session changed; your files and those of
other sessions stay. The state before the rewind is saved, and 'stet undo' reverts the
rewind, too.

The workspace is the one that -C, GEMINI_CWD or CLAUDE_PROJECT_DIR names, or that of the
current directory. The session is the one that --session names, or the one whose turn the
agent that started the server is working on, or the one that CLAUDE_CODE_SESSION_ID,
GEMINI_SESSION_ID or CODEX_SESSION_ID names. --agent names the agent that starts the
server, so that only its own variable is used. The server ends when the input ends.`,
		Example: "  stet connect --mcp\n  claude mcp add --scope user stet -- stet mcp\n  stet mcp -C ~/src/shop --session 7c1f",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.serveTools(cmd.Context(), session, agent) },
	}
	cmd.Flags().StringVar(&agent, "agent", "", "agent that starts the server, such as claude-code")
	_ = cmd.RegisterFlagCompletionFunc("agent", cobra.FixedCompletions(agents.Names(), cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&session, "session", "", "session that uses the tools (id or unique prefix)")
	_ = cmd.RegisterFlagCompletionFunc("session", a.completeConversationFlag) // fails for unknown flags only
	return cmd
}

// serveTools serves until the input ends. Only the protocol is written to the output, and
// nobody can be asked for a passphrase.
func (a *app) serveTools(ctx context.Context, session, agent string) error {
	variables := sessionVariables
	if agent != "" {
		if _, err := agents.Find(agent); err != nil {
			return usage(err)
		}
		variables = []string{sessionVariableOf[agent]}
	}
	in, out := a.in, a.out
	a.in, a.out, a.quiet = strings.NewReader(""), io.Discard, true
	opts := &agenttools.Options{
		Session: cmp.Or(session, a.conversation), Started: firstVariable(variables), Version: version(),
		Explain: a.explainTool, Log: a.warn,
	}
	opts.Agent, _ = checkpoint.ProcessOf(agentPID(), "")
	err := agenttools.New(a.withTools, opts).Serve(ctx, in, out)
	if ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

func firstVariable(names []string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// withTools opens the store and the workspace for one call of a tool.
func (a *app) withTools(ctx context.Context, create bool, use func(*agenttools.Place) error) error {
	return a.withStore(ctx, create, func(db *stet.DB) error {
		dir, err := a.toolsDir(ctx, db)
		if err != nil {
			return err
		}
		p, err := a.openPlaceAt(ctx, db, dir)
		if err != nil {
			return err
		}
		return errors.Join(use(&agenttools.Place{DB: db, Checkpoints: p.service, Space: p.space}), p.space.Close())
	})
}

// toolsDir is the workspace of -C, or the one in which hooks record the agent's work.
func (a *app) toolsDir(ctx context.Context, db *stet.DB) (string, error) {
	if a.workspace != "" {
		return a.workspaceDir()
	}
	dir := cmp.Or(firstVariable(directoryVariables), ".")
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if errors.Is(err, os.ErrNotExist) {
		return "", coded(ExitNotFound, "the directory that the agent works in is gone: %s", dir)
	}
	if err != nil {
		return "", err
	}
	return a.workspaceAbove(ctx, db, abs)
}

// explainTool adds hints for an agent.
func (a *app) explainTool(err error) error {
	if errors.Is(err, sqlite.ErrNoStore) {
		return fmt.Errorf("nothing is recorded yet: no store at %s; the tool `checkpoint` creates one, and so does the first turn after 'stet connect'", shown(a.storePlace()))
	}
	return a.explain(err)
}
