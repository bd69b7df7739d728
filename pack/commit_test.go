package pack_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/pack"
)

// bucketOff is a bucket that nobody may ask.
type bucketOff struct{ blob.Objects }

var errOff = errors.New("the bucket is off")

func (bucketOff) OpenObject(context.Context, string, int64, int64) (io.ReadCloser, error) {
	return nil, errOff
}

func TestListsNeedNoBucket(t *testing.T) {
	w := newWorld(t, nil)
	w.archive("c1", w.fill("c1", 9))
	off := pack.New(pack.Driver{Blobs: w.blobs, Rows: w.rows, Objects: bucketOff{w.objects}, Lister: w.blobs}, nil)
	row, err := off.Rows().Get(w.ctx, keyspace.Head("c1"))
	if err != nil || len(row.Value) != 64 {
		t.Errorf("head: %q, %v", row.Value, err)
	}
	for row, err := range off.Rows().Scan(w.ctx, keyspace.Saves("c1"), kv.ScanOptions{Reverse: true, Limit: 1}) {
		if err != nil || string(row.Value) != "save 9" {
			t.Errorf("last save: %q, %v", row.Value, err)
		}
	}
	for _, r := range []kv.Range{keyspace.Agents(), keyspace.Checkpoints()} {
		for _, err := range off.Rows().Scan(w.ctx, r, kv.ScanOptions{}) {
			w.must(err)
		}
	}
	// Without the bucket nothing else is known: that is an error and no absence.
	if _, err := off.Rows().Get(w.ctx, keyspace.Save("c1", 1)); !errors.Is(err, errOff) {
		t.Errorf("a save: %v", err)
	}
	for _, err := range off.Rows().Scan(w.ctx, keyspace.AgentEvents("agent of c1", 0), kv.ScanOptions{}) {
		if !errors.Is(err, errOff) {
			t.Errorf("events: %v", err)
		}
	}
	id := blob.Sum([]byte("c1 save 1"))
	if _, err := off.Blobs().Get(w.ctx, id); !errors.Is(err, errOff) {
		t.Errorf("a blob: %v", err)
	}
	if err := off.Unarchive(w.ctx, "c1"); !errors.Is(err, errOff) {
		t.Errorf("unarchive: %v", err)
	}
}

// A version that was read before a conversation was archived, or out of its pack,
// counts as long as nobody changed the row.
func TestVersionsSurviveArchiving(t *testing.T) {
	w := newWorld(t, nil)
	ids := w.fill("c1", 4)
	read := func(s *pack.Store, key string) kv.Expect {
		t.Helper()
		row, err := s.Rows().Get(w.ctx, key)
		w.must(err)
		return kv.Expect{Key: key, Version: row.Version}
	}
	a, b := w.packs, w.node()
	keys := []string{keyspace.Save("c1", 2), keyspace.Save("c1", 4), keyspace.Agent("agent of c1"), keyspace.Checkpoint("ckpt of c1")}
	var before, during []kv.Expect
	for _, key := range keys {
		before = append(before, read(a, key))
	}
	w.archive("c1", ids)
	for _, key := range keys {
		during = append(during, read(b, key))
	}
	w.must(a.Unarchive(w.ctx, "c1"))
	// The node that read during the archiving did not bring anything back itself.
	w.must(b.Rows().Commit(w.ctx, &kv.Batch{Expect: during, Set: []kv.Set{{Key: keyspace.Pin("p1")}}}))
	w.must(a.Rows().Commit(w.ctx, &kv.Batch{Expect: before, Set: []kv.Set{{Key: keyspace.Save("c1", 2), Value: []byte("changed")}}}))
	for _, s := range []*pack.Store{a, b} {
		err := s.Rows().Commit(w.ctx, &kv.Batch{Expect: before, Set: []kv.Set{{Key: keyspace.Pin("p2")}}})
		var conflict *kv.ConflictError
		if !errors.As(err, &conflict) || conflict.Key != keyspace.Save("c1", 2) {
			t.Errorf("with the version of a row that was changed: %v", err)
		}
	}
}

func TestAWriterTakesTheNoteAway(t *testing.T) {
	for name, key := range map[string]string{
		"save": keyspace.Save("c1", 9), "message": keyspace.MessageHead("c1", "new"), "tool call": keyspace.Exec("c1", "call", 1),
		"event": keyspace.AgentEvent("agent of c1", 9), "checkpoint": keyspace.ConversationCheckpoint("c1", "other"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			ids := w.fill("c1", 3)
			_, err := w.packs.Archive(w.ctx, "c1", func(ctx context.Context) (pack.Contents, error) {
				in, err := w.gather("c1", ids)(ctx)
				batch := &kv.Batch{Set: []kv.Set{{Key: key, Value: []byte("late")}}}
				if name == "event" { // every event changes the record
					batch.Set = append(batch.Set, kv.Set{Key: keyspace.Agent("agent of c1"), Value: []byte("late")})
				}
				w.must(w.node().Rows().Commit(w.ctx, batch))
				return in, err
			})
			if !errors.Is(err, pack.ErrChanged) {
				t.Errorf("archived while somebody wrote: %v", err)
			}
			if row, err := w.rows.Get(w.ctx, key); err != nil || string(row.Value) != "late" {
				t.Errorf("what was written is %q, %v", row.Value, err)
			}
			if _, err := w.rows.Get(w.ctx, keyspace.Pack("c1")); !errors.Is(err, kv.ErrNotFound) {
				t.Errorf("the note is still there: %v", err)
			}
			w.noObjects()
		})
	}
}

func (w *world) noObjects() {
	w.Helper()
	if err := w.objects.ListObjects(w.ctx, "", "", func(o blob.ObjectInfo) error { return fmt.Errorf("%s is left", o.Key) }); err != nil {
		w.Error(err)
	}
}

func TestArchiveRefuses(t *testing.T) {
	w := newWorld(t, nil)
	ids := w.fill("c1", 2)
	mine := errors.New("mine")
	row := func(key string) []kv.Row { return []kv.Row{{Key: key, Version: 1}} }
	for name, c := range map[string]struct {
		in   pack.Contents
		err  error
		want error
	}{
		"nothing":               {pack.Contents{}, nil, pack.ErrEmpty},
		"what gather refuses":   {pack.Contents{}, mine, mine},
		"rows of another":       {pack.Contents{Rows: row(keyspace.Save("c2", 1))}, nil, kv.ErrInvalidBatch},
		"records":               {pack.Contents{Rows: row(keyspace.Conversation("c1"))}, nil, kv.ErrInvalidBatch},
		"events without agent":  {pack.Contents{Rows: row(keyspace.AgentEvent("a", 1))}, nil, kv.ErrInvalidBatch},
		"rows without version":  {pack.Contents{Rows: []kv.Row{{Key: keyspace.Save("c1", 1)}}}, nil, kv.ErrInvalidBatch},
		"rows given twice":      {pack.Contents{Rows: append(row(keyspace.Save("c1", 1)), row(keyspace.Save("c1", 1))...)}, nil, kv.ErrInvalidBatch},
		"rows that are not so":  {pack.Contents{Rows: []kv.Row{{Key: keyspace.Save("c1", 1), Version: 1 << 60}}}, nil, pack.ErrChanged},
		"rows that are no more": {pack.Contents{Rows: row(keyspace.Save("c1", 77)), Blobs: ids}, nil, pack.ErrChanged},
	} {
		_, err := w.packs.Archive(w.ctx, "c1", func(context.Context) (pack.Contents, error) { return c.in, c.err })
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		w.noObjects()
	}
	w.archive("c1", ids)
	if _, err := w.packs.Archive(w.ctx, "c1", w.gather("c1", ids)); !errors.Is(err, pack.ErrArchived) {
		t.Errorf("twice: %v", err)
	}
	for _, b := range []*kv.Batch{
		{Set: []kv.Set{{Key: keyspace.Pack("c1")}}}, {Delete: []string{keyspace.Pack("c1")}}, {Expect: []kv.Expect{{Key: keyspace.Packed("k")}}},
	} {
		if err := w.packs.Rows().Commit(w.ctx, b); !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("a commit to rows of the catalog: %v", err)
		}
	}
	if _, err := w.packs.Rows().Get(w.ctx, keyspace.Pack("c1")); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("a look at rows of the catalog: %v", err)
	}
}

// Blobs that are named again are copied back, with their bases.
func TestReferencesToPackedBlobs(t *testing.T) {
	w := newWorld(t, nil)
	ids := w.fill("c1", 5)
	w.archive("c1", ids)
	if w.blobs.Len() != 0 {
		t.Fatalf("%d blobs are left", w.blobs.Len())
	}
	_, err := w.packs.Rows().Get(w.ctx, keyspace.Head("c1"))
	w.must(err)
	refer := func(key string, id blob.ID) error {
		return w.packs.Rows().Commit(w.ctx, &kv.Batch{Set: []kv.Set{{Key: key, Value: []byte(id.String())}}, Refs: []blob.ID{id}})
	}
	w.must(refer(keyspace.Head("c2"), ids[2]))
	if w.blobs.Len() != 3 {
		t.Errorf("%d blobs are back, want 3", w.blobs.Len())
	}
	leaning := blob.New([]byte("leans on the last one"))
	leaning.Base = ids[4]
	w.must(w.packs.Blobs().Put(w.ctx, leaning))
	longer := blob.New([]byte("c1 save 5, and more"))
	w.must(w.packs.Blobs().Put(w.ctx, blob.Blob{ID: longer.ID, Data: []byte(", and more"), Like: ids[4], Keep: 9}))
	if data, err := w.blobs.Get(w.ctx, longer.ID); err != nil || string(data) != "c1 save 5, and more" {
		t.Errorf("an extension of a packed blob: %q, %v", data, err)
	}
	if err := refer(keyspace.Head("c3"), blob.Sum([]byte("nobody has this"))); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a reference to nothing: %v", err)
	}
	if _, err := w.packs.Get(w.ctx, "c1"); err != nil {
		t.Errorf("it is not archived any more: %v", err)
	}
	w.collect()
	if data, err := w.blobs.Get(w.ctx, ids[2]); err != nil || string(data) != "c1 save 3" {
		t.Errorf("after a collection: %q, %v", data, err)
	}
}

func TestLargeBlobs(t *testing.T) {
	w := newWorld(t, &pack.Options{ObjectBytes: 64 << 10})
	var ids []blob.ID
	for i, size := range []int{100 << 10, 10, 3 << 20, 40 << 10, 17 << 20, 0, 33 << 10, 33 << 10} {
		b := blob.New(bytes.Repeat([]byte{byte(i)}, size+i))
		w.must(w.blobs.Put(w.ctx, b))
		ids = append(ids, b.ID)
	}
	w.fill("c1", 3)
	info := w.archive("c1", ids)
	if info.Objects < 6 || info.Blobs != 8 {
		t.Errorf("archived %+v", info)
	}
	w.must(w.packs.Verify(w.ctx, "c1", true))
	check := func(s blob.Store) {
		t.Helper()
		for i, id := range ids {
			data, err := s.Get(w.ctx, id)
			if err != nil || blob.Sum(data) != id {
				t.Errorf("blob %d: %d bytes, %v", i, len(data), err)
			}
			r, err := blob.Open(w.ctx, s, id)
			w.must(err)
			if data, err := io.ReadAll(r); err != nil || blob.Sum(data) != id || r.Close() != nil {
				t.Errorf("stream of blob %d: %d bytes, %v", i, len(data), err)
			}
		}
	}
	check(w.packs.Blobs())
	w.must(w.packs.Unarchive(w.ctx, "c1"))
	check(w.blobs)
	w.noObjects()
}

// Whatever byte of an object changes, nobody gets other bytes.
func TestDamagedObjects(t *testing.T) {
	w := newWorld(t, nil)
	ids := w.fill("c1", 3)
	want := w.dump(w.packs.Rows(), "c1")
	w.archive("c1", ids)
	var key string
	w.must(w.objects.ListObjects(w.ctx, "", "", func(o blob.ObjectInfo) error { key = o.Key; return nil }))
	r, err := w.objects.OpenObject(w.ctx, key, 0, -1)
	w.must(err)
	whole, err := io.ReadAll(r)
	w.must(err)
	put := func(data []byte) { w.must(w.objects.PutObject(w.ctx, key, bytes.NewReader(data), int64(len(data)))) }
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x10
		put(bad)
		s := w.node()
		if err := s.Verify(w.ctx, "c1", true); !errors.Is(err, pack.ErrDamaged) && !errors.Is(err, pack.ErrNewerFormat) {
			t.Fatalf("byte %d: verify says %v", i, err)
		}
		for k, row := range want {
			if got, err := s.Rows().Get(w.ctx, k); err == nil && !bytes.Equal(got.Value, row.Value) {
				t.Fatalf("byte %d: row %q is %q", i, k, got.Value)
			}
		}
		for n, id := range ids {
			if data, err := s.Blobs().Get(w.ctx, id); err == nil && string(data) != fmt.Sprintf("c1 save %d", n+1) {
				t.Fatalf("byte %d: blob %d is %q", i, n, data)
			}
		}
		if err := s.Unarchive(w.ctx, "c1"); err == nil {
			t.Fatalf("byte %d: what is damaged was brought back", i)
		}
	}
	w.must(w.objects.RemoveObjects(w.ctx, key))
	w.collect() // some were put back before the damage was met
	s := w.node()
	if _, err := s.Rows().Get(w.ctx, keyspace.Save("c1", 1)); !errors.Is(err, pack.ErrDamaged) {
		t.Errorf("without its object: %v", err)
	}
	if _, err := s.Blobs().Get(w.ctx, ids[0]); !errors.Is(err, pack.ErrDamaged) {
		t.Errorf("a blob without its object: %v", err)
	}
	if has, err := s.Blobs().Has(w.ctx, ids...); err != nil || has[0] {
		t.Errorf("has %v, %v", has, err)
	}
	put(whole)
	w.must(s.Unarchive(w.ctx, "c1"))
	sameRows(t, w.dump(s.Rows(), "c1"), want, false)
}

// watched remembers the guards that the driver was given.
type watched struct {
	kv.Store
	guards []string
}

func (r *watched) Commit(ctx context.Context, b *kv.Batch) error {
	r.guards = nil
	for _, e := range b.Expect {
		if keyspace.AllPacked().Contains(e.Key) {
			r.guards = append(r.guards, e.Key)
		}
	}
	return r.Store.Commit(ctx, b)
}

// Writers who expect what archiving changes need no further expectation.
func TestGuardsThatAreImplied(t *testing.T) {
	w := newWorld(t, nil)
	ids := w.fill("c1", 2)
	rows := &watched{Store: w.rows}
	s := pack.New(pack.Driver{Blobs: w.blobs, Rows: rows, Objects: w.objects, Lister: w.blobs}, nil)
	version := func(key string) uint64 {
		t.Helper()
		row, err := s.Rows().Get(w.ctx, key)
		w.must(err)
		return row.Version
	}
	record, agent := keyspace.Conversation("c1"), keyspace.Agent("agent of c1")
	n := uint64(2)
	save := func(at uint64) error {
		n++
		return s.Rows().Commit(w.ctx, &kv.Batch{
			Expect: []kv.Expect{{Key: record, Version: at}, {Key: keyspace.Save("c1", n)}},
			Set:    []kv.Set{{Key: keyspace.Head("c1"), Value: []byte(ids[0].String())}, {Key: keyspace.Save("c1", n), Value: []byte("more")}},
		})
	}
	want := func(what string, guards ...string) {
		t.Helper()
		if fmt.Sprint(rows.guards) != fmt.Sprint(guards) {
			t.Errorf("%s: expects %q, want %q", what, rows.guards, guards)
		}
	}
	opened := version(record)
	w.must(save(opened))
	want("first save", keyspace.Pack("c1"))
	w.must(save(opened))
	want("next save")
	w.must(s.Rows().Commit(w.ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: agent, Version: version(agent)}},
		Set:    []kv.Set{{Key: agent, Value: []byte("more")}, {Key: keyspace.AgentEvent("agent of c1", 3)}},
	}))
	want("event")
	w.must(s.Rows().Commit(w.ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: agent, Version: version(agent)}}, Set: []kv.Set{{Key: keyspace.AgentEvent("agent of c1", 4)}},
	}))
	want("event that leaves the record alone", keyspace.Packed(agent))

	// Archived elsewhere: the version that was known no longer counts, and nothing
	// may be left beside the pack.
	_, err := w.packs.Archive(w.ctx, "c1", w.gather("c1", ids))
	w.must(err)
	if err := save(opened); !errors.Is(err, kv.ErrConflict) {
		t.Errorf("with the record as it was before: %v", err)
	}
	n--
	w.must(save(version(record)))
	saves := 0
	for _, err := range w.rows.Scan(w.ctx, keyspace.Saves("c1"), kv.ScanOptions{}) {
		w.must(err)
		saves++
	}
	if saves != 5 {
		t.Errorf("%d saves in the database, want 5", saves)
	}

	// And archived, with a record that changed since.
	_, err = w.packs.Archive(w.ctx, "c1", w.gather("c1", ids))
	w.must(err)
	w.must(s.Rows().Commit(w.ctx, &kv.Batch{Set: []kv.Set{{Key: record, Value: []byte("opened again")}}}))
	if _, err := w.packs.Get(w.ctx, "c1"); err != nil {
		t.Errorf("a record brought it back: %v", err)
	}
	w.must(save(version(record)))
	if _, err := w.packs.Get(w.ctx, "c1"); !errors.Is(err, pack.ErrNotArchived) {
		t.Errorf("a save left it archived: %v", err)
	}
}
