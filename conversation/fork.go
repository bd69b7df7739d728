package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/rowformat"
	"github.com/stet-dev/stet/kv"
)

// Fork creates a new conversation that begins with a save of another one, and opens
// it for writing. Both share their blobs. Empty fields of info, except the id, are
// taken from the origin. A seq of 0 means the current save.
func (s *Store) Fork(ctx context.Context, id string, seq uint64, info Info) (*Conversation, error) {
	return s.ForkWith(ctx, id, seq, info, nil)
}

// ForkWith is Fork, and extend may add changes to the commit of the fork. A conflict
// over such a change is returned as a kv.ConflictError.
func (s *Store) ForkWith(ctx context.Context, id string, seq uint64, info Info, extend func(fork Info, b *kv.Batch) error) (*Conversation, error) {
	c, err := s.fork(ctx, id, seq, info, extend)
	if err != nil {
		return nil, fmt.Errorf("fork conversation %s: %w", id, err)
	}
	return c, nil
}

func (s *Store) fork(ctx context.Context, id string, seq uint64, info Info, extend func(Info, *kv.Batch) error) (*Conversation, error) {
	origin, _, err := s.record(ctx, id)
	if err != nil {
		return nil, err
	}
	if seq == 0 {
		last, err := s.lastSave(ctx, id)
		if err != nil {
			return nil, err
		}
		seq = last.Seq
	}
	from, version, err := s.saveAt(ctx, id, seq)
	if err != nil {
		return nil, err
	}
	if err := s.sound(ctx, id, from.Root); err != nil {
		return nil, err
	}
	inherited := inherit(info, origin)
	rec, err := s.newRecord(inherited)
	if err != nil {
		return nil, err
	}
	rec.ForkedFrom, rec.ForkedFromSave = id, seq
	first := Save{Seq: 1, Root: from.Root, MessageID: from.MessageID, Time: time.UnixMilli(rec.CreatedAtMs), Author: from.Author, Turns: from.Turns, Kind: KindFork, Turn: from.Turn.forFork()}
	value, err := marshal(rec)
	if err != nil {
		return nil, err
	}
	row, err := first.row()
	if err != nil {
		return nil, err
	}
	// The commit expects the origin's save: its blobs, which the fork needs, are then
	// safe from a collector, which sees one or the other.
	b := &kv.Batch{
		Expect: []kv.Expect{{Key: keyspace.Conversation(rec.Id)}, {Key: keyspace.Head(rec.Id)}, {Key: keyspace.Save(id, seq), Version: version}},
		Set: []kv.Set{
			{Key: keyspace.Conversation(rec.Id), Value: value},
			{Key: keyspace.Head(rec.Id), Value: []byte(first.Root.String())},
			{Key: keyspace.Save(rec.Id, 1), Value: row},
			{Key: keyspace.ByTime(rec.CreatedAtMs, rec.Id)},
			changed(rec.Id),
		},
		Refs: []blob.ID{first.Root},
	}
	if first.MessageID != "" {
		b.Set = append(b.Set, kv.Set{Key: keyspace.MessageHead(rec.Id, first.MessageID), Value: []byte(first.Root.String())})
	}
	if extend != nil {
		inherited.ID = rec.Id
		if err := extend(inherited, b); err != nil {
			return nil, err
		}
	}
	err = s.commitNew(ctx, rec, b, s.rows.Commit)
	if conflict := new(kv.ConflictError); errors.As(err, &conflict) {
		switch conflict.Key {
		case keyspace.Save(id, seq):
			return nil, fmt.Errorf("save %d: %w", seq, ErrNotFound)
		case keyspace.Conversation(rec.Id), keyspace.Head(rec.Id):
			return nil, fmt.Errorf("conversation %s: %w", rec.Id, ErrExists)
		}
	}
	if err != nil {
		return nil, s.lostRoot(id, first.Root, err)
	}
	return s.openAs(ctx, rec)
}

// sound fails if the root of a save is damaged. A commit notices only a missing root.
func (s *Store) sound(ctx context.Context, id string, root blob.ID) error {
	if _, err := s.blobs.Get(ctx, root); errors.Is(err, blob.ErrCorrupt) {
		return s.lost(id, "save", err)
	}
	return nil
}

// lostRoot converts the error of a commit that names the root of a save to its meaning
// for callers: the save exists, but its state is lost.
func (s *Store) lostRoot(id string, root blob.ID, err error) error {
	var missing *kv.MissingBlobsError
	if errors.As(err, &missing) && slices.Contains(missing.IDs, root) {
		return s.lost(id, "save", blob.NotFound(root))
	}
	return err
}

func inherit(info Info, origin *stetv1.ConversationRecord) Info {
	if info.Title == "" {
		info.Title = origin.Title
	}
	if info.Workspace == "" {
		info.Workspace = origin.Workspace
	}
	if info.Agent == "" {
		info.Agent = origin.Agent
	}
	if info.Labels == nil {
		info.Labels = origin.Labels
	}
	return info
}

// Pin is a named save. Retention policies never remove it.
type Pin struct {
	Name         string
	Conversation string
	Seq          uint64
	Root         blob.ID
	Time         time.Time
}

// Pin names a save. It fails with ErrExists if the name is taken.
func (s *Store) Pin(ctx context.Context, name, id string, seq uint64) (Pin, error) {
	if err := checkID("pin", name); err != nil {
		return Pin{}, err
	}
	save, version, err := s.saveAt(ctx, id, seq)
	if err != nil {
		return Pin{}, err
	}
	if err := s.sound(ctx, id, save.Root); err != nil {
		return Pin{}, fmt.Errorf("pin %s: %w", name, err)
	}
	p := Pin{Name: name, Conversation: id, Seq: seq, Root: save.Root, Time: s.now()}
	value, err := marshal(&stetv1.PinRecord{
		Format: recordFormat, Name: name, Conversation: id, Seq: seq, Root: save.Root.Bytes(), TimeMs: p.Time.UnixMilli(),
	})
	if err != nil {
		return Pin{}, err
	}
	err = s.rows.Commit(ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: keyspace.Pin(name)}, {Key: keyspace.Save(id, seq), Version: version}},
		Set:    []kv.Set{{Key: keyspace.Pin(name), Value: value}, {Key: pinsKey, Value: []byte(name)}},
		Refs:   []blob.ID{save.Root},
	})
	if conflict := new(kv.ConflictError); errors.As(err, &conflict) && conflict.Key == keyspace.Save(id, seq) {
		return Pin{}, fmt.Errorf("pin %s: save %d of conversation %s: %w", name, seq, id, ErrNotFound)
	}
	if errors.Is(err, kv.ErrConflict) {
		return Pin{}, fmt.Errorf("pin %s: %w", name, ErrExists)
	}
	if err != nil {
		return Pin{}, fmt.Errorf("pin %s: %w", name, s.lostRoot(id, save.Root, err))
	}
	return p, nil
}

// Unpin removes a pin, or fails with ErrNotFound.
func (s *Store) Unpin(ctx context.Context, name string) error {
	if err := checkID("pin", name); err != nil {
		return err
	}
	row, err := s.rows.Get(ctx, keyspace.Pin(name))
	if errors.Is(err, kv.ErrNotFound) {
		return fmt.Errorf("pin %s: %w", name, ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("unpin %s: %w", name, err)
	}
	err = s.rows.Commit(ctx, &kv.Batch{Expect: []kv.Expect{{Key: row.Key, Version: row.Version}}, Delete: []string{row.Key}})
	if err != nil {
		return fmt.Errorf("unpin %s: %w", name, err)
	}
	return nil
}

// pinsKey is a row that every new pin changes. Removing saves expects it unchanged
// since the pins were read, so that no pin is added in between.
var pinsKey = keyspace.Setting("pins")

// pinsNow returns the pins, and an expectation that fails after a new one.
func (s *Store) pinsNow(ctx context.Context) ([]Pin, kv.Expect, error) {
	row, err := s.rows.Get(ctx, pinsKey)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return nil, kv.Expect{}, fmt.Errorf("read pins: %w", err)
	}
	pins, err := s.Pins(ctx)
	return pins, kv.Expect{Key: pinsKey, Version: row.Version}, err
}

// Pins returns all pins, by name. With an error that is Damaged it returns the
// readable ones.
func (s *Store) Pins(ctx context.Context) ([]Pin, error) {
	var pins []Pin
	var damaged []error
	for row, err := range kv.Each(ctx, s.rows, keyspace.Pins(), false) {
		var p Pin
		if err == nil {
			p, err = decodePin(row)
		}
		switch {
		case err == nil:
			pins = append(pins, p)
		case row.Key != "" && Damaged(err):
			damaged = append(damaged, fmt.Errorf("read pins: %w", err))
		default:
			return nil, fmt.Errorf("read pins: %w", err)
		}
	}
	return pins, errors.Join(damaged...)
}

// DecodePin reads the row of a pin.
func DecodePin(row kv.Row) (Pin, error) { return decodePin(row) }

func decodePin(row kv.Row) (Pin, error) {
	rec := new(stetv1.PinRecord)
	if err := rowformat.Decode(row, rec, recordFormat); err != nil {
		return Pin{}, err
	}
	root, err := blob.IDFromBytes(rec.Root)
	if err != nil {
		return Pin{}, corrupt(row, "%w", err)
	}
	ids, err := idsOf(row, keyspace.Pins().Start, 1)
	switch {
	case err != nil:
		return Pin{}, err
	case rec.Name != ids[0] || rec.Seq == 0 || rec.Seq > MaxSeq:
		return Pin{}, corrupt(row, "pin %q on save %d", rec.Name, rec.Seq)
	}
	if err := errors.Join(checkID("conversation", rec.Conversation), checkTime(row, rec.TimeMs)); err != nil {
		return Pin{}, corrupt(row, "%w", err)
	}
	return Pin{Name: rec.Name, Conversation: rec.Conversation, Seq: rec.Seq, Root: root, Time: time.UnixMilli(rec.TimeMs)}, nil
}
