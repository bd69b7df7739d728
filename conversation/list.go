package conversation

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// ListOptions choose conversations; nil gives the first page of all.
type ListOptions struct {
	// Cursor is where the page begins: empty, or the Next of the page before.
	Cursor string
	// Limit is the most conversations of a page, 50 by default, at most 1,000.
	Limit int
	// Workspace and Agent, if set, must be equal.
	Workspace, Agent string
	// Match, if set, must return true.
	Match func(Info) bool
}

// Page is a part of a list.
type Page struct {
	Conversations []Info
	// Next is the cursor of the following page, empty at the end.
	Next string
}

// List returns conversations, those changed last first. A conversation that is
// changed between two pages moves to the front and can be missed, never doubled.
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

// listed returns the next keys of the order by time, newest first. The scan is
// over before anything else is read, so that it holds no connection meanwhile.
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

// DeleteOptions say how to delete; nil gives the defaults.
type DeleteOptions struct {
	// Extend, if set, may add changes to the commit, which then happen together
	// with the deletion. It can be called more than once.
	Extend func(*kv.Batch) error
}

// Delete removes a conversation with its history, pointers and pins, in one
// commit. Its blobs stay until a collector finds that nothing else needs them. A
// writer's next save fails with ErrNotFound.
func (s *Store) Delete(ctx context.Context, id string, opts *DeleteOptions) error {
	return s.deleteIf(ctx, id, opts, func(Save, bool) bool { return true })
}

// deleteIf removes a conversation if wanted, which is told its current save and
// whether it has pins, says so about what the commit finds.
func (s *Store) deleteIf(ctx context.Context, id string, opts *DeleteOptions, wanted func(last Save, pinned bool) bool) error {
	for range attempts {
		batch, err := s.deletion(ctx, id, wanted)
		if err != nil || batch == nil {
			return err
		}
		if opts != nil && opts.Extend != nil {
			if err := opts.Extend(batch); err != nil {
				return err
			}
		}
		err = s.rows.Commit(ctx, batch)
		if errors.Is(err, kv.ErrConflict) {
			continue // a save, a pin or a new title came between
		}
		if err != nil {
			return fmt.Errorf("delete conversation %s: %w", id, err)
		}
		return nil
	}
	return fmt.Errorf("delete conversation %s: %w", id, kv.ErrConflict)
}

// deletion returns nil if the conversation is not to be removed.
func (s *Store) deletion(ctx context.Context, id string, wanted func(Save, bool) bool) (*kv.Batch, error) {
	rec, version, err := s.record(ctx, id)
	if err != nil {
		return nil, err
	}
	last, err := s.lastSave(ctx, id)
	if err != nil {
		return nil, err
	}
	listed := rec.CreatedAtMs
	if last.Seq > 0 {
		listed = last.Time.UnixMilli()
	}
	pins, noPin, err := s.pinsNow(ctx)
	if err != nil {
		return nil, err
	}
	pins = slices.DeleteFunc(pins, func(p Pin) bool { return p.Conversation != id })
	if !wanted(last, len(pins) > 0) {
		return nil, nil
	}
	b := &kv.Batch{
		Expect: []kv.Expect{
			{Key: keyspace.Conversation(id), Version: version},
			{Key: keyspace.Save(id, last.Seq+1)},
			noPin,
		},
		DeleteRange: []kv.Range{keyspace.Saves(id), keyspace.MessageHeads(id), keyspace.JSONCheckpoints(id), keyspace.Execs(id)},
		Delete:      []string{keyspace.Conversation(id), keyspace.Head(id), keyspace.ByTime(listed, id)},
	}
	for _, p := range pins {
		b.Delete = append(b.Delete, keyspace.Pin(p.Name))
	}
	return b, nil
}
