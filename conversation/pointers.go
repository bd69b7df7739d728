package conversation

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Pointer is a conversation and what points to it.
type Pointer struct {
	Info
	// Head is the root that its head names, zero if it has none.
	Head blob.ID
	// Filed are the keys that list it by workspace and agent.
	Filed []string
}

// Pointers returns the conversations whose records lie in a range of keyspace.Conversations,
// and the ids of those that cannot be read.
func (s *Store) Pointers(ctx context.Context, in kv.Range) (all []Pointer, unreadable []string, err error) {
	found, err := s.rows.ScanBeside(ctx, in, kv.ScanOptions{}, keyspace.BesideConversation()...)
	if err != nil {
		return nil, nil, fmt.Errorf("read conversations: %w", err)
	}
	filters, err := s.readFilters(ctx)
	if err != nil {
		return nil, nil, err
	}
	if filters != nil {
		filters.known = make(map[[2]string]string)
	}
	for _, f := range found {
		id := keyspace.Last(f.Key)
		info, err := describe(id, f)
		p := Pointer{Info: info}
		if head := f.Rows[2]; err == nil && head.Key != "" {
			p.Head, err = parseHead(head)
		}
		if err != nil {
			unreadable = append(unreadable, id)
			continue
		}
		p.Filed = filters.filed(info)
		all = append(all, p)
	}
	return all, unreadable, nil
}
