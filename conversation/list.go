package conversation

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
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
	// Damaged are the unreadable conversations of the page, whatever the options
	// select.
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
	var page Page
	for {
		keys, err := s.listed(ctx, r, limit)
		if err != nil {
			return Page{}, err
		}
		for _, key := range keys {
			r.End = key
			info, err := s.Get(ctx, keyspace.Last(key))
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
		if len(keys) < limit {
			return page, nil
		}
	}
}

func (o *ListOptions) matches(info Info) bool {
	return (o.Workspace == "" || o.Workspace == info.Workspace) &&
		(o.Agent == "" || o.Agent == info.Agent) &&
		(o.Match == nil || o.Match(info))
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
