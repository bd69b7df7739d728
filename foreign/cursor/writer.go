package cursor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Writer writes into a new state.vscdb.
type Writer struct{ store *Store }

// Blobs returns the blobs of the new file. Put keeps the intact rows of a base.
func (w *Writer) Blobs() Blobs { return w.store.Blobs() }

// Set adds rows, or replaces those of a base, in one transaction.
func (w *Writer) Set(ctx context.Context, rows ...Row) error {
	return w.store.main.write(ctx, func(c *conn) error {
		for _, row := range rows {
			put := c.putText
			if row.Value.Class == ClassBlob {
				put = c.putValue
			}
			if err := put(diskTable, row.Key, row.Value.Data); err != nil {
				return fmt.Errorf("write %s: %w", row.Key, err)
			}
		}
		return nil
	})
}

// perConversation are the prefixes of the rows that belong to one conversation, which
// have the id of the conversation and ':' next.
var perConversation = []string{MessageHeadPrefix, MessagePrefix, CheckpointPrefix, CodeDiffPrefix, RequestPrefix, OriginalPrefix}

// Remove removes the rows of conversations from a base, including the marks of
// deleted ones. Blobs and contents stay: other conversations may use them.
func (w *Writer) Remove(ctx context.Context, conversations ...string) error {
	return w.store.main.write(ctx, func(c *conn) error {
		for _, id := range conversations {
			for _, key := range []string{HeadPrefix + id, ConversationPrefix + id, id + CloudAgentSuffix} {
				if err := c.deleteRange(keyRange{key, key + "\x00"}); err != nil {
					return fmt.Errorf("remove %s: %w", key, err)
				}
			}
			for _, prefix := range perConversation {
				if err := c.deleteRange(prefixRange(prefix + id + ":")); err != nil {
					return fmt.Errorf("remove %s%s: %w", prefix, id, err)
				}
			}
		}
		return nil
	})
}

func (c *conn) deleteRange(r keyRange) error {
	s, err := c.stmt("DELETE FROM " + diskTable.name + " WHERE " + diskTable.key + " >= ?1 AND " + diskTable.key + " < ?2")
	if err != nil {
		return err
	}
	return errors.Join(s.BindText(1, r.start), s.BindText(2, r.end), s.Exec())
}

// putText inserts or replaces a row with a value of class TEXT.
func (c *conn) putText(t table, key string, data []byte) error {
	s, err := c.stmt("INSERT OR REPLACE INTO " + t.name + " (" + t.key + ", " + t.value + ") VALUES (?1, ?2)")
	if err != nil {
		return err
	}
	return errors.Join(s.BindText(1, key), s.BindRawText(2, data), s.Exec())
}

// listKey is the row of ItemTable with the list that the editor shows.
const listKey = "composer.composerHeaders"

// List enters conversations into the lists that the editor shows: the one in
// ItemTable and, if a base has it, the table of headers. Entries with the same id are
// replaced, others stay. A list of a base that cannot be parsed stays unchanged.
func (w *Writer) List(ctx context.Context, headers ...Header) error {
	return w.store.main.write(ctx, func(c *conn) error {
		old, err := c.get(itemTable, listKey)
		if err != nil {
			return err
		}
		if list, ok := listWith(old.Data, headers); ok {
			if err := c.putText(itemTable, listKey, list); err != nil {
				return fmt.Errorf("write %s: %w", listKey, err)
			}
		}
		if !w.store.tables[headerTable] {
			return nil
		}
		for _, h := range headers {
			if err := c.putHeader(h); err != nil {
				return fmt.Errorf("write header of %s: %w", h.ID, err)
			}
		}
		return nil
	})
}

// listWith returns a list with further entries.
func listWith(old []byte, headers []Header) ([]byte, bool) {
	doc := Document{}
	if len(old) > 0 {
		var err error
		if doc, err = ParseDocument(old); err != nil {
			return nil, false
		}
	}
	fresh := make(map[string]bool, len(headers))
	for _, h := range headers {
		fresh[h.ID] = true
	}
	entries := []json.RawMessage{}
	for _, item := range doc.list("allComposers") {
		if d, err := ParseDocument(item); err == nil && fresh[d.Text("composerId")] {
			continue
		}
		entries = append(entries, item)
	}
	for _, h := range headers {
		entries = append(entries, encode(h.document()))
	}
	doc = doc.clone()
	doc["allComposers"] = encode(entries)
	return encode(doc), true
}

// document returns the entry of a list, in the form that decodeHeader reads.
func (h Header) document() map[string]any {
	doc := map[string]any{"type": "head", "composerId": h.ID, "name": h.Title}
	for field, at := range map[string]time.Time{"createdAt": h.Created, "lastUpdatedAt": h.Updated} {
		if !at.IsZero() {
			doc[field] = at.UnixMilli()
		}
	}
	if h.Workspace != "" {
		doc["workspaceId"] = h.Workspace
	}
	if h.Archived {
		doc["isArchived"] = true
	}
	if h.Subagent {
		doc["isSubagent"] = true
	}
	if h.Parent != "" {
		doc["subagentInfo"] = map[string]string{"parentComposerId": h.Parent}
	}
	return doc
}

// putHeader enters a conversation into the table of headers.
func (c *conn) putHeader(h Header) error {
	s, err := c.stmt("INSERT OR REPLACE INTO " + headerTable + " (composerId, workspaceId, createdAt, lastUpdatedAt," +
		" isArchived, isSubagent, recency, value) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?4, ?7)")
	if err != nil {
		return err
	}
	return errors.Join(s.BindText(1, h.ID), s.BindText(2, h.Workspace), s.BindInt64(3, unixMillis(h.Created)), s.BindInt64(4, unixMillis(h.Updated)),
		s.BindBool(5, h.Archived), s.BindBool(6, h.Subagent), s.BindRawText(7, encode(h.document())), s.Exec())
}

func unixMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
