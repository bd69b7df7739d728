package cli

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/graph"
)

func (a *app) duCommand() *cobra.Command {
	var perConversation bool
	cmd := &cobra.Command{
		Use:     "du",
		Short:   "Show what the store takes, by kind",
		GroupID: groupHouse,
		Long: `Show what the store takes on disk: stored blobs by what they are (states, turns,
steps, files of workspaces, …), what nothing refers to, and the files of the store
itself. Bytes are stored bytes, after deduplication and compression.

--conversations lists conversations instead, the largest first. Content that
several share is counted with each of them.`,
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
	cmd.Flags().BoolVar(&perConversation, "conversations", false, "list conversations, the largest first")
	return cmd
}

type duJSON struct {
	Schema       string     `json:"schema"`
	Blobs        int64      `json:"blobs"`
	Bytes        int64      `json:"bytes"`
	Disk         int64      `json:"disk_bytes"`
	Kinds        []kindJSON `json:"kinds"`
	Unreferenced countJSON  `json:"unreferenced"`
	Deltas       int64      `json:"deltas"`
	Rows         int64      `json:"rows"`
	Sealed       sealedSum  `json:"sealed"`
}

type kindJSON struct {
	Kind string `json:"kind"`
	countJSON
}

// workspaceKind is how du calls what checkpoints refer to.
const workspaceKind = "workspace"

func (a *app) duKinds(ctx context.Context, db *stet.DB) error {
	stored, value, err := inventory(ctx, db)
	if err != nil {
		return err
	}
	kinds := make(map[string]countJSON)
	seen := new(graph.Set)
	count := func(kind string, id blob.ID) {
		if size, ok := stored[id]; ok {
			c := kinds[kind]
			kinds[kind] = countJSON{c.Blobs + 1, c.Bytes + size}
			delete(stored, id)
		}
	}
	var damaged []error
	held := db.Holders()
	for _, by := range []struct {
		roots conversation.Roots
		kind  func(graph.Node) string
	}{
		{held.Conversations, func(n graph.Node) string { return n.Kind.String() }},
		{held.Agents, func(n graph.Node) string { return n.Kind.String() }},
		{held.Checkpoints, func(graph.Node) string { return workspaceKind }},
	} {
		roots := conversation.Readable(ctx, []conversation.Roots{by.roots}, func(err error) { damaged = append(damaged, err) })
		err = graph.Walk(ctx, db.Blobs(), roots, &graph.Options{Seen: seen}, func(n graph.Node) error {
			count(by.kind(n), n.ID)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, size := range stored {
		value.Unreferenced.Blobs++
		value.Unreferenced.Bytes += size
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		value.Kinds = append(value.Kinds, kindJSON{kind, kinds[kind]})
	}
	slices.SortStableFunc(value.Kinds, func(a, b kindJSON) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if err := a.print(value, duText(value)); err != nil {
		return err
	}
	return damageError("row or tree", damaged)
}

// inventory lists the stored blobs with their sizes.
func inventory(ctx context.Context, db *stet.DB) (map[blob.ID]int64, duJSON, error) {
	value := duJSON{Schema: "stet.du.v1", Kinds: []kindJSON{}}
	stored := make(map[blob.ID]int64)
	err := db.List(ctx, blob.ID{}, func(info blob.Info) error {
		stored[info.ID] = info.Stored
		value.Blobs++
		value.Bytes += info.Stored
		if !info.Base.IsZero() {
			value.Deltas++
		}
		return nil
	})
	if err != nil {
		return stored, value, err
	}
	if value.Sealed, err = countSealed(ctx, db); err != nil || db.Engine() == nil {
		return stored, value, err
	}
	stats, err := db.Engine().Stats(ctx, nil)
	if err != nil {
		return nil, value, err
	}
	for _, rows := range stats.Rows {
		value.Rows += rows.N
	}
	value.Disk, err = diskUse(db.Engine().Dir())
	return stored, value, err
}

// diskUse adds up the files below a directory.
func diskUse(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return nil // a file that went meanwhile takes nothing
	})
	return total, err
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
		fmt.Fprintf(&text, "%s  %s  sealed\n", padLeft(byteSize(v.Sealed.Bytes), 10), padLeft(plural(v.Sealed.Conversations, "conversation"), 14))
	}
	if v.Disk > 0 {
		fmt.Fprintf(&text, "%s  %s  on disk\n", padLeft(byteSize(v.Disk), 10), padLeft(plural(v.Rows, "row"), 14))
	}
	return text.String()
}

func (a *app) duConversations(ctx context.Context, db *stet.DB) error {
	stored, _, err := inventory(ctx, db)
	if err != nil {
		return err
	}
	infos, damaged, err := conversations(ctx, db, &conversation.ListOptions{Limit: 500}, 0)
	if err != nil {
		return err
	}
	sizes := make(map[string]countJSON, len(infos))
	for _, info := range infos {
		// Of one that is damaged, what can be read is counted.
		size, err := conversationSize(ctx, db, info.ID, stored)
		damage, other := damageOnly(err)
		if other != nil {
			return other
		}
		if sizes[info.ID] = size; damage != nil {
			damaged = append(damaged, conversation.Unreadable{ID: info.ID, Err: damage})
		}
	}
	slices.SortStableFunc(infos, func(a, b conversation.Info) int { return cmp.Compare(sizes[b.ID].Bytes, sizes[a.ID].Bytes) })
	for _, info := range infos {
		size := sizes[info.ID]
		value := map[string]any{
			"schema": "stet.du.conversation.v1", "id": info.ID, "title": info.Title, "blobs": size.Blobs, "bytes": size.Bytes,
		}
		line := fmt.Sprintf("%s  %s  %s  %s\n", padLeft(byteSize(size.Bytes), 10), padLeft(plural(size.Blobs, "blob"), 14), printable(info.ID), clip(info.Title, 50))
		if err := a.print(value, line); err != nil {
			return err
		}
	}
	return unreadable(damaged)
}

// conversationSize measures everything that the saves of a conversation reach.
func conversationSize(ctx context.Context, db *stet.DB, id string, stored map[blob.ID]int64) (countJSON, error) {
	var size countJSON
	counted := make(map[blob.ID]bool)
	err := graph.Walk(ctx, db.Blobs(), savedRoots(ctx, db, id), nil, func(n graph.Node) error {
		if bytes, ok := stored[n.ID]; ok && !counted[n.ID] {
			counted[n.ID] = true
			size.Blobs++
			size.Bytes += bytes
		}
		return nil
	})
	return size, err
}

// savedRoots gives the roots of all saves of a conversation.
func savedRoots(ctx context.Context, db *stet.DB, id string) iter.Seq2[graph.Root, error] {
	return func(yield func(graph.Root, error) bool) {
		for save, err := range db.Conversations().History(ctx, id, &conversation.HistoryOptions{Newest: true}) {
			if !yield(graph.Root{Kind: graph.State, ID: save.Root}, err) || err != nil {
				return
			}
		}
	}
}
