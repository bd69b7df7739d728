package timeline

import (
	"context"
	"slices"

	"github.com/stet-dev/stet/conversation"
)

// relatedPages bounds the search for related conversations to the newest 10,000.
const relatedPages, relatedPage = 20, 500

// Related lists the conversations that were derived from another one, newest first.
type Related struct {
	// Forks are the forks of it.
	Forks []conversation.Info
	// Subagents were started by its tool calls.
	Subagents []conversation.Info
}

// Related lists the forks and the subagents of a conversation.
func (r *Reader) Related(ctx context.Context, id string) (Related, error) {
	var out Related
	opts := &conversation.ListOptions{Limit: relatedPage}
	for range relatedPages {
		page, err := r.conversations.List(ctx, opts)
		if err != nil {
			return out, err
		}
		for _, info := range page.Conversations {
			switch {
			case info.SubagentOf() == id:
				out.Subagents = append(out.Subagents, info)
			case info.ForkedFrom == id:
				out.Forks = append(out.Forks, info)
			}
		}
		if opts.Cursor = page.Next; opts.Cursor == "" {
			break
		}
	}
	return out, nil
}

// Below lists the conversations of all subagents of some conversations, and of subagents of
// those, without the given ones. Each comes before those that it started.
func (r *Reader) Below(ctx context.Context, ids ...string) ([]conversation.Info, error) {
	started := map[string][]conversation.Info{} // by the conversation that started them
	opts := &conversation.ListOptions{Limit: relatedPage}
	for more := true; more; more = opts.Cursor != "" {
		page, err := r.conversations.List(ctx, opts)
		if err != nil {
			return nil, err
		}
		for _, info := range page.Conversations {
			if parent := info.SubagentOf(); parent != "" {
				started[parent] = append(started[parent], info)
			}
		}
		opts.Cursor = page.Next
	}
	var out []conversation.Info
	seen := map[string]bool{}
	for _, id := range ids {
		seen[id] = true
	}
	for above := slices.Clone(ids); len(above) > 0; above = above[1:] {
		for _, info := range started[above[0]] {
			if seen[info.ID] {
				continue
			}
			seen[info.ID] = true
			out, above = append(out, info), append(above, info.ID)
		}
	}
	return out, nil
}

// Family is a conversation with those of its subagents.
type Family struct {
	conversation.Info
	// Subagents are its subagents in the list, oldest first, each with its own.
	Subagents []*Family
}

// Families puts the conversations of subagents below those that started them. The
// others keep their order, and so do subagents whose parent is not in the list.
func Families(infos []conversation.Info) []*Family {
	all := make(map[string]*Family, len(infos))
	for _, info := range infos {
		all[info.ID] = &Family{Info: info}
	}
	var roots []*Family
	for i := range infos {
		f := all[infos[i].ID]
		parent := all[f.SubagentOf()]
		if parent == nil || circular(f, parent, all) {
			roots = append(roots, f)
			continue
		}
		parent.Subagents = append(parent.Subagents, f)
	}
	for _, f := range all {
		slices.SortStableFunc(f.Subagents, func(a, b *Family) int { return a.Created.Compare(b.Created) })
	}
	return roots
}

// circular reports whether a conversation is already above its supposed parent, which
// would make a cycle.
func circular(f, parent *Family, all map[string]*Family) bool {
	for range len(all) {
		if parent == f {
			return true
		}
		if parent = all[parent.SubagentOf()]; parent == nil {
			return false
		}
	}
	return true
}

// Count counts the subagents, including those of subagents.
func (f *Family) Count() int {
	n := len(f.Subagents)
	for _, s := range f.Subagents {
		n += s.Count()
	}
	return n
}
