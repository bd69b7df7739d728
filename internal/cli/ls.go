package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/timeline"
)

type lsFlags struct {
	here   bool
	agents bool
	agent  string
	limit  int
	long   bool
}

func (a *app) lsCommand() *cobra.Command {
	var flags lsFlags
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List conversations, last changed first",
		GroupID: groupLook,
		Long: `List the conversations of the store, last changed first: id, time of the
last change, turns, agent, model of the last turn, workspace and title; -l adds how
many tokens the turns took and what they cost, where the agent's record says it. Ids are
shortened to unique prefixes; any unique prefix is accepted wherever a conversation is
expected. A narrow terminal shows fewer columns.
Unreadable ones are listed after the others, with exit code 6.
--store may name a state.vscdb or store.db, which is read directly.

--agents lists cloud agents instead: id, time of the last change, status, number of
events and name, and for a copy ('stet follow') the server where the agent runs.`,
		Example: "  stet ls\n  stet ls --here -n 10\n  stet ls -l --json | jq -r 'select(.cost_usd > 1) | .id'",
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
	cmd.Flags().BoolVarP(&flags.long, "long", "l", false, "also show tokens and cost")
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
	if err := a.printConversations(ctx, db, infos, len(damaged), flags.long); err != nil {
		return err
	}
	return unreadable(damaged)
}

func (a *app) printConversations(ctx context.Context, db *stet.DB, infos []conversation.Info, damaged int, long bool) error {
	if len(infos) == 0 {
		if damaged == 0 {
			a.say("no conversations yet")
		}
		return nil
	}
	spent, err := spentBy(ctx, db, infos, long)
	if err != nil {
		return err
	}
	if a.json {
		for i, info := range infos {
			if err := a.printJSON(withSpent(info, spent[i])); err != nil {
				return err
			}
		}
		return nil
	}
	table, err := a.conversationTable(ctx, db, infos, spent)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.out, table)
	return err
}

// spentBy returns what conversations took in all, or only the model of their last turns,
// which is known without reading their histories.
func spentBy(ctx context.Context, db *stet.DB, infos []conversation.Info, all bool) ([]timeline.Spent, error) {
	spent := make([]timeline.Spent, len(infos))
	reader := timeline.New(db.Checkpoints(), db.Conversations())
	for i, info := range infos {
		if last := timeline.SpentOf(info.Turn); !all {
			spent[i].Model = last.Model
			continue
		}
		var err error
		if spent[i], err = reader.Spent(ctx, info.ID); err != nil {
			return nil, err
		}
	}
	return spent, nil
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
	spentJSON
}

func infoJSON(info conversation.Info) conversationJSON {
	out := conversationJSON{
		Schema: "stet.conversation.v1", ID: info.ID, Title: info.Title, Agent: info.Agent, Workspace: info.Workspace,
		Turns: info.Turns, CreatedAt: stamp(info.Created), UpdatedAt: stamp(info.Updated), Save: info.Save,
		ForkedFrom: info.ForkedFrom, Labels: info.Labels, spentJSON: spentJSON{Model: timeline.SpentOf(info.Turn).Model},
	}
	if !info.Root.IsZero() {
		out.Root = info.Root.String()
	}
	return out
}

// withSpent is infoJSON with what the turns took.
func withSpent(info conversation.Info, spent timeline.Spent) conversationJSON {
	out := infoJSON(info)
	out.spentJSON = newSpentJSON(spent)
	return out
}

// conversationTable prints ids as short as the other verbs take them: what tells apart
// the listed ones may fit one that is not listed.
func (a *app) conversationTable(ctx context.Context, db *stet.DB, infos []conversation.Info, spent []timeline.Spent) (string, error) {
	now := time.Now()
	ids := make([]string, len(infos))
	for i, info := range infos {
		ids[i] = info.ID
	}
	short, err := db.Conversations().ShortIDs(ctx, ids...)
	if err != nil {
		return "", err
	}
	var rows [][]string
	for i, info := range infos {
		rows = append(rows, []string{
			short[info.ID], when(info.Updated, now), plural(int64(info.Turns), "turn"),
			clip(info.Agent, 16), modelText(spent[i].Model), timeline.TokenText(spent[i].Tokens()), timeline.CostText(spent[i].CostUSD),
			cutFront(printable(tilde(info.Workspace)), 40), info.Title,
		})
	}
	widths := fitColumns(columnWidths(rows, 8), a.width()-20, []int{7, 4, 3, 1}, 14)
	var text strings.Builder
	for _, row := range rows {
		left := a.width()
		for i, width := range widths {
			if width == 0 {
				continue
			}
			left -= width + 2
			text.WriteString(a.lsCell(i, row[i], width) + "  ")
		}
		text.WriteString(clip(row[8], max(left, 20)) + "\n")
	}
	return text.String(), nil
}

// lsCell is a cell of the table; numbers end at the same column.
func (a *app) lsCell(column int, text string, width int) string {
	p := a.paint()
	switch column {
	case 0:
		return p.yellow(pad(text, width))
	case 2, 5, 6:
		return padLeft(text, width)
	case 7:
		text = cutFront(text, width)
	}
	return p.dim(pad(text, width))
}

// fitColumns makes columns fit into the room that a terminal has: it shortens the first one
// of an order to what is left, if that is at least a number of characters, or else leaves
// out columns in that order.
func fitColumns(widths []int, room int, order []int, least int) []int {
	widths = slices.Clone(widths)
	for _, width := range widths {
		if width > 0 {
			room -= width + 2
		}
	}
	if first := order[0]; room < 0 && widths[first]+room >= least {
		widths[first] += room
		return widths
	}
	for _, i := range order {
		if room >= 0 {
			break
		}
		if widths[i] > 0 {
			room += widths[i] + 2
			widths[i] = 0
		}
	}
	return widths
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
