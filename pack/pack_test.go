package pack_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/kvtest"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/pack"
)

// world is a store with its drivers.
type world struct {
	*testing.T
	ctx     context.Context
	blobs   *memblob.Store
	rows    *memkv.Store
	objects *memblob.Objects
	packs   *pack.Store
}

func newWorld(t *testing.T, opts *pack.Options) *world {
	w := &world{T: t, ctx: context.Background(), blobs: memblob.New(), objects: memblob.NewObjects()}
	w.rows = memkv.New(w.blobs)
	w.packs = pack.New(w.driver(), opts)
	return w
}

// node returns another process over the same drivers.
func (w *world) node() *pack.Store { return pack.New(w.driver(), nil) }

func (w *world) driver() pack.Driver {
	return pack.Driver{Blobs: w.blobs, Rows: w.rows, Objects: w.objects, Lister: w.blobs}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// fill makes a conversation of n saves, each with a blob that leans on the one
// before, an agent and a checkpoint. It returns the blobs.
func (w *world) fill(id string, n int) []blob.ID {
	w.Helper()
	var ids []blob.ID
	var base blob.ID
	for i := range n {
		b := blob.New(fmt.Appendf(nil, "%s save %d", id, i+1))
		b.Base = base
		w.must(w.blobs.Put(w.ctx, b))
		base = b.ID
		ids = append(ids, b.ID)
		w.must(w.packs.Rows().Commit(w.ctx, &kv.Batch{Set: []kv.Set{
			{Key: keyspace.Conversation(id), Value: []byte("record")},
			{Key: keyspace.Head(id), Value: []byte(b.ID.String())},
			{Key: keyspace.Save(id, uint64(i+1)), Value: fmt.Appendf(nil, "save %d", i+1)},
			{Key: keyspace.MessageHead(id, fmt.Sprint("m", i)), Value: []byte(b.ID.String())},
			{Key: keyspace.Agent("agent of " + id), Value: fmt.Appendf(nil, "agent at %d", i)},
			{Key: keyspace.AgentEvent("agent of "+id, uint64(i+1)), Value: fmt.Appendf(nil, "event %d", i)},
		}, Refs: []blob.ID{b.ID}}))
	}
	w.must(w.packs.Rows().Commit(w.ctx, &kv.Batch{Set: []kv.Set{
		{Key: keyspace.Checkpoint("ckpt of " + id), Value: []byte("checkpoint")},
		{Key: keyspace.ConversationCheckpoint(id, "ckpt of "+id)},
		{Key: keyspace.WorkspaceCheckpoint("ws", "ckpt of "+id)},
	}}))
	return ids
}

// gather says what belongs to a conversation that fill made.
func (w *world) gather(id string, blobs []blob.ID) func(context.Context) (pack.Contents, error) {
	return func(ctx context.Context) (pack.Contents, error) {
		in := pack.Contents{Blobs: blobs}
		one := func(key string) kv.Range { return kv.Range{Start: key, End: key + "\x00"} }
		for _, r := range []kv.Range{
			one(keyspace.Head(id)), keyspace.MessageHeads(id), keyspace.Saves(id), keyspace.Execs(id), keyspace.JSONCheckpoints(id),
			keyspace.ConversationCheckpoints(id), one(keyspace.Checkpoint("ckpt of " + id)),
			one(keyspace.Agent("agent of " + id)), keyspace.AgentEvents("agent of "+id, 0),
		} {
			for row, err := range w.packs.Bare().Scan(ctx, r, kv.ScanOptions{}) {
				if err != nil {
					return in, err
				}
				in.Rows = append(in.Rows, row)
			}
		}
		return in, nil
	}
}

// archive archives a conversation that fill made, and lets a collector take its blobs.
func (w *world) archive(id string, blobs []blob.ID) pack.Info {
	w.Helper()
	info, err := w.packs.Archive(w.ctx, id, w.gather(id, blobs))
	w.must(err)
	w.collect()
	return info
}

// collect removes everything that is not referred to by a row of the database.
// Here that is what heads and messages name.
func (w *world) collect() {
	w.Helper()
	gen, err := w.blobs.Begin(w.ctx)
	w.must(err)
	live := make(map[blob.ID]bool)
	for _, r := range []kv.Range{keyspace.Heads(), keyspace.AllMessageHeads()} {
		for row, err := range w.packs.Bare().Scan(w.ctx, r, kv.ScanOptions{}) {
			w.must(err)
			id, err := blob.ParseID(string(row.Value))
			w.must(err)
			live[id] = true
		}
	}
	_, err = w.blobs.Sweep(w.ctx, gen, blob.SweepOptions{Live: func(id blob.ID) bool { return live[id] }})
	w.must(err)
}

// dump returns everything that a reader sees of a conversation.
func (w *world) dump(rows kv.Store, id string) map[string]kv.Row {
	w.Helper()
	out := make(map[string]kv.Row)
	for _, r := range []kv.Range{
		keyspace.MessageHeads(id), keyspace.Saves(id), keyspace.ConversationCheckpoints(id), keyspace.AgentEvents("agent of "+id, 0),
		keyspace.Agents(), keyspace.Checkpoints(),
	} {
		for _, o := range []kv.ScanOptions{{}, {Reverse: true}, {Limit: 2}, {Reverse: true, Limit: 1}, {KeysOnly: true}} {
			for row, err := range rows.Scan(w.ctx, r, o) {
				w.must(err)
				if o.KeysOnly {
					if old := out[row.Key]; row.Value != nil || row.Version != old.Version {
						w.Errorf("keys only: %+v, want %+v without its value", row, old)
					}
					continue
				}
				if old, ok := out[row.Key]; ok && (old.Version != row.Version || string(old.Value) != string(row.Value)) {
					w.Errorf("%+v gives %+v, another scan gave %+v", o, row, old)
				}
				out[row.Key] = row
			}
		}
	}
	for _, key := range []string{keyspace.Head(id), keyspace.Agent("agent of " + id), keyspace.Checkpoint("ckpt of " + id), keyspace.Save(id, 1)} {
		row, err := rows.Get(w.ctx, key)
		w.must(err)
		out[key] = row
	}
	return out
}

func sameRows(t *testing.T, got, want map[string]kv.Row, versions bool) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
	for key, row := range want {
		if g := got[key]; string(g.Value) != string(row.Value) || versions && g.Version != row.Version {
			t.Errorf("row %q is %q at %d, want %q at %d", key, g.Value, g.Version, row.Value, row.Version)
		}
	}
}

// swept is the blobs with the driver's inventory, as a stack has them.
func (w *world) swept() blob.Store {
	blobs := w.packs.Blobs()
	return struct {
		blob.Store
		blob.Streamer
		blob.ManyReader
		blob.Lister
		blob.Sweeper
	}{blobs, blobs.(blob.Streamer), blobs.(blob.ManyReader), w.blobs, w.blobs}
}

func TestConformance(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.Store { return newWorld(t, nil).packs.Rows() })
	kvtest.RunRefs(t, func(t *testing.T) (kv.Store, blob.Store) {
		w := newWorld(t, nil)
		return w.packs.Rows(), w.swept()
	})
	open := func(t *testing.T) blob.Store { return newWorld(t, nil).swept() }
	blobtest.Run(t, open)
	blobtest.RunModel(t, open)
	blobtest.RunObjects(t, func(t *testing.T) blob.Objects { return pack.NewDir(t.TempDir()) })
}

func TestArchivedConversationsReadLikeOthers(t *testing.T) {
	w := newWorld(t, nil)
	ids := w.fill("c1", 20)
	w.fill("c2", 2)
	before := w.dump(w.packs.Rows(), "c1")
	info := w.archive("c1", ids[len(ids)-1:]) // the others are what it leans on
	if info.Rows != 20*3+4 || info.Blobs != 20 || info.Objects != 1 || info.Shadows != 2 {
		t.Errorf("archived %+v, want 64 rows, 20 blobs in 1 object, 2 shadows", info)
	}
	if n := w.blobs.Len(); n != 2 {
		t.Errorf("%d blobs are left, want those of the other conversation", n)
	}
	sameRows(t, w.dump(w.packs.Rows(), "c1"), before, true)
	node := w.node()
	sameRows(t, w.dump(node.Rows(), "c1"), before, true)
	for i, id := range ids {
		data, err := node.Blobs().Get(w.ctx, id)
		if want := fmt.Sprintf("c1 save %d", i+1); err != nil || string(data) != want {
			t.Errorf("blob %d: %q, %v, want %q", i, data, err, want)
		}
	}
	if _, err := w.node().Blobs().Get(w.ctx, ids[0]); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a node that read no row finds a blob: %v", err)
	}
	for _, r := range []kv.Range{keyspace.AllSaves(), keyspace.Heads(), keyspace.AllMessageHeads(), {}} {
		for row, err := range node.Bare().Scan(w.ctx, r, kv.ScanOptions{}) {
			w.must(err)
			if parts := keyspace.Parts(row.Key); len(parts) > 2 && parts[2] == "c1" && parts[1] != "conversation" {
				t.Errorf("a wide scan gives %q", row.Key)
			}
		}
	}
	w.must(node.Verify(w.ctx, "c1", true))

	w.must(node.Unarchive(w.ctx, "c1"))
	sameRows(t, w.dump(w.packs.Rows(), "c1"), before, false)
	sameRows(t, w.dump(w.rowsOnly(), "c1"), before, false)
	if n := w.blobs.Len(); n != 22 {
		t.Errorf("%d blobs after unarchiving, want 22", n)
	}
	w.objects.ListObjects(w.ctx, "", "", func(o blob.ObjectInfo) error {
		t.Errorf("object %s is left", o.Key)
		return nil
	})
	if err := node.Unarchive(w.ctx, "c1"); !errors.Is(err, pack.ErrNotArchived) {
		t.Errorf("unarchiving twice: %v", err)
	}
}

// rowsOnly is the driver, as one that knows nothing of packs sees it.
func (w *world) rowsOnly() kv.Store { return w.rows }

func TestAFullList(t *testing.T) {
	w := newWorld(t, nil)
	want := make(map[string]bool)
	for i := range 700 {
		id := fmt.Sprintf("a%03d", i)
		key := keyspace.Agent(id)
		want[key] = true
		w.must(w.packs.Rows().Commit(w.ctx, &kv.Batch{Set: []kv.Set{{Key: key, Value: []byte(id)}}}))
		if i%3 == 0 {
			continue
		}
		row, err := w.packs.Rows().Get(w.ctx, key)
		w.must(err)
		_, err = w.packs.Archive(w.ctx, id, func(context.Context) (pack.Contents, error) { return pack.Contents{Rows: []kv.Row{row}}, nil })
		w.must(err)
	}
	for _, o := range []kv.ScanOptions{{}, {Reverse: true}, {Limit: 301}, {Limit: 256, Reverse: true}, {KeysOnly: true}} {
		n, last := 0, ""
		for row, err := range w.packs.Rows().Scan(w.ctx, keyspace.Agents(), o) {
			w.must(err)
			if !want[row.Key] || last != "" && (row.Key <= last) != o.Reverse || (string(row.Value) == "") != o.KeysOnly {
				t.Fatalf("%+v: %+v after %q", o, row, last)
			}
			n, last = n+1, row.Key
		}
		if all := min(700, max(o.Limit, 700*(1-min(1, o.Limit)))); n != all {
			t.Errorf("%+v gives %d agents, want %d", o, n, all)
		}
	}
}
