package conversation

import (
	"context"
	"fmt"
	"time"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// Kind is the reason for a save.
type Kind uint8

// The kinds of saves.
const (
	// KindSave continues a state.
	KindSave Kind = Kind(stetv1.SaveKind_SAVE_KIND_SAVE)
	// KindRewind returns to an earlier save.
	KindRewind Kind = Kind(stetv1.SaveKind_SAVE_KIND_REWIND)
	// KindFork begins with a save of another conversation.
	KindFork Kind = Kind(stetv1.SaveKind_SAVE_KIND_FORK)
	// KindImport brings a state from another store.
	KindImport Kind = Kind(stetv1.SaveKind_SAVE_KIND_IMPORT)
)

func (k Kind) String() string {
	switch k {
	case KindSave:
		return "save"
	case KindRewind:
		return "rewind"
	case KindFork:
		return "fork"
	case KindImport:
		return "import"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Save is one entry of a conversation's history.
type Save struct {
	// Seq numbers the saves of a conversation from 1. The highest is the current
	// one.
	Seq uint64
	// Parent is the save that this one continues, 0 for the first.
	Parent uint64
	Root   blob.ID
	// MessageID is the message at which the save was made, if any.
	MessageID string
	Time      time.Time
	Author    string
	Turns     uint64
	Kind      Kind
	// Branch is the label of the branch, empty for the first one.
	Branch string
	// RewoundFrom is, for a rewind, the save that was current before.
	RewoundFrom uint64
	// Turn is what is known about the last turn, nil if nothing is.
	Turn *TurnDetails
}

func (s Save) row() ([]byte, error) {
	return marshal(&stetv1.SaveRecord{
		Format: recordFormat, Seq: s.Seq, Parent: s.Parent, Root: s.Root.Bytes(), MessageId: s.MessageID,
		TimeMs: s.Time.UnixMilli(), Author: s.Author, Turns: s.Turns, Kind: stetv1.SaveKind(s.Kind),
		Branch: s.Branch, RewoundFrom: s.RewoundFrom, Turn: s.Turn.record(),
	})
}

func decodeSave(row kv.Row) (Save, error) {
	rec := new(stetv1.SaveRecord)
	if err := rowformat.Decode(row, rec, recordFormat); err != nil {
		return Save{}, err
	}
	root, err := blob.IDFromBytes(rec.Root)
	if err != nil {
		return Save{}, fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, row.Key, err)
	}
	if err := checkSave(row, rec); err != nil {
		return Save{}, err
	}
	return Save{
		Seq: rec.Seq, Parent: rec.Parent, Root: root, MessageID: rec.MessageId, Time: time.UnixMilli(rec.TimeMs),
		Author: rec.Author, Turns: rec.Turns, Kind: Kind(rec.Kind), Branch: rec.Branch, RewoundFrom: rec.RewoundFrom,
		Turn: turnDetails(rec.Turn),
	}, nil
}

// changed is a part of every commit that changes the messages or the title of a
// conversation, or removes it: these rows show an index what to read again.
func changed(id string) kv.Set { return kv.Set{Key: keyspace.Changed(id)} }

// Changed records that conversations may have changed, for code that changes rows below
// this package.
func (s *Store) Changed(ctx context.Context, ids ...string) error {
	b := &kv.Batch{}
	for _, id := range ids {
		b.Set = append(b.Set, changed(id))
	}
	if err := s.rows.Commit(ctx, b); err != nil {
		return fmt.Errorf("note changed conversations: %w", err)
	}
	return nil
}

// lastSave returns the current save, or the zero Save if there is none.
func (s *Store) lastSave(ctx context.Context, id string) (Save, error) {
	for row, err := range s.rows.Scan(ctx, keyspace.Saves(id), kv.ScanOptions{Reverse: true, Limit: 1}) {
		if err != nil {
			return Save{}, fmt.Errorf("read history of %s: %w", id, err)
		}
		return decodeSave(row)
	}
	return Save{}, nil
}

// parseHead reads the value of a head row.
func parseHead(row kv.Row) (blob.ID, error) {
	id, err := blob.ParseID(string(row.Value))
	if err != nil {
		return blob.ID{}, fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, row.Key, err)
	}
	return id, nil
}
