package cursor

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// Header is what a list of conversations shows.
type Header struct {
	ID, Title string
	// Workspace is the editor's id of the workspace, or the path of an SDK agent.
	Workspace        string
	Created, Updated time.Time
	Archived         bool
	// Subagent means that another conversation started it; Parent names it, if known.
	Subagent bool
	Parent   string
	// Missing means that a list names the conversation, but its row is gone.
	Missing bool
}

// Conversations yields the headers of all conversations, ordered by id; those without
// data come last. An unreadable row has only its ID.
func (s *Store) Conversations(ctx context.Context) iter.Seq2[Header, error] {
	switch s.kind {
	case KindAgent:
		return s.agentHeaders(ctx)
	case KindSDK:
		return s.sdkHeaders(ctx)
	case KindLines:
		return s.lineHeaders(ctx)
	}
	return s.editorHeaders(ctx)
}

func (s *Store) editorHeaders(ctx context.Context) iter.Seq2[Header, error] {
	return func(yield func(Header, error) bool) {
		items, err := s.itemHeaders(ctx)
		if err != nil {
			yield(Header{}, err)
			return
		}
		for row, err := range s.scan(ctx, prefixRange(ConversationPrefix), scanKeys) {
			if err != nil {
				yield(Header{}, err)
				return
			}
			h, ok, err := s.editorHeader(ctx, row.key[len(ConversationPrefix):], items)
			if err != nil {
				yield(Header{}, err)
				return
			}
			if ok && !yield(h, nil) {
				return
			}
		}
		bare, err := s.bareHeads(ctx)
		if err != nil {
			yield(Header{}, err)
			return
		}
		for _, id := range bare {
			item := items[id]
			delete(items, id)
			h, _, err := s.tableHeader(ctx, id)
			if err != nil && !OfRow(err) {
				yield(Header{}, err)
				return
			}
			h = mergeHeader(mergeHeader(Header{ID: id}, h), item)
			if !yield(h, nil) {
				return
			}
		}
		s.missingHeaders(ctx, items, bare, yield)
	}
}

// bareHeads returns, in order, the conversations that have a pointer to a state and no row.
// One whose row is a tombstone was deleted.
func (s *Store) bareHeads(ctx context.Context) ([]string, error) {
	var out []string
	for row, err := range s.scan(ctx, prefixRange(HeadPrefix), scanSizes) {
		if err != nil {
			return nil, err
		}
		id := row.key[len(HeadPrefix):]
		if id == "" || row.value.Absent() {
			continue
		}
		found, err := s.exists(ctx, ConversationPrefix+id)
		if err != nil {
			return nil, err
		}
		if !found {
			out = append(out, id)
		}
	}
	return out, ctx.Err()
}

// editorHeader makes the header of one conversation, from the table of headers if it
// has an entry, else from the row itself. ok is false for a tombstone.
func (s *Store) editorHeader(ctx context.Context, id string, items map[string]Header) (Header, bool, error) {
	item, listed := items[id]
	delete(items, id)
	h, found, err := s.tableHeader(ctx, id)
	if err != nil && !OfRow(err) {
		return Header{}, false, err
	}
	if found && err == nil {
		present, err := s.present(ctx, ConversationPrefix+id)
		return mergeHeader(h, item), present, err
	}
	v, err := s.value(ctx, ConversationPrefix+id)
	if err != nil && OfRow(err) {
		return mergeHeader(Header{ID: id}, item), true, nil // reading the conversation reports the error
	}
	if err != nil || v.Absent() {
		return Header{}, false, err
	}
	h = Header{ID: id}
	if doc, err := ParseDocument(v.Data); err == nil {
		h = decodeHeader(id, doc)
	}
	if listed {
		h = mergeHeader(h, item)
	}
	return h, true, nil
}

// exists reports whether there is a row, which may be a tombstone.
func (s *Store) exists(ctx context.Context, key string) (bool, error) {
	for _, err := range s.scan(ctx, keyRange{key, key + "\x00"}, scanSizes) {
		return err == nil, err
	}
	return false, ctx.Err()
}

// present reports whether a row exists and is not a tombstone, without reading its
// value.
func (s *Store) present(ctx context.Context, key string) (bool, error) {
	for row, err := range s.scan(ctx, keyRange{key, key + "\x00"}, scanSizes) {
		return err == nil && !row.value.Absent(), err
	}
	return false, ctx.Err()
}

// missingHeaders yields conversations in the lists without a row.
func (s *Store) missingHeaders(ctx context.Context, items map[string]Header, bare []string, yield func(Header, error) bool) {
	seen := map[string]bool{}
	for _, id := range bare {
		seen[id] = true
	}
	for h, err := range s.tableHeaders(ctx) {
		if err != nil {
			yield(Header{}, err)
			return
		}
		present, err := s.present(ctx, ConversationPrefix+h.ID)
		if err != nil {
			yield(Header{}, err)
			return
		}
		h.Missing = true
		if !present && !seen[h.ID] {
			seen[h.ID] = true
			if !yield(h, nil) {
				return
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(items)) {
		h := items[id]
		h.Missing = true
		if !seen[id] && !yield(h, nil) {
			return
		}
	}
}

// fillHeader completes a conversation's header from the lists.
func (s *Store) fillHeader(ctx context.Context, c *Conversation) error {
	h, found, err := s.tableHeader(ctx, c.ID)
	if err != nil && OfRow(err) {
		c.Problems = append(c.Problems, fmt.Errorf("read header of %s: %w", c.ID, err))
		return nil
	}
	if err != nil {
		return err
	}
	if found {
		c.Header = mergeHeader(h, c.Header)
	}
	return nil
}

// decodeHeader reads a header from a conversation's row or an entry of a list.
func decodeHeader(id string, doc Document) Header {
	parent := doc.Object("subagentInfo").Text("parentComposerId")
	return Header{
		ID: id, Title: doc.Text("name"), Workspace: workspaceOf(doc),
		Created: doc.time("createdAt"), Updated: doc.time("lastUpdatedAt"),
		Archived: doc.Flag("isArchived"), Parent: parent,
		Subagent: parent != "" || doc.Flag("isSubagent"),
	}
}

func workspaceOf(doc Document) string {
	if id := doc.Object("workspaceIdentifier").Text("id"); id != "" {
		return id
	}
	return doc.Text("workspaceId")
}

// mergeHeader fills what h lacks from other.
func mergeHeader(h, other Header) Header {
	if h.ID == "" {
		return other
	}
	if h.Title == "" {
		h.Title = other.Title
	}
	if h.Workspace == "" {
		h.Workspace = other.Workspace
	}
	if h.Parent == "" {
		h.Parent = other.Parent
	}
	if h.Created.IsZero() {
		h.Created = other.Created
	}
	if h.Updated.Before(other.Updated) {
		h.Updated = other.Updated
	}
	h.Subagent = h.Subagent || other.Subagent
	h.Archived = h.Archived || other.Archived
	return h
}

// itemKeys are the only rows of ItemTable that are read: others hold the user's
// secrets.
var itemKeys = []string{"composer.composerHeaders", "composer.composerData"}

// itemHeaders reads the lists of conversations that older releases keep in ItemTable.
// It skips unreadable lists: they only repeat the rows.
func (s *Store) itemHeaders(ctx context.Context) (map[string]Header, error) {
	out := map[string]Header{}
	if !s.tables[itemTable.name] {
		return out, nil
	}
	for _, key := range itemKeys {
		v, err := s.main.get(ctx, itemTable, key)
		if err != nil && OfRow(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read list %s: %w", key, err)
		}
		doc, err := ParseDocument(v.Data)
		if err != nil {
			continue
		}
		for _, item := range doc.list("allComposers") {
			d, err := ParseDocument(item)
			if err != nil || d.Text("composerId") == "" {
				continue
			}
			id := d.Text("composerId")
			out[id] = mergeHeader(out[id], decodeHeader(id, d))
		}
	}
	return out, nil
}
