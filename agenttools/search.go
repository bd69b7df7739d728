package agenttools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/search"
)

// SearchArgs are the arguments of the tool search.
type SearchArgs struct {
	Query   string `json:"query" jsonschema:"words that must all occur; \"quotes\" make a phrase; path:, tool: and role: narrow the search"`
	Session string `json:"session,omitempty" jsonschema:"only this session: its id, the beginning of it, or \"own\" for the calling one; all sessions if missing"`
	Limit   int    `json:"limit,omitempty" jsonschema:"number of hits, 10 if missing, at most 50"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"continue a search: the cursor that its answer gave"`
}

// Search finds words in all conversations, best first.
func (t *Tools) Search(ctx context.Context, args SearchArgs) (text string, err error) {
	most, err := limit(args.Limit, 10, 50)
	if err != nil {
		return "", err
	}
	err = t.use(ctx, false, func(p *Place) error {
		text, err = t.search(ctx, p, args, most)
		return err
	})
	return text, err
}

func (t *Tools) search(ctx context.Context, p *Place, args SearchArgs, most int) (string, error) {
	c, err := t.caller(ctx, p)
	if err != nil {
		return "", err
	}
	opts := &search.SearchOptions{Limit: most, Cursor: args.Cursor, Rewound: true}
	if opts.Conversation, err = t.named(ctx, p, c, args.Session); err != nil {
		return "", err
	}
	index, err := p.DB.Search(ctx)
	if err != nil {
		return "", err
	}
	stats, err := index.Update(ctx)
	if err != nil {
		return "", err
	}
	page, err := index.Search(ctx, args.Query, opts)
	if errors.Is(err, search.ErrEmptyQuery) {
		return "", refused("the query has no words")
	}
	if err != nil {
		return "", err
	}
	var a answer
	if len(page.Hits) == 0 {
		a.line("Nothing found.")
	}
	for _, hit := range page.Hits {
		a.line("- %s\n  > %s", place(hit), clip(hit.Snippet.Text, 300))
	}
	if len(page.Hits) > 0 {
		a.line("\n`show` with ref=SESSION and turn=N shows the conversation from there.")
	}
	if page.Next != "" {
		a.line("There are more: `search` with the same query, session and limit, and cursor=%q.", page.Next)
	}
	if n := len(stats.Damaged); n > 0 {
		a.line("Parts of %s cannot be read, so some of it may not be found.", plural(n, "conversation"))
	}
	return a.String(), nil
}

// place describes where a hit is.
func place(h search.Hit) string {
	text := code(h.Conversation)
	if h.Title != "" {
		text += fmt.Sprintf(" %q", clip(h.Title, maxTitle))
	}
	parts := []string{text}
	if h.Turn > 0 {
		parts = append(parts, fmt.Sprintf("turn %d", h.Turn))
	}
	parts = append(parts, strings.TrimSpace(string(h.Role)+" "+h.Tool))
	if at := when(h.Time); at != "" {
		parts = append(parts, at)
	}
	if h.Save > 0 {
		parts = append(parts, "rewound")
	}
	return strings.Join(parts, " · ")
}
