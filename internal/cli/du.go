package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	measure "github.com/stet-dev/stet/usage"
)

func (a *app) duCommand() *cobra.Command {
	var perConversation bool
	cmd := &cobra.Command{
		Use:     "du",
		Short:   "Show disk usage of the store by kind",
		GroupID: groupHouse,
		Long: `Show the disk usage of the store: stored blobs by kind (states, turns, steps,
messages, files and directories of workspaces, …), unreferenced blobs, and the files
of the store itself. Sizes are those of stored bytes, after deduplication and
compression.

--conversations lists conversations instead, largest first, with the size of their saves
and checkpoints. Shared content is counted for each conversation that uses it.`,
		Example: "  stet du\n  stet du --conversations",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if done, err := a.duForeign(cmd.Context()); done || err != nil {
				return err
			}
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				if perConversation {
					return a.duConversations(cmd.Context(), db)
				}
				return a.duKinds(cmd.Context(), db)
			})
		},
	}
	cmd.Flags().BoolVar(&perConversation, "conversations", false, "list conversations, largest first")
	return cmd
}

type duJSON struct {
	Schema       string      `json:"schema"`
	Blobs        int64       `json:"blobs"`
	Bytes        int64       `json:"bytes"`
	Disk         int64       `json:"disk_bytes"`
	Kinds        []kindJSON  `json:"kinds"`
	Unreferenced countJSON   `json:"unreferenced"`
	Deltas       int64       `json:"deltas"`
	Rows         int64       `json:"rows"`
	Sealed       archivedSum `json:"sealed"`
}

type kindJSON struct {
	Kind string `json:"kind"`
	countJSON
}

func (a *app) duKinds(ctx context.Context, db *stet.DB) error {
	r, err := db.Usage().Measure(ctx, nil)
	if err != nil {
		return err
	}
	value := duJSON{
		Schema: "stet.du.v1", Blobs: r.All.Blobs, Bytes: r.All.Bytes, Disk: r.Disk, Kinds: []kindJSON{},
		Unreferenced: countJSON(r.Unreferenced), Deltas: r.Deltas, Rows: r.Rows, Sealed: archivedSum{r.Archived, r.Packs, r.PackBytes},
	}
	if !r.Listed { // only sizes of contents are available
		sum := r.Referenced()
		value.Blobs, value.Bytes = sum.Blobs, sum.Bytes
	}
	for _, k := range r.Kinds {
		value.Kinds = append(value.Kinds, kindJSON{k.Name, countJSON(k.Count)})
	}
	if err := a.print(value, duText(value)); err != nil {
		return err
	}
	return damageError("part", r.Damaged)
}

func duText(v duJSON) string {
	var text strings.Builder
	line := func(name string, n, bytes int64) {
		fmt.Fprintf(&text, "%s  %s  %s\n", padLeft(byteSize(bytes), 10), padLeft(plural(n, "blob"), 14), name)
	}
	for _, kind := range v.Kinds {
		line(kind.Kind, kind.Blobs, kind.Bytes)
	}
	if v.Unreferenced.Blobs > 0 {
		line("without a reference", v.Unreferenced.Blobs, v.Unreferenced.Bytes)
	}
	line("all", v.Blobs, v.Bytes)
	if v.Sealed.Conversations > 0 {
		fmt.Fprintf(&text, "%s  %s  archived\n", padLeft(byteSize(v.Sealed.Bytes), 10), padLeft(plural(v.Sealed.Conversations, "conversation"), 14))
	}
	if v.Disk > 0 {
		fmt.Fprintf(&text, "%s  %s  on disk\n", padLeft(byteSize(v.Disk), 10), padLeft(plural(v.Rows, "row"), 14))
	}
	return text.String()
}

func (a *app) duConversations(ctx context.Context, db *stet.DB) error {
	all, damaged, err := db.Usage().ByConversation(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if err := a.print(conversationUse(c)); err != nil {
			return err
		}
	}
	return unreadable(damaged)
}

func conversationUse(c measure.Conversation) (value map[string]any, text string) {
	value = map[string]any{
		"schema": "stet.du.conversation.v1", "id": c.ID, "title": c.Title, "blobs": c.Blobs, "bytes": c.Bytes, "sealed": c.Archived,
	}
	note := ""
	if c.Archived {
		note = "  (archived)"
	}
	return value, fmt.Sprintf("%s  %s  %s  %s%s\n",
		padLeft(byteSize(c.Bytes), 10), padLeft(plural(c.Blobs, "blob"), 14), printable(c.ID), clip(c.Title, 50), note)
}
