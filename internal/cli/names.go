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
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
)

// conversationID finds the conversation that an id or a unique prefix of one
// names. It need not be readable; the caller finds out what can be read.
func conversationID(ctx context.Context, db *stet.DB, name string) (string, error) {
	if name == "" {
		return "", usage(errors.New("no conversation given"))
	}
	id, err := db.Conversations().Find(ctx, name)
	var several *conversation.AmbiguousError
	switch {
	case errors.As(err, &several):
		return "", usage(fmt.Errorf("conversation %w", several))
	case errors.Is(err, conversation.ErrNotFound):
		return "", nothingNamed(name, aConversation)
	}
	return id, err
}

// asPrinted finds the conversation of an id that is written as lists print it: in upper
// case, while the ids of checkpoints are in lower case. It returns "" for anything else.
func asPrinted(ctx context.Context, db *stet.DB, name string) string {
	if !strings.HasPrefix(name, "0") || name != strings.ToUpper(name) || name == strings.ToLower(name) {
		return ""
	}
	id, err := conversationID(ctx, db, name)
	if err != nil {
		return ""
	}
	return id
}

// orConversation reports whether a reference that is no checkpoint, or not one alone, may
// be a conversation.
func orConversation(err error) bool {
	return errors.Is(err, checkpoint.ErrNotFound) || errors.Is(err, checkpoint.ErrAmbiguous)
}

// shortIDs shortens ids of another program to unique prefixes of at least six
// characters.
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

// short returns the beginning of a conversation's id that every verb takes for it. An id
// that the store does not have stays as it is.
func (a *app) short(id string) string {
	if a.shorten == nil {
		return printable(id)
	}
	return a.shorten(id)
}

// shortener returns what short does, and remembers its answers.
func shortener(ctx context.Context, db *stet.DB) func(id string) string {
	known := make(map[string]string)
	return func(id string) string {
		if text, ok := known[id]; ok {
			return text
		}
		known[id] = printable(id)
		if there, err := db.Conversations().Exists(ctx, id); err == nil && there {
			if short, err := db.Conversations().ShortIDs(ctx, id); err == nil {
				known[id] = printable(short[id])
			}
		}
		return known[id]
	}
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

// lostState says that the state which a conversation or checkpoint names is lost. A root
// that was given as digits may never have been stored.
func lostState(ref string, root blob.ID, err error) error {
	if _, digits := blob.ParseID(ref); digits == nil || !errors.Is(err, blob.ErrNotFound) && !errors.Is(err, blob.ErrCorrupt) {
		return err
	}
	return &conversation.HydrationError{Conversation: ref, Source: "root " + root.Short(), Err: err}
}

// lostRoots names, after everything else is done, the states that are lost among those
// that a verb showed; the exit code is 6.
func lostRoots(ctx context.Context, db *stet.DB, conversation string, roots ...blob.ID) error {
	roots = slices.DeleteFunc(slices.Clone(roots), blob.ID.IsZero)
	slices.SortFunc(roots, blob.ID.Compare)
	roots = slices.Compact(roots)
	there, err := db.Blobs().Has(ctx, roots...)
	if err != nil {
		return err
	}
	var lost []string
	for i, found := range there {
		if !found {
			lost = append(lost, roots[i].Short())
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return coded(ExitDamage, "data loss: %s of %s cannot be read: %s; 'stet fsck' lists all damage", plural(int64(len(lost)), "state"), printable(conversation), few(lost, 5))
}

// sortedKeys lists the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
