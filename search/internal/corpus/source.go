// Package corpus has the parts of a conversation index that are the same for all
// engines: which conversations changed, their sections and messages, parsed queries,
// and snippets.
package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/transcript"
)

// Source is the source of the indexed texts.
type Source struct {
	// Conversations are the indexed conversations.
	Conversations *conversation.Store
	rows          kv.Store
	reader        *transcript.Reader
}

// NewSource returns the source of a store; blobs and rows are those that it works
// on.
func NewSource(conversations *conversation.Store, blobs blob.Store, rows kv.Store) *Source {
	return &Source{Conversations: conversations, rows: rows, reader: transcript.New(conversations, blobs)}
}

// Marks show whether a conversation has changed since it was indexed. Every write
// gives a row a new version, even if two saves fall into one millisecond.
type Marks struct {
	Listed        string // key of the row that orders the conversation by time
	ListedVersion uint64
	RecordVersion uint64
}

// Known is what an index records about a conversation.
type Known struct {
	ID    string
	Marks Marks
	// Tips are the last saves of its other branches, as a JSON list.
	Tips string
}

// Stale returns the conversations whose rows have changed since they were indexed; a
// removed conversation has empty marks.
func (s *Source) Stale(ctx context.Context, known []Known) (map[string]Marks, error) {
	stale, err := s.live(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range known {
		now, ok := stale[k.ID]
		switch {
		case !ok:
			stale[k.ID] = Marks{}
		case now == k.Marks:
			there, err := s.branchesThere(ctx, k.ID, k.Tips)
			if err != nil {
				return nil, err
			}
			if there {
				delete(stale, k.ID)
			}
		}
	}
	return stale, nil
}

// branchesThere reports whether the branches of a conversation still exist: a
// retention policy removes them without touching other rows.
func (s *Source) branchesThere(ctx context.Context, id, tips string) (bool, error) {
	var seqs []uint64
	if err := json.Unmarshal([]byte(tips), &seqs); err != nil {
		return false, nil // rewrite it
	}
	for _, seq := range seqs {
		_, err := s.rows.Get(ctx, keyspace.Save(id, seq))
		if errors.Is(err, kv.ErrNotFound) {
			return false, nil
		}
		if err != nil && !kv.Damaged(err) {
			return false, err
		}
	}
	return true, nil
}

// live returns the marks of all conversations. It reads no values.
func (s *Source) live(ctx context.Context) (map[string]Marks, error) {
	live := make(map[string]Marks)
	for row, err := range s.rows.Scan(ctx, keyspace.Conversations(), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return nil, fmt.Errorf("list conversations: %w", err)
		}
		live[keyspace.Last(row.Key)] = Marks{RecordVersion: row.Version}
	}
	for row, err := range s.rows.Scan(ctx, keyspace.ByTimes(), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return nil, fmt.Errorf("list conversations: %w", err)
		}
		if m, ok := live[keyspace.Last(row.Key)]; ok {
			m.Listed, m.ListedVersion = row.Key, row.Version
			live[keyspace.Last(row.Key)] = m
		}
	}
	return live, nil
}

// MarksOf returns the marks of one conversation, empty if it is removed. They are
// read before its state, so that a save in between makes the next update look again.
func (s *Source) MarksOf(ctx context.Context, id string) (Marks, error) {
	var m Marks
	row, err := s.rows.Get(ctx, keyspace.Conversation(id))
	if errors.Is(err, kv.ErrNotFound) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	info, err := s.Conversations.Get(ctx, id)
	if errors.Is(err, conversation.ErrNotFound) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	m.RecordVersion = row.Version
	key := keyspace.ByTime(info.Updated.UnixMilli(), id)
	row, err = s.rows.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return m, nil // saved again meanwhile: never equal, so checked again
	}
	if err != nil {
		return m, err
	}
	m.Listed, m.ListedVersion = key, row.Version
	return m, nil
}
