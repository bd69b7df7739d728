package conversation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// decodeRow parses a row of ours and refuses one of a newer format, so that
// nobody takes it for damaged or empty.
func decodeRow(row kv.Row, into interface {
	proto.Message
	GetFormat() uint32
}) error {
	if err := proto.Unmarshal(row.Value, into); err != nil {
		return fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, row.Key, err)
	}
	switch f := into.GetFormat(); {
	case f == 0:
		return fmt.Errorf("%w: row %q has no format", kv.ErrCorrupt, row.Key)
	case f > recordFormat:
		return fmt.Errorf("%w: row %q has %d, this release knows %d", ErrNewerFormat, row.Key, f, recordFormat)
	}
	return nil
}

// Kind says why a save was made.
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
}

func (s Save) row() ([]byte, error) {
	return marshal(&stetv1.SaveRecord{
		Format: recordFormat, Seq: s.Seq, Parent: s.Parent, Root: s.Root.Bytes(), MessageId: s.MessageID,
		TimeMs: s.Time.UnixMilli(), Author: s.Author, Turns: s.Turns, Kind: stetv1.SaveKind(s.Kind),
		Branch: s.Branch, RewoundFrom: s.RewoundFrom,
	})
}

func decodeSave(row kv.Row) (Save, error) {
	rec := new(stetv1.SaveRecord)
	if err := decodeRow(row, rec); err != nil {
		return Save{}, err
	}
	root, err := blob.IDFromBytes(rec.Root)
	if err != nil {
		return Save{}, fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, row.Key, err)
	}
	if n, err := keyspace.ParseNumber(keyspace.Last(row.Key)); err != nil || n != rec.Seq || rec.Parent >= rec.Seq {
		return Save{}, fmt.Errorf("%w: row %q says save %d after %d", kv.ErrCorrupt, row.Key, rec.Seq, rec.Parent)
	}
	return Save{
		Seq: rec.Seq, Parent: rec.Parent, Root: root, MessageID: rec.MessageId, Time: time.UnixMilli(rec.TimeMs),
		Author: rec.Author, Turns: rec.Turns, Kind: Kind(rec.Kind), Branch: rec.Branch, RewoundFrom: rec.RewoundFrom,
	}, nil
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

// pageSize is how many rows are read at once where something else is read
// between them.
const pageSize = 512

// paged gives the rows of a range like Scan, but reads them a page at a time, so
// that no scan is open, with the connection that it may hold, while the caller
// reads blobs and other rows. A row that cannot be read is given with its key and
// an error, and the ones after it follow; an error without a key ends the rows.
func (s *Store) paged(ctx context.Context, r kv.Range, reverse bool) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		opts := kv.ScanOptions{Reverse: reverse, Limit: pageSize}
		for {
			page, err := s.page(ctx, r, opts)
			if err != nil {
				yield(kv.Row{}, err)
				return
			}
			for _, row := range page {
				if errors.Is(row.err, kv.ErrNotFound) {
					continue // deleted since its key was read
				}
				if !yield(row.Row, row.err) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
			if last := page[len(page)-1].Key; reverse {
				r.End = last
			} else {
				r.Start = last + "\x00"
			}
		}
	}
}

// readRow is a row, or only its key and why it cannot be read.
type readRow struct {
	kv.Row
	err error
}

// page reads rows at once or, where a scan ends at one that is damaged, one by
// one.
func (s *Store) page(ctx context.Context, r kv.Range, opts kv.ScanOptions) ([]readRow, error) {
	page, err := s.scanned(ctx, r, opts)
	if err == nil || ctx.Err() != nil {
		return page, err
	}
	opts.KeysOnly = true
	if page, err = s.scanned(ctx, r, opts); err != nil {
		return nil, err
	}
	for i := range page {
		row, err := s.rows.Get(ctx, page[i].Key)
		if ctx.Err() != nil || errors.Is(err, kv.ErrBusy) {
			return nil, err
		}
		if err == nil {
			page[i].Row = row
		}
		page[i].err = err
	}
	return page, nil
}

func (s *Store) scanned(ctx context.Context, r kv.Range, opts kv.ScanOptions) ([]readRow, error) {
	page := make([]readRow, 0, pageSize)
	for row, err := range s.rows.Scan(ctx, r, opts) {
		if err != nil {
			return nil, err
		}
		page = append(page, readRow{Row: row})
	}
	return page, nil
}
