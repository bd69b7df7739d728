package pack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Contents is everything that belongs to a conversation.
type Contents struct {
	// Rows are all its rows, as Bare returns them. Include every row that refers to a
	// blob, and every row that shares a key prefix with one included.
	Rows []kv.Row
	// Blobs are the stored names of the blobs that the rows need, in the order in which
	// they are likely to be read. Their bases are added, and missing blobs are left out.
	Blobs []blob.ID
}

// Archive moves a conversation into packs. gather is called once and returns its
// contents; an error of gather ends the archiving. If Archive fails with ErrArchived,
// ErrEmpty or ErrChanged, the conversation is unchanged.
func (s *Store) Archive(ctx context.Context, id string, gather func(context.Context) (Contents, error)) (Info, error) {
	if err := s.announce(ctx, id); err != nil {
		return Info{}, fmt.Errorf("archive %s: %w", id, err)
	}
	ctx, read := s.taking(ctx)
	defer read.end()
	w := &writer{s: s, prefix: s.newPrefix(), taken: read}
	note, e, err := s.archive(ctx, id, w, gather)
	if err == nil {
		s.remember(e)
		return e.info(), nil
	}
	if errors.Is(err, errUnknown) {
		// The rows may be gone, and the objects the only copy. If not, Sweep removes
		// the objects.
		return Info{}, fmt.Errorf("archive %s: %w", id, err)
	}
	clean := context.WithoutCancel(ctx)
	_ = s.objects.RemoveObjects(clean, w.keys()...) // Sweep finds what is left
	if note != nil {                                // otherwise the next archiving replaces it
		_ = s.rows.Commit(clean, &kv.Batch{Expect: []kv.Expect{{Key: note.key(), Version: note.version}}, Delete: []string{note.key()}})
	}
	return Info{}, fmt.Errorf("archive %s: %w", id, err)
}

// errUnknown means that a commit may or may not have happened.
var errUnknown = fault.New(fault.Uncertain, "the outcome of the commit is unknown")

// announce writes the note that an archiving is running. From then on, a writer that
// changes the conversation removes the note. An existing note is from a process that
// died, or that will notice at its end that it was too slow.
func (s *Store) announce(ctx context.Context, id string) error {
	note := &entry{id: id, state: archiving, time: s.opts.Now()}
	expect := kv.Expect{Key: note.key()}
	for range 2 { // most have none
		err := s.rows.Commit(ctx, &kv.Batch{Expect: []kv.Expect{expect}, Set: []kv.Set{{Key: note.key(), Value: note.encode()}}})
		if !errors.Is(err, kv.ErrConflict) {
			return err
		}
		old, readErr := s.note(ctx, id)
		switch {
		case readErr != nil:
			return readErr
		case old == nil || expect.Version != 0:
			return fmt.Errorf("%w: %w", ErrChanged, err)
		case old.state == archived:
			return ErrArchived
		}
		expect.Version = old.version
	}
	return ErrChanged
}

// begun holds what an archiving reads before the contents: its note, and the record and
// the head of the conversation, each of which may be absent. A save that relies on the
// record alone changes the head, so rows that are read after this head, with the head
// unchanged, show one moment.
type begun struct {
	note         *entry
	record, head kv.Row // without a key if absent
}

func (s *Store) begun(ctx context.Context, id string) (b begun, err error) {
	var work sync.WaitGroup
	var errs [3]error
	work.Go(func() { b.note, errs[0] = s.note(ctx, id) })
	work.Go(func() { b.record, errs[1] = s.rowOrNone(ctx, keyspace.Conversation(id)) })
	work.Go(func() { b.head, errs[2] = s.rowOrNone(ctx, keyspace.Head(id)) })
	work.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return b, err
	}
	if b.note == nil || b.note.state != archiving {
		b.note = nil
		return b, ErrChanged
	}
	return b, nil
}

func (s *Store) rowOrNone(ctx context.Context, key string) (kv.Row, error) {
	row, err := s.rows.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return kv.Row{}, nil
	}
	return row, err
}

// sameHead fails if the head has changed since.
func (b begun) sameHead(id string, rows []kv.Row) error {
	now := uint64(0)
	for _, row := range rows {
		if row.Key == keyspace.Head(id) {
			now = row.Version
		}
	}
	if now != b.head.Version {
		return fmt.Errorf("%w: it was saved", ErrChanged)
	}
	return nil
}

func (s *Store) archive(ctx context.Context, id string, w *writer, gather func(context.Context) (Contents, error)) (note, e *entry, err error) {
	from, err := s.begun(ctx, id)
	note = from.note
	var in Contents
	if err == nil {
		in, err = gather(ctx)
	}
	if err == nil {
		err = checkContents(id, in.Rows)
	}
	if err == nil {
		err = from.sameHead(id, in.Rows)
	}
	if err != nil {
		return note, nil, err
	}
	blobs, err := s.describe(ctx, in.Blobs, w.taken)
	if err != nil {
		return note, nil, err
	}
	e = &entry{id: id, state: archived, time: s.opts.Now(), rows: uint64(len(in.Rows)), blobs: uint64(len(blobs))}
	if e.objects, err = w.write(ctx, in.Rows, blobs); err != nil {
		return note, nil, err
	}
	if err := s.verifyWritten(ctx, e, w); err != nil {
		return note, nil, err
	}
	names := make([]blob.ID, len(blobs))
	for i, b := range blobs {
		names[i] = b.ID
	}
	e.filter = newFilter(names)
	return note, e, s.exchange(ctx, from, e, in.Rows, names)
}

// checkContents rejects rows that could not be found in a pack.
func checkContents(id string, rows []kv.Row) error {
	if len(rows) == 0 {
		return ErrEmpty
	}
	slices.SortFunc(rows, func(a, b kv.Row) int { return strings.Compare(a.Key, b.Key) })
	agents := make(map[string]bool)
	for i, row := range rows {
		if i > 0 && rows[i-1].Key == row.Key || row.Version == 0 {
			return fmt.Errorf("%w: row %q is given twice, or without a version", kv.ErrInvalidBatch, row.Key)
		}
		agents[keyspace.Packed(row.Key)] = isShadow(row.Key)
	}
	for _, row := range rows {
		if guard := guardOf(row.Key); guard != keyspace.Pack(id) && !agents[guard] {
			return fmt.Errorf("%w: row %q does not belong to %s", kv.ErrInvalidBatch, row.Key, id)
		}
	}
	return nil
}

// verifyWritten reads the index of every object back, and counts.
func (s *Store) verifyWritten(ctx context.Context, e *entry, w *writer) error {
	rows, blobs := e.rows, e.blobs
	for i, o := range e.objects {
		x, err := s.readIndex(ctx, o, s.readRange)
		if err != nil {
			return fmt.Errorf("verify packs: %w", err)
		}
		if string(x.end()) != string(w.indexes[i].end()) {
			return fmt.Errorf("verify packs: object %s: %w", o.key, damaged("it differs from what was written"))
		}
		rows, blobs = rows-uint64(len(x.rows)), blobs-uint64(len(x.blobs))
	}
	if rows != 0 || blobs != 0 {
		return fmt.Errorf("verify packs: %w", damaged("rows or blobs are missing"))
	}
	return nil
}

// exchange replaces the rows by the row of the catalog in one commit. The commit also
// refers to the blobs: a running collector then leaves them to the next one, and
// readers on other nodes that have just read the rows find them.
func (s *Store) exchange(ctx context.Context, from begun, e *entry, rows []kv.Row, blobs []blob.ID) error {
	b := &kv.Batch{Expect: []kv.Expect{{Key: from.note.key(), Version: from.note.version}}, Refs: blobs}
	from.shut(e.id, b)
	saves := keyspace.Saves(e.id)
	for i, row := range rows {
		b.Expect = append(b.Expect, kv.Expect{Key: row.Key, Version: row.Version})
		b.Delete = append(b.Delete, row.Key)
		if isShadow(row.Key) {
			b.Set = append(b.Set, (&shadow{conversation: e.id, row: row}).set())
			e.shadows++
		}
		last := saves.Contains(row.Key) && (i+1 == len(rows) || !saves.Contains(rows[i+1].Key))
		if last || row.Key == keyspace.Head(e.id) {
			e.hot = append(e.hot, row)
		}
	}
	b.Set = append(b.Set, kv.Set{Key: e.key(), Value: e.encode()})
	err := s.rows.Commit(ctx, b)
	var missing *kv.MissingBlobsError
	switch {
	case err == nil:
		// The next reader learns its version; until then it counts as outdated.
		return nil
	case errors.Is(err, kv.ErrConflict):
		return fmt.Errorf("%w: %w", ErrChanged, err)
	case errors.As(err, &missing) || errors.Is(err, kv.ErrInvalidKey) || errors.Is(err, kv.ErrInvalidBatch) || errors.Is(err, kv.ErrTooLarge):
		return err
	}
	return s.outcome(ctx, e, err)
}

// shut makes an archiving visible to writers that rely on the record of the
// conversation: it rewrites the record unchanged. See commit.implied.
func (b begun) shut(id string, batch *kv.Batch) {
	if b.head.Version == 0 {
		batch.Expect = append(batch.Expect, kv.Expect{Key: keyspace.Head(id)})
	}
	if b.record.Version != 0 {
		batch.Expect = append(batch.Expect, kv.Expect{Key: b.record.Key, Version: b.record.Version})
		batch.Set = append(batch.Set, kv.Set{Key: b.record.Key, Value: b.record.Value})
	}
}

// outcome determines the outcome of a commit whose error leaves it open.
func (s *Store) outcome(ctx context.Context, e *entry, cause error) error {
	now, err := s.note(context.WithoutCancel(ctx), e.id)
	if err == nil && now != nil && now.state == archived && now.objects[0].key == e.objects[0].key {
		e.version = now.version
		return nil
	}
	return fmt.Errorf("%w: %w", errUnknown, cause)
}
