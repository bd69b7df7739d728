package conversation

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// ListOptions select conversations; nil gives the first page of all.
type ListOptions struct {
	// Cursor is where the page begins: empty, or Next of the previous page.
	Cursor string
	// Limit is the maximum number of conversations per page, 50 by default and 1,000
	// at most.
	Limit int
	// Workspace and Agent, if set, must be equal.
	Workspace, Agent string
	// Match, if set, must return true.
	Match func(Info) bool
}

// Page is a part of a list.
type Page struct {
	Conversations []Info
	// Damaged are the unreadable conversations of the page, and those of which the
	// options would select the readable ones.
	Damaged []Unreadable
	// Next is the cursor of the following page, empty at the end.
	Next string
}

// List returns conversations, last changed first. A conversation that changes between
// two pages moves to the front and can be missed, but never appears twice.
func (s *Store) List(ctx context.Context, opts *ListOptions) (Page, error) {
	if opts == nil {
		opts = &ListOptions{}
	}
	limit := opts.Limit
	if limit <= 0 {
		limit = 50
	}
	limit = min(limit, 1000)
	r := keyspace.ByTimes()
	if opts.Cursor != "" {
		end, err := parseCursor(opts.Cursor, r)
		if err != nil {
			return Page{}, err
		}
		r.End = end
	}
	chosen, err := s.chosen(ctx, opts)
	if err != nil {
		return Page{}, err
	}
	if chosen != nil && len(chosen) <= few {
		return s.listFew(ctx, chosen, opts, r, limit)
	}
	var page Page
	size := limit
	if chosen != nil {
		size = 1000 // most are passed over unread
	}
	for {
		keys, err := s.listed(ctx, r, size)
		if err != nil {
			return Page{}, err
		}
		wanted := keys
		if chosen != nil {
			wanted = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !chosen[keyspace.Last(key)] })
		}
		ahead := s.getAhead(ctx, wanted, limit)
		for _, key := range keys {
			r.End = key
			if chosen != nil && !chosen[keyspace.Last(key)] {
				continue
			}
			info, err := ahead.next()
			if errors.Is(err, ErrNotFound) {
				continue // deleted since the keys were read
			}
			if Damaged(err) {
				page.Damaged = append(page.Damaged, Unreadable{keyspace.Last(key), err})
				continue
			}
			if err != nil {
				return Page{}, err
			}
			if !opts.matches(info) {
				continue
			}
			page.Conversations = append(page.Conversations, info)
			if len(page.Conversations) == limit {
				page.Next = base64.RawURLEncoding.EncodeToString([]byte(key))
				return page, nil
			}
		}
		if len(keys) < size {
			return page, nil
		}
	}
}

func (o *ListOptions) matches(info Info) bool {
	return (o.Workspace == "" || o.Workspace == info.Workspace) &&
		(o.Agent == "" || o.Agent == info.Agent) &&
		(o.Match == nil || o.Match(info))
}

// chosen returns the ids of the conversations that a workspace and an agent select, or
// nil if all must be read.
func (s *Store) chosen(ctx context.Context, opts *ListOptions) (map[string]bool, error) {
	if opts.Workspace == "" && opts.Agent == "" {
		return nil, nil
	}
	f, err := s.readFilters(ctx)
	if err != nil || f == nil || !f.built {
		return nil, err
	}
	var chosen map[string]bool
	for _, sum := range f.sums(opts.Workspace, opts.Agent) {
		both := make(map[string]bool)
		for row, err := range s.rows.Scan(ctx, keyspace.ConversationsOf(sum), kv.ScanOptions{KeysOnly: true}) {
			if err != nil {
				return nil, fmt.Errorf("list conversations: %w", err)
			}
			if id := keyspace.Last(row.Key); chosen == nil || chosen[id] {
				both[id] = true
			}
		}
		chosen = both
	}
	return chosen, nil
}

// few is up to how many conversations it is cheaper to read and sort them than to look
// for them in the list of all.
var few = 200

// listFew is List for a few conversations.
func (s *Store) listFew(ctx context.Context, chosen map[string]bool, opts *ListOptions, r kv.Range, limit int) (Page, error) {
	type listed struct {
		key string
		Info
	}
	var page Page
	var all []listed
	ids := slices.Sorted(maps.Keys(chosen))
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = keyspace.Conversation(id)
	}
	ahead := s.getAhead(ctx, keys, len(ids))
	for _, id := range ids {
		info, err := ahead.next()
		switch {
		case errors.Is(err, ErrNotFound): // deleted since the keys were read
		case Damaged(err):
			if opts.Cursor == "" { // its place is unknown
				page.Damaged = append(page.Damaged, Unreadable{id, err})
			}
		case err != nil:
			return Page{}, err
		default:
			key := keyspace.ByTime(info.Updated.UnixMilli(), id)
			if r.Contains(key) && opts.matches(info) {
				all = append(all, listed{key, info})
			}
		}
	}
	slices.SortFunc(all, func(a, b listed) int { return strings.Compare(b.key, a.key) })
	if len(all) > limit {
		all = all[:limit]
		page.Next = base64.RawURLEncoding.EncodeToString([]byte(all[limit-1].key))
	}
	for _, one := range all {
		page.Conversations = append(page.Conversations, one.Info)
	}
	return page, nil
}

func parseCursor(cursor string, r kv.Range) (string, error) {
	key, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || !r.Contains(string(key)) || strings.IndexByte(string(key), 0) >= 0 {
		return "", invalid("cursor %q", cursor)
	}
	return string(key), nil
}

// listed returns the next keys of the order by time, newest first. The scan ends
// before anything else is read, so that it holds no connection meanwhile.
func (s *Store) listed(ctx context.Context, r kv.Range, limit int) ([]string, error) {
	var keys []string
	for row, err := range s.rows.Scan(ctx, r, kv.ScanOptions{Reverse: true, Limit: limit, KeysOnly: true}) {
		if err != nil {
			return nil, fmt.Errorf("list conversations: %w", err)
		}
		keys = append(keys, row.Key)
	}
	return keys, nil
}
