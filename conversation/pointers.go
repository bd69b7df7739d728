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
	// Filed are the keys under which it is listed by workspace and agent.
	Filed []string
}

// Pointers returns the conversations whose records lie between those of two ids, both
// included, without those that cannot be read.
func (s *Store) Pointers(ctx context.Context, first, last string) (map[string]Pointer, error) {
	in := kv.Range{Start: keyspace.Conversation(first), End: keyspace.Conversation(last) + "\x00"}
	found, err := s.rows.ScanBeside(ctx, in, kv.ScanOptions{}, keyspace.BesideConversation()...)
	if err != nil {
		return nil, fmt.Errorf("read conversations: %w", err)
	}
	filters, err := s.readFilters(ctx)
	if err != nil {
		return nil, err
	}
	if filters != nil {
		filters.known = make(map[[2]string]string)
	}
	all := make(map[string]Pointer, len(found))
	for _, f := range found {
		id := keyspace.Last(f.Key)
		info, err := describe(id, f)
		p := Pointer{Info: info, Filed: filters.filed(info)}
		if head := f.Rows[2]; err == nil && head.Key != "" {
			p.Head, err = parseHead(head)
		}
		if err == nil {
			all[id] = p
		}
	}
	return all, nil
}
