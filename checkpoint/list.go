package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Get returns a checkpoint by its full id.
func (s *Service) Get(ctx context.Context, id string) (*Record, error) {
	if id == "" {
		return nil, fmt.Errorf("%w: no id", ErrNotFound)
	}
	row, err := s.rows.Get(ctx, keyspace.Checkpoint(id))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	if err != nil {
		return nil, fmt.Errorf("load checkpoint %q: %w", id, err)
	}
	return readRecord(row)
}

// ListOptions configure a list; nil lists everything, newest first.
type ListOptions struct {
	// Conversation limits the list to one conversation.
	Conversation string
	// Before continues a list: only checkpoints older than this id are listed.
	Before string
	// Limit ends the list after that many checkpoints; 0 means no limit.
	Limit int
}

// List yields the checkpoints of a workspace, newest first.
func (w *Workspace) List(ctx context.Context, opts *ListOptions) iter.Seq2[*Record, error] {
	return w.s.ListWorkspace(ctx, w.id, opts)
}

// ListWorkspace yields the checkpoints of the workspace with an id, newest first. The
// directory need not exist.
func (s *Service) ListWorkspace(ctx context.Context, workspace string, opts *ListOptions) iter.Seq2[*Record, error] {
	var o ListOptions
	if opts != nil {
		o = *opts
	}
	return o.selected((&Workspace{s: s, id: workspace}).newestFirst(ctx, o.Before))
}

// selected yields those of the conversation, up to the limit. Unreadable ones count,
// too.
func (o ListOptions) selected(records iter.Seq2[*Record, error]) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		n := 0
		for rec, err := range records {
			if err == nil && o.Conversation != "" && rec.Conversation != o.Conversation {
				continue
			}
			if !yield(rec, err) {
				return
			}
			if n++; n == o.Limit {
				return
			}
		}
	}
}

// newestFirst yields the checkpoints of the workspace older than before, or all if
// before is empty.
func (w *Workspace) newestFirst(ctx context.Context, before string) iter.Seq2[*Record, error] {
	r := keyspace.WorkspaceCheckpoints(w.id)
	if before != "" {
		r.End = keyspace.WorkspaceCheckpoint(w.id, before)
	}
	return w.s.listed(ctx, r, true)
}

// ListConversation yields the checkpoints of a conversation in all workspaces, newest
// first.
func (s *Service) ListConversation(ctx context.Context, conversation string) iter.Seq2[*Record, error] {
	return s.listed(ctx, keyspace.ConversationCheckpoints(conversation), true)
}

// CountBetween counts the checkpoints of a workspace that were made after one and
// before another, including unreadable ones.
func (s *Service) CountBetween(ctx context.Context, workspace, after, before string) (n uint64, err error) {
	r := kv.Range{Start: keyspace.WorkspaceCheckpoint(workspace, after) + "\x00", End: keyspace.WorkspaceCheckpoint(workspace, before)}
	for _, err := range s.rows.Scan(ctx, r, kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return 0, fmt.Errorf("count checkpoints: %w", err)
		}
		n++
	}
	return n, nil
}

// listed yields the checkpoints in the rows of an index. It reads many at once, and few first:
// most callers want the newest ones only.
func (s *Service) listed(ctx context.Context, r kv.Range, reverse bool) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		found := &gathered{s: s}
		var rows []kv.Row
		give := func() bool {
			found.read(ctx, rows)
			for _, row := range rows {
				rec, err := found.get(ctx, row)
				if rec == nil && err == nil {
					continue // removed since the scan began
				}
				var unread *UnreadableError
				if !yield(rec, err) || err != nil && !errors.As(err, &unread) {
					return false
				}
			}
			rows = rows[:0]
			return true
		}
		some := firstListed
		for row, err := range s.rows.Scan(ctx, r, kv.ScanOptions{Reverse: reverse, KeysOnly: true}) {
			if err != nil {
				if give() {
					yield(nil, fmt.Errorf("list checkpoints: %w", err))
				}
				return
			}
			if rows = append(rows, row); len(rows) == some {
				if !give() {
					return
				}
				some = min(2*some, mostListed)
			}
		}
		give()
	}
}

const (
	firstListed = 4   // read by one scan, for callers that want few
	mostListed  = 512 // read by one scan
)

// gathered reads the rows of checkpoints that an index names.
type gathered struct {
	s     *Service
	rows  map[string]kv.Row // by key
	alone bool              // other rows lie between them, so each is read by itself
}

// read reads adjacent rows with one scan. Rows that it misses are read one by one: others may
// lie between them, or something is damaged.
func (g *gathered) read(ctx context.Context, listed []kv.Row) {
	clear(g.rows)
	if g.alone || len(listed) < 2 {
		return
	}
	if g.rows == nil {
		g.rows = make(map[string]kv.Row, mostListed)
	}
	first, last := keyspace.Checkpoint(keyspace.Last(listed[0].Key)), keyspace.Checkpoint(keyspace.Last(listed[len(listed)-1].Key))
	if last < first {
		first, last = last, first
	}
	limit := 2*len(listed) + 16
	for row, err := range g.s.rows.Scan(ctx, kv.Range{Start: first, End: last + "\x00"}, kv.ScanOptions{Limit: limit}) {
		if err != nil {
			break
		}
		g.rows[row.Key] = row
	}
	g.alone = len(g.rows) == limit
}

// get returns the checkpoint that a row of an index names. It returns nil if that no longer
// exists.
func (g *gathered) get(ctx context.Context, listed kv.Row) (*Record, error) {
	id := keyspace.Last(listed.Key)
	var rec *Record
	var err error
	if row, ok := g.rows[keyspace.Checkpoint(id)]; ok {
		rec, err = readRecord(row)
	} else {
		rec, err = g.s.Get(ctx, id)
	}
	if errors.Is(err, ErrNotFound) {
		if err = g.s.dangling(ctx, listed); err == nil {
			return nil, nil
		}
	}
	if kv.Damaged(err) {
		return nil, &UnreadableError{ID: id, Err: err}
	}
	return rec, err
}

// dangling returns an error if a list still names a missing checkpoint: both are
// written in one commit, so one of them was lost.
func (s *Service) dangling(ctx context.Context, listed kv.Row) error {
	_, err := s.rows.Get(ctx, listed.Key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	if _, err = s.Get(ctx, keyspace.Last(listed.Key)); errors.Is(err, ErrNotFound) {
		return bad("row %q lists a checkpoint that is not there", listed.Key)
	}
	return nil
}

// listsTip fails if the list of the workspace lacks its latest checkpoint. Otherwise
// its changes would count as the user's work, and a rewind would leave them alone.
func (w *Workspace) listsTip(ctx context.Context, st *state) error {
	if st.tip == nil {
		return nil
	}
	key := keyspace.WorkspaceCheckpoint(w.id, st.tip.ID)
	_, err := w.s.rows.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return bad("row %q is missing, so that the latest checkpoint, %s, is not listed; 'stet fsck' names all damage", key, st.tip.Name())
	}
	return err
}
