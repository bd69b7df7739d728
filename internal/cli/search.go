package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/transcript"
)

type searchFlags struct {
	limit   int
	role    string
	since   string
	rebuild bool
	current bool
}

func (a *app) searchCommand() *cobra.Command {
	var flags searchFlags
	cmd := &cobra.Command{
		Use:     "search WORDS…",
		Short:   "Find words in conversations",
		GroupID: groupLook,
		Long: `Find words in your messages, in answers and thoughts of agents, in the input and
output of tools, and in paths and titles. The best hits come first. All words must occur;
the last one may be the beginning of a word. Quotes make a phrase; path:, tool: and role:
narrow the search. -c searches one conversation.

Rewound messages are also found, and marked with their save; --current skips them.

stet updates the index first. It reads only what changed; the first time, it reads
everything, newest first. If the update is interrupted, the next search continues it. A
server, and commands that store a lot of content, update the index in the background. The
index of an encrypted store is in memory only, so no plain text reaches the disk.`,
		Example: "  stet search retry timeout\n  stet search '\"exit code\" tool:shell path:checkout'\n  stet -c 01JCX4 search queue --json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				return a.search(cmd.Context(), db, strings.Join(args, " "), flags)
			})
		},
	}
	f := cmd.Flags()
	f.IntVarP(&flags.limit, "limit", "n", 20, "show at most this many hits")
	f.StringVar(&flags.role, "role", "", "find only messages of this role: user, assistant or system")
	f.StringVar(&flags.since, "since", "", "find only messages at most this old, such as 7d or 12h")
	f.BoolVar(&flags.current, "current", false, "skip rewound messages")
	f.BoolVar(&flags.rebuild, "rebuild", false, "rebuild the index first")
	return cmd
}

func (a *app) search(ctx context.Context, db *stet.DB, words string, flags searchFlags) error {
	opts, err := a.searchOptions(ctx, db, flags)
	if err != nil {
		return err
	}
	index, err := db.Search(ctx)
	if err != nil {
		return err
	}
	return a.searchIn(ctx, index, words, opts, flags.rebuild)
}

func (a *app) searchOptions(ctx context.Context, db *stet.DB, flags searchFlags) (*search.SearchOptions, error) {
	opts := &search.SearchOptions{Limit: flags.limit, Role: transcript.Role(flags.role), Rewound: !flags.current}
	if flags.limit < 1 || flags.limit > 1000 {
		return nil, usage(fmt.Errorf("--limit must be from 1 to 1000, not %d", flags.limit))
	}
	switch opts.Role {
	case "", transcript.User, transcript.Assistant, transcript.System:
	default:
		return nil, usage(fmt.Errorf("invalid role %q; use user, assistant or system", flags.role))
	}
	if flags.since != "" {
		age, err := parseAge(flags.since)
		if err != nil {
			return nil, usage(fmt.Errorf("--since: %w", err))
		}
		opts.Since = time.Now().Add(-age)
	}
	if a.conversation != "" {
		var err error
		if opts.Conversation, err = conversationID(ctx, db, a.conversation); err != nil {
			return nil, err
		}
	}
	return opts, nil
}

func (a *app) searchIn(ctx context.Context, index search.Searcher, words string, opts *search.SearchOptions, rebuild bool) error {
	if err := index.Degraded(); err != nil {
		a.warn("the %v", err)
	}
	update := func(ctx context.Context) (search.Stats, error) { return index.Update(ctx) }
	if rebuild {
		update = index.Rebuild
	}
	stats, err := a.indexing(ctx, index, update)
	if err != nil {
		return err
	}
	page, err := index.Search(ctx, words, opts)
	if errors.Is(err, search.ErrEmptyQuery) {
		return usage(err)
	}
	if err != nil {
		return err
	}
	for _, hit := range page.Hits {
		if err := a.print(newHitJSON(hit), a.hitText(hit)); err != nil {
			return err
		}
	}
	switch {
	case len(page.Hits) == 0:
		a.say("nothing found")
	case page.Next != "":
		a.say("more results exist; raise -n")
	}
	if len(stats.Damaged) > 0 {
		return coded(ExitDamage, "parts of %s cannot be read, so some of it may not be found; 'stet fsck' lists the damage", few(stats.Damaged, 5))
	}
	return nil
}

// indexing shows the progress of an update that takes long. One that is interrupted is
// continued by the next.
func (a *app) indexing(ctx context.Context, index search.Searcher, update func(context.Context) (search.Stats, error)) (search.Stats, error) {
	shown := a.counter("indexing conversations:")
	defer shown.done()
	ctx, ended := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer ended()
	watching.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
			if done, total := index.Progress(); total > 0 {
				shown.of(done, total)
			}
		}
	})
	return update(ctx)
}

type hitJSON struct {
	Schema    string         `json:"schema"`
	ID        string         `json:"id"` // of the conversation
	Title     string         `json:"title"`
	Turn      int            `json:"turn"`
	MessageID string         `json:"message_id"`
	Role      string         `json:"role"`
	Kind      string         `json:"kind"`
	Tool      string         `json:"tool,omitempty"`
	Subagent  string         `json:"subagent,omitempty"`
	Save      uint64         `json:"save,omitempty"` // of its branch, if it was rewound
	Time      string         `json:"time,omitempty"`
	Snippet   string         `json:"snippet"`
	Matches   []search.Match `json:"matches"`
}

func newHitJSON(h search.Hit) hitJSON {
	return hitJSON{
		Schema: "stet.search.v1", ID: h.Conversation, Title: h.Title, Turn: h.Turn, MessageID: h.MessageID,
		Role: string(h.Role), Kind: string(h.Kind), Tool: h.Tool, Subagent: h.Subagent, Save: h.Save, Time: stamp(h.Time),
		Snippet: h.Snippet.Text, Matches: append([]search.Match{}, h.Snippet.Matches...),
	}
}

func (a *app) hitText(h search.Hit) string {
	p := a.paint()
	where := string(h.Role)
	if h.Turn > 0 {
		where = fmt.Sprintf("turn %d %s", h.Turn, where)
	}
	if h.Tool != "" {
		where += " " + h.Tool
	}
	if h.Save > 0 {
		where += fmt.Sprintf(" (rewound, save %d)", h.Save)
	}
	id, at, room := a.short(h.Conversation), when(h.Time, now()), 50
	if isTerminal(a.out) {
		room = min(room, max(10, a.width()-columns(id+at+where)-6))
	}
	return fmt.Sprintf("%s  %s  %s  %s\n    %s\n", p.yellow(id), p.dim(at), clip(h.Title, room), p.dim(where), highlight(p, h.Snippet))
}

// highlight marks the matches in a snippet, on one line.
func highlight(p paint, s search.Snippet) string {
	var text strings.Builder
	at := 0
	line := func(part string) string { return strings.NewReplacer("\n", " ", "\t", " ").Replace(part) }
	for _, m := range s.Matches {
		text.WriteString(line(s.Text[at:m.Start]) + p.bold(p.red(line(s.Text[m.Start:m.End]))))
		at = m.End
	}
	return text.String() + line(s.Text[at:])
}
