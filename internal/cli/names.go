package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// conversationID finds the conversation that an id or a unique prefix of one
// names.
func conversationID(ctx context.Context, db *stet.DB, name string) (string, error) {
	if name == "" {
		return "", usage(errors.New("no conversation given"))
	}
	_, err := db.Rows().Get(ctx, keyspace.Conversation(name))
	if err == nil || kv.Damaged(err) { // it exists; the caller finds out what is readable
		return name, nil
	}
	if !errors.Is(err, kv.ErrNotFound) {
		return "", err
	}
	const most = 6
	for _, prefix := range []string{name, strings.ToUpper(name)} { // our ids are in upper case
		found, err := conversationsLike(ctx, db, prefix, most)
		switch {
		case err != nil:
			return "", err
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return "", usage(fmt.Errorf("conversation %q is ambiguous: it matches %s", name, few(found, most-1)))
		}
	}
	return "", coded(ExitNotFound, "no conversation %q", name)
}

// conversationsLike lists conversations by the beginning of their ids.
func conversationsLike(ctx context.Context, db *stet.DB, prefix string, limit int) ([]string, error) {
	var found []string
	r := keyspace.Prefix(keyspace.Conversation(prefix))
	for row, err := range db.Rows().Scan(ctx, r, kv.ScanOptions{KeysOnly: true, Limit: limit}) {
		if err != nil {
			return nil, err
		}
		found = append(found, keyspace.Last(row.Key))
	}
	return found, nil
}

// shortIDs shortens ids to unique prefixes of at least six characters.
func shortIDs(ids []string) map[string]string {
	short := make(map[string]string, len(ids))
	for length := 6; len(ids) > 0; length += 2 {
		count := make(map[string]int, len(ids))
		for _, id := range ids {
			count[id[:min(length, len(id))]]++
		}
		var rest []string
		for _, id := range ids {
			prefix := id[:min(length, len(id))]
			if count[prefix] == 1 || len(prefix) == len(id) {
				short[id] = prefix
			} else {
				rest = append(rest, id)
			}
		}
		ids = rest
	}
	return short
}

// errNoRoot is the error for a conversation without saves.
func errNoRoot(id string) error {
	return coded(ExitNotFound, "conversation %s has no saved state yet", id)
}

// headOf returns the current root of a conversation.
func headOf(ctx context.Context, db *stet.DB, id string) (blob.ID, error) {
	root, err := db.Conversations().Head(ctx, id)
	if errors.Is(err, conversation.ErrNotFound) {
		return blob.ID{}, errNoRoot(id)
	}
	return root, err
}

// sortedKeys lists the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
