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
	// Damaged are the unreadable conversations found while filling the page. Whether the
	// options would select them may be unknown.
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
	l := &list{s: s, opts: opts, limit: opts.Limit, in: keyspace.ByTimes()}
	if l.limit <= 0 {
		l.limit = 50
	}
	l.limit = min(l.limit, 1000)
	if opts.Cursor != "" {
		end, err := parseCursor(opts.Cursor, l.in)
		if err != nil {
			return Page{}, err
		}
		l.in.End = end
	}
	if err := l.read(ctx); err != nil {
		return Page{}, err
	}
	return l.page, nil
}

func (o *ListOptions) matches(info Info) bool {
	return (o.Workspace == "" || WorkspaceName(o.Workspace) == info.Workspace) &&
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

// list is a call of List.
type list struct {
	s     *Store
	opts  *ListOptions
	limit int
	in    kv.Range // of the order by time: what the page may hold
	page  Page
}

// read fills the page. Without a workspace and an agent, and in a store of an earlier
// release, it looks at all conversations.
func (l *list) read(ctx context.Context) error {
	if l.opts.Workspace == "" && l.opts.Agent == "" {
		return l.walk(ctx, l.in, nil)
	}
	f, err := l.s.readFilters(ctx)
	if err != nil {
		return err
	}
	if f == nil || !f.built {
		return l.walk(ctx, l.in, nil)
	}
	return l.filed(ctx, f.sumOf(WorkspaceName(l.opts.Workspace), l.opts.Agent))
}

// full reports whether the page is complete.
func (l *list) full() bool { return len(l.page.Conversations) == l.limit }

// add appends a conversation at a place of the order by time.
func (l *list) add(key string, info Info) {
	l.page.Conversations = append(l.page.Conversations, info)
	if l.full() {
		l.page.Next = base64.RawURLEncoding.EncodeToString([]byte(key))
	}
}

// walk goes through a part of the order by time until the page is full. If few of the
// conversations match, and members is not nil, it calls members for the ids of those that
// may match, and skips the others unread.
func (l *list) walk(ctx context.Context, in kv.Range, members func() (map[string]bool, error)) error {
	size, seen, before := l.limit, 0, len(l.page.Conversations)
	if members != nil {
		size = max(size, rarely)
	}
	for {
		all, err := l.s.described(ctx, in, size)
		if err != nil {
			return err
		}
		for _, one := range all {
			if l.full() {
				return nil
			}
			if err := l.take(one.key, one.info, one.err); err != nil {
				return err
			}
		}
		if len(all) < size || l.full() {
			return nil
		}
		seen += len(all)
		in.End = all[len(all)-1].key
		if members != nil && (len(l.page.Conversations)-before)*rarely < seen {
			chosen, err := members()
			if err != nil {
				return err
			}
			if chosen != nil {
				return l.pick(ctx, in, chosen)
			}
			members = nil
		}
	}
}

// pick goes through a part of the order by time, and reads only the chosen conversations.
func (l *list) pick(ctx context.Context, in kv.Range, chosen map[string]bool) error {
	const size = 1000 // most are passed over
	for {
		keys, err := l.s.listed(ctx, in, size)
		if err != nil {
			return err
		}
		wanted := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !chosen[keyspace.Last(key)] })
		ahead := l.s.getAhead(ctx, wanted, l.limit-len(l.page.Conversations))
		for _, key := range wanted {
			if l.full() {
				return nil
			}
			info, err := ahead.next()
			if err := l.take(key, info, err); err != nil {
				return err
			}
		}
		if len(keys) < size || l.full() {
			return nil
		}
		in.End = keys[len(keys)-1]
	}
}

// rarely is the number of conversations read for each match from which it is cheaper to
// read first which ones may match.
const rarely = 16

// take adds a conversation at a place of the order by time, if it belongs to the page.
func (l *list) take(key string, info Info, err error) error {
	switch {
	case errors.Is(err, ErrNotFound): // deleted since the key was read
	case Damaged(err):
		l.page.Damaged = append(l.page.Damaged, Unreadable{keyspace.Last(key), err})
	case err != nil:
		return err
	case l.opts.matches(info):
		l.add(key, info)
	}
	return nil
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

// placed is a conversation at a place of the order by time, or why it cannot be described.
type placed struct {
	key  string
	info Info
	err  error
}

// described returns the next conversations of the order by time, newest first.
func (s *Store) described(ctx context.Context, r kv.Range, limit int) ([]placed, error) {
	found, err := s.rows.ScanBeside(ctx, r, kv.ScanOptions{Reverse: true, Limit: limit}, keyspace.BesideByTime()...)
	if err != nil {
		return nil, fmt.Errorf("list conversations: %w", err)
	}
	all := make([]placed, len(found))
	for i, f := range found {
		all[i].key = f.Key
		all[i].info, all[i].err = describe(keyspace.Last(f.Key), f)
	}
	return all, nil
}

// describe reads the rows of keyspace.BesideByTime.
func describe(id string, f kv.Found) (Info, error) {
	for _, err := range f.Errs {
		if err != nil {
			return Info{}, fmt.Errorf("read conversation %s: %w", id, err)
		}
	}
	record, save := f.Rows[0], f.Rows[1]
	if record.Key == "" {
		return Info{}, fmt.Errorf("conversation %s: %w", id, ErrNotFound)
	}
	rec, err := decodeConversation(record)
	if err != nil {
		return Info{}, err
	}
	var last Save
	if save.Key != "" {
		last, err = decodeSave(save)
	}
	return infoOf(rec, last), err
}
