package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/cursor"
)

type lsFlags struct {
	here   bool
	agents bool
	agent  string
	limit  int
}

func (a *app) lsCommand() *cobra.Command {
	var flags lsFlags
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List conversations, last changed first",
		GroupID: groupLook,
		Long: `List the conversations of the store, last changed first: id, time of the
last change, turns, agent, workspace and title. Ids are shortened to unique prefixes;
any unique prefix is accepted wherever a conversation is expected.
Unreadable ones are listed after the others, with exit code 6.
--store may name a state.vscdb or store.db, which is read directly.

--agents lists cloud agents instead: id, time of the last change, status, number of
events and name, and for a copy ('stet follow') the server where the agent runs.`,
		Example: "  stet ls\n  stet ls --here -n 10\n  stet ls --json | jq -r 'select(.turns > 20) | .id'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			done, err := a.withForeign(ctx, func(src *cursor.Store) error { return a.lsForeign(ctx, src, flags) })
			if done {
				return err
			}
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				if flags.agents {
					return a.lsAgents(ctx, db, flags.limit)
				}
				return a.listConversations(cmd.Context(), db, flags)
			})
		},
	}
	cmd.Flags().BoolVar(&flags.here, "here", false, "only conversations of this workspace (see -C)")
	cmd.Flags().BoolVar(&flags.agents, "agents", false, "list cloud agents, also copies")
	cmd.Flags().StringVar(&flags.agent, "agent", "", "only conversations of this agent")
	cmd.Flags().IntVarP(&flags.limit, "limit", "n", 0, "at most this many (0: all)")
	return cmd
}

func (a *app) listConversations(ctx context.Context, db *stet.DB, flags lsFlags) error {
	opts := &conversation.ListOptions{Agent: flags.agent, Limit: 500}
	if flags.here {
		dir, err := a.workspaceDir()
		if err != nil {
			return err
		}
		opts.Match = func(info conversation.Info) bool { return info.Workspace == dir }
	}
	infos, damaged, err := conversations(ctx, db, opts, flags.limit)
	if err != nil {
		return err
	}
	if err := a.printConversations(ctx, db, infos, len(damaged)); err != nil {
		return err
	}
	return unreadable(damaged)
}

func (a *app) printConversations(ctx context.Context, db *stet.DB, infos []conversation.Info, damaged int) error {
	if a.json {
		for _, info := range infos {
			if err := a.printJSON(infoJSON(info)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(infos) == 0 {
		if damaged == 0 {
			a.say("no conversations yet")
		}
		return nil
	}
	table, err := a.conversationTable(ctx, db, infos)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.out, table)
	return err
}

// conversations reads all pages of a list, or the first few entries, and the damaged
// ones.
func conversations(ctx context.Context, db *stet.DB, opts *conversation.ListOptions, limit int) ([]conversation.Info, []conversation.Unreadable, error) {
	var infos []conversation.Info
	var damaged []conversation.Unreadable
	for {
		page, err := db.Conversations().List(ctx, opts)
		if err != nil {
			return nil, nil, err
		}
		infos, damaged = append(infos, page.Conversations...), append(damaged, page.Damaged...)
		if limit > 0 && len(infos) >= limit {
			return infos[:limit], damaged, nil
		}
		if page.Next == "" {
			return infos, damaged, nil
		}
		opts.Cursor = page.Next
	}
}

type conversationJSON struct {
	Schema     string            `json:"schema"`
	ID         string            `json:"id"`
	Title      string            `json:"title"`
	Agent      string            `json:"agent"`
	Workspace  string            `json:"workspace"`
	Turns      uint64            `json:"turns"`
	CreatedAt  string            `json:"created_at,omitempty"`
	UpdatedAt  string            `json:"updated_at"`
	Save       uint64            `json:"save"`
	Root       string            `json:"root,omitempty"`
	ForkedFrom string            `json:"forked_from,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
}

func infoJSON(info conversation.Info) conversationJSON {
	out := conversationJSON{
		Schema: "stet.conversation.v1", ID: info.ID, Title: info.Title, Agent: info.Agent, Workspace: info.Workspace,
		Turns: info.Turns, CreatedAt: stamp(info.Created), UpdatedAt: stamp(info.Updated), Save: info.Save,
		ForkedFrom: info.ForkedFrom, Labels: info.Labels,
	}
	if !info.Root.IsZero() {
		out.Root = info.Root.String()
	}
	return out
}

// conversationTable prints ids as short as the other verbs take them: what tells apart
// the listed ones may fit one that is not listed.
func (a *app) conversationTable(ctx context.Context, db *stet.DB, infos []conversation.Info) (string, error) {
	p, now := a.paint(), time.Now()
	ids := make([]string, len(infos))
	for i, info := range infos {
		ids[i] = info.ID
	}
	short, err := db.Conversations().ShortIDs(ctx, ids...)
	if err != nil {
		return "", err
	}
	var rows [][]string
	for _, info := range infos {
		rows = append(rows, []string{
			short[info.ID], when(info.Updated, now), plural(int64(info.Turns), "turn"),
			clip(info.Agent, 16), clip(tilde(info.Workspace), 40), info.Title,
		})
	}
	widths := columnWidths(rows, 5)
	var text strings.Builder
	for _, row := range rows {
		left := a.width()
		for i, width := range widths {
			cell := pad(row[i], width)
			left -= width + 2
			switch i {
			case 0:
				cell = p.yellow(cell)
			case 2:
				cell = padLeft(row[i], width)
			case 1, 3, 4:
				cell = p.dim(cell)
			}
			text.WriteString(cell + "  ")
		}
		text.WriteString(clip(row[5], max(left, 20)) + "\n")
	}
	return text.String(), nil
}

// columnWidths measures the first n columns of a table.
func columnWidths(rows [][]string, n int) []int {
	widths := make([]int, n)
	for _, row := range rows {
		for i := range widths {
			widths[i] = max(widths[i], columns(row[i]))
		}
	}
	return widths
}

// workspaceDir returns the workspace of -C, or the current directory, without
// symbolic links.
func (a *app) workspaceDir() (string, error) {
	dir := a.workspace
	if dir == "" {
		dir = "."
	}
	abs, err := filepath.Abs(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", coded(ExitNotFound, "the current directory is gone; change to another one, or name the workspace with -C")
	}
	if err != nil {
		return "", err
	}
	full, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return "", coded(ExitNotFound, "no such directory: %s", abs)
	}
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(full); err == nil && !info.IsDir() {
		return "", usage(fmt.Errorf("%s is not a directory", abs))
	}
	return full, nil
}
