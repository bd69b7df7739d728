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
	"github.com/stet-dev/stet/cloudagent"
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
	all    bool
	latest bool // limit was not given
}

// latestListed is how many conversations people see without asking for more.
const latestListed = 100

func (a *app) lsCommand() *cobra.Command {
	var flags lsFlags
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List conversations, last changed first",
		GroupID: groupLook,
		Long: `List the conversations of the store, last changed first: id, time of the last change,
turns, agent, model of the last turn, workspace and title. -l adds the tokens and the
cost of the turns, if the agent recorded them. The latest 100 are listed; -n changes the
number, and --json lists all. Ids are shortened to unique prefixes; any unique prefix is
accepted wherever a conversation is expected. A narrow terminal shows fewer columns.
Conversations of subagents are only counted, beside the one that started them; --all
lists them below it. Unreadable conversations are listed after the others, and the exit
code is then 6. --store may name a state.vscdb or store.db, which is read directly.

--agents lists cloud agents instead: id, time of the last change, status, number of
events and name, and, for a copy ('stet follow'), the server where the agent runs.`,
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
				if !cmd.Flags().Changed("limit") && !a.json {
					flags.limit, flags.latest = latestListed, true
				}
				return a.listConversations(cmd.Context(), db, flags)
			})
		},
	}
	cmd.Flags().BoolVar(&flags.here, "here", false, "list only conversations of this workspace (see -C)")
	cmd.Flags().BoolVar(&flags.agents, "agents", false, "list cloud agents, including copies")
	cmd.Flags().StringVar(&flags.agent, "agent", "", "list only conversations of this agent")
	countFlag(cmd.Flags(), &flags.limit, "limit", "n", 0, "list at most this many; 0 lists all (default 100, with --json all)")
	cmd.Flags().BoolVar(&flags.all, "all", false, "also show the conversations of subagents, below those that started them")
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
		opts.Workspace = dir
	}
	if flags.limit > 0 {
		opts.Limit = min(opts.Limit, flags.limit+1)
	}
	families, more, damaged, err := families(ctx, db, opts, flags.limit)
	if err != nil {
		return err
	}
	if len(families) == 0 && len(damaged) == 0 && (opts.Workspace != "" || opts.Agent != "") {
		a.say("%s", noneOf(opts))
		return nil
	}
	if more && flags.latest {
		defer a.say("showing the latest %d; 'stet ls -n 0' lists all", flags.limit)
	}
	if err := a.printConversations(ctx, db, lsRows(families, flags.all, 0), len(damaged), flags.long); err != nil {
		return err
	}
	return unreadable(damaged)
}

// noneOf says that no conversation fits.
func noneOf(opts *conversation.ListOptions) string {
	text := "no conversation"
	if opts.Agent != "" {
		text += fmt.Sprintf(" of agent %q", opts.Agent)
	}
	if opts.Workspace != "" {
		text += " in " + opts.Workspace
	}
	return text + "; 'stet ls' lists all"
}

// lsRow is a conversation of the list.
type lsRow struct {
	conversation.Info
	depth     int // below the conversation that started it
	subagents int // that are not listed
	spent     timeline.Spent
}

// lsRows lists families, with all subagents or only their number.
func lsRows(families []*timeline.Family, all bool, depth int) []lsRow {
	var rows []lsRow
	for _, f := range families {
		row := lsRow{Info: f.Info, depth: depth}
		if !all {
			row.subagents = f.Count()
		}
		rows = append(rows, row)
		if all {
			rows = append(rows, lsRows(f.Subagents, all, depth+1)...)
		}
	}
	return rows
}

// families reads all pages of a list, or the first few families and whether there are
// more, and the damaged ones. Where the list is not read to its end, a subagent whose
// parent comes later is left out.
func families(ctx context.Context, db *stet.DB, opts *conversation.ListOptions, limit int) ([]*timeline.Family, bool, []conversation.Unreadable, error) {
	var infos []conversation.Info
	var damaged []conversation.Unreadable
	for {
		page, err := db.Conversations().List(ctx, opts)
		if err != nil {
			return nil, false, nil, err
		}
		infos, damaged = append(infos, page.Conversations...), append(damaged, page.Damaged...)
		opts.Cursor = page.Next
		if page.Next != "" && (limit == 0 || len(infos) <= limit) {
			continue
		}
		found := timeline.Families(infos)
		if page.Next != "" {
			found = slices.DeleteFunc(found, func(f *timeline.Family) bool {
				parent := f.SubagentOf()
				if parent == "" {
					return false
				}
				there, err := db.Conversations().Exists(ctx, parent)
				return err == nil && there
			})
		}
		switch {
		case limit > 0 && len(found) > limit:
			return found[:limit], true, damaged, nil
		case page.Next == "":
			return found, false, damaged, nil
		}
	}
}

func (a *app) printConversations(ctx context.Context, db *stet.DB, rows []lsRow, damaged int, long bool) error {
	if len(rows) == 0 {
		if damaged > 0 {
			return nil
		}
		agents, err := db.Agents().List(ctx, cloudagent.Page{Limit: 1})
		if err == nil && len(agents.Agents)+len(agents.Damaged) > 0 {
			a.say("no conversations; 'stet ls --agents' lists the cloud agents")
			return nil
		}
		a.say("no conversations yet")
		return err
	}
	if err := spentBy(ctx, db, rows, long); err != nil {
		return err
	}
	if a.json {
		for _, row := range rows {
			value := infoJSON(row.Info)
			value.Subagents, value.spentJSON = row.subagents, newSpentJSON(row.spent)
			if err := a.printJSON(value); err != nil {
				return err
			}
		}
		return nil
	}
	table, err := a.conversationTable(ctx, db, rows)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.out, table)
	return err
}

// spentBy adds what conversations took in all, or only the model of their last turns,
// which is known without reading their histories.
func spentBy(ctx context.Context, db *stet.DB, rows []lsRow, all bool) error {
	reader := timeline.New(db.Checkpoints(), db.Conversations())
	for i := range rows {
		row := &rows[i]
		if !all {
			row.spent.Model = timeline.SpentOf(row.Turn).Model
			continue
		}
		var err error
		if row.spent, err = reader.Spent(ctx, row.ID); err != nil {
			return err
		}
	}
	return nil
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
	SubagentOf string            `json:"subagent_of,omitempty"`
	Subagents  int               `json:"subagents,omitempty"`
	spentJSON
}

func infoJSON(info conversation.Info) conversationJSON {
	out := conversationJSON{
		Schema: "stet.conversation.v1", ID: info.ID, Title: info.Title, Agent: info.Agent, Workspace: info.Workspace,
		Turns: info.Turns, CreatedAt: stamp(info.Created), UpdatedAt: stamp(info.Updated), Save: info.Save,
		ForkedFrom: info.ForkedFrom, Labels: info.Labels, SubagentOf: info.SubagentOf(), spentJSON: spentJSON{Model: timeline.SpentOf(info.Turn).Model},
	}
	if !info.Root.IsZero() {
		out.Root = info.Root.String()
	}
	return out
}

// conversationTable prints ids as short as the other verbs take them: what tells apart
// the listed ones may fit one that is not listed.
func (a *app) conversationTable(ctx context.Context, db *stet.DB, list []lsRow) (string, error) {
	now := time.Now()
	ids := make([]string, len(list))
	for i, row := range list {
		ids[i] = row.ID
	}
	short, err := db.Conversations().ShortIDs(ctx, ids...)
	if err != nil {
		return "", err
	}
	var rows [][]string
	for _, row := range list {
		rows = append(rows, []string{
			printable(short[row.ID]), when(row.Updated, now), plural(int64(row.Turns), "turn"),
			clip(row.Agent, 16), modelText(row.spent.Model), timeline.TokenText(row.spent.Tokens()), timeline.CostText(row.spent.CostUSD),
			cutFront(printable(tilde(row.Workspace)), 40),
		})
	}
	widths := fitColumns(columnWidths(rows, 8), a.room()-20, []int{7, 4, 3, 1}, 14)
	var text strings.Builder
	for n, row := range rows {
		left := a.room()
		for i, width := range widths {
			if width == 0 {
				continue
			}
			left -= width + 2
			text.WriteString(a.lsCell(i, row[i], width) + "  ")
		}
		text.WriteString(lsTitle(list[n], max(left, 10)) + "\n")
	}
	return text.String(), nil
}

// lsTitle is the title of a conversation, behind its depth and before the number of its
// subagents.
func lsTitle(row lsRow, width int) string {
	front, behind := "", ""
	if row.depth > 0 {
		front = strings.Repeat("  ", row.depth-1) + "└ "
	}
	if row.subagents > 0 {
		behind = " (+" + plural(int64(row.subagents), "subagent") + ")"
	}
	return front + clip(titleOf(row.Info), max(8, width-columns(front)-columns(behind))) + behind
}

// titleOf is the title of a conversation for people.
func titleOf(info conversation.Info) string {
	if info.Title == "" && info.SubagentOf() != "" {
		return "(subagent)"
	}
	return info.Title
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
