package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// few is the number of conversations in a span up to which it is cheaper to read and sort
// them than to look for them in the order of all. One more fills a page of a driver.
var few = 255

// maxMembers limits how many ids of a span are read to pass over other conversations.
const maxMembers = 1 << 14

// filing is a row that lists a conversation.
type filing struct {
	span uint64
	id   string
}

// filed fills the page with conversations that are listed under a sum, newest spans first.
func (l *list) filed(ctx context.Context, sum string) error {
	in := keyspace.ConversationsOf(sum)
	if l.opts.Cursor != "" {
		ms, err := keyspace.ParseNumber(keyspace.Parts(l.in.End)[2])
		if err != nil || ms > maxTimeMS {
			return invalid("cursor %q", l.opts.Cursor)
		}
		in = keyspace.ConversationsBefore(sum, keyspace.Span(int64(ms))+1)
	}
	for !l.full() {
		found, more, err := l.s.filings(ctx, in, few+1)
		if err != nil || len(found) == 0 {
			return err
		}
		last := found[len(found)-1].span
		if more && found[0].span == last {
			if err := l.dense(ctx, sum, last); err != nil {
				return err
			}
			in = keyspace.ConversationsBefore(sum, last)
			continue
		}
		if more { // the last span may have more
			found = slices.DeleteFunc(found, func(f filing) bool { return f.span == last })
			in = keyspace.ConversationsBefore(sum, last+1)
		}
		for len(found) > 0 && !l.full() {
			n := l.enough(found)
			if err := l.sparse(ctx, found[:n]); err != nil {
				return err
			}
			found = found[n:]
		}
		if !more {
			return nil
		}
	}
	return nil
}

// filings returns the last rows of a range that list conversations, and whether there may
// be more.
func (s *Store) filings(ctx context.Context, in kv.Range, limit int) (found []filing, more bool, err error) {
	for {
		n := 0
		for row, err := range s.rows.Scan(ctx, in, kv.ScanOptions{Reverse: true, Limit: limit, KeysOnly: true}) {
			if err != nil {
				return nil, false, fmt.Errorf("list conversations: %w", err)
			}
			n++
			in.End = row.Key
			// A row of an earlier release stays if its conversation could not be read.
			if span, id, ok := keyspace.ParseConversationOf(row.Key); ok {
				found = append(found, filing{span, id})
			}
		}
		if more = n == limit; !more || len(found) > 0 {
			return found, more, nil
		}
	}
}

// enough returns how many rows, of whole spans, are enough to fill the page.
func (l *list) enough(found []filing) int {
	n := min(l.limit-len(l.page.Conversations), len(found))
	for n < len(found) && found[n].span == found[n-1].span {
		n++
	}
	return n
}

// sparse adds the conversations of whole spans: it reads all and sorts them.
func (l *list) sparse(ctx context.Context, found []filing) error {
	var all []placed
	keys := make([]string, len(found))
	for i, f := range found {
		keys[i] = keyspace.Conversation(f.id)
	}
	ahead := l.s.getAhead(ctx, keys, len(keys))
	for _, f := range found {
		info, err := ahead.next()
		switch {
		case errors.Is(err, ErrNotFound): // deleted since the keys were read
		case Damaged(err):
			// Its place is unknown. It belongs to the first page that reads the span.
			if end := keyspace.ByTimesIn(f.span).End; end <= l.in.End {
				l.page.Damaged = append(l.page.Damaged, Unreadable{f.id, err})
			}
		case err != nil:
			return err
		default:
			// One that was saved meanwhile belongs to an earlier page.
			key := keyspace.ByTime(info.Updated.UnixMilli(), f.id)
			if l.in.Contains(key) && keyspace.ByTimesIn(f.span).Contains(key) && l.opts.matches(info) {
				all = append(all, placed{key: key, info: info})
			}
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return strings.Compare(b.key, a.key) })
	for _, one := range all {
		if l.full() {
			break
		}
		l.add(one.key, one.info)
	}
	return nil
}

// dense adds the conversations of a span that has many of them: it looks for them in the
// order of all.
func (l *list) dense(ctx context.Context, sum string, span uint64) error {
	in := keyspace.ByTimesIn(span)
	in.End = min(in.End, l.in.End)
	return l.walk(ctx, in, func() (map[string]bool, error) {
		found, more, err := l.s.filings(ctx, keyspace.ConversationsIn(sum, span), maxMembers)
		if err != nil || more {
			return nil, err
		}
		members := make(map[string]bool, len(found))
		for _, f := range found {
			members[f.id] = true
		}
		return members, nil
	})
}
