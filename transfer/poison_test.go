package transfer_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/transfer"
	"github.com/stet-dev/stet/upkeep"
	"github.com/stet-dev/stet/workspace"
)

// hostile is a source that says what it likes: rows in the place of those that are
// stored, and more.
type hostile struct {
	kv.Store
	rows map[string][]byte
}

func (h hostile) Get(ctx context.Context, key string) (kv.Row, error) {
	if value, ok := h.rows[key]; ok {
		return kv.Row{Key: key, Value: value, Version: 1}, nil
	}
	return h.Store.Get(ctx, key)
}

func (h hostile) Scan(ctx context.Context, in kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		seen := make(map[string]bool)
		for row, err := range h.Store.Scan(ctx, in, opts) {
			if value, ok := h.rows[row.Key]; ok {
				seen[row.Key], row.Value = true, value
			}
			if !yield(row, err) {
				return
			}
		}
		for key, value := range h.rows {
			if in.Contains(key) && !seen[key] && !yield(kv.Row{Key: key, Value: value, Version: 1}, nil) {
				return
			}
		}
	}
}

// source makes a store with a good conversation and one that is to be spoiled, with
// two saves and a checkpoint.
func source(t *testing.T) (*stet.DB, *checkpoint.Record) {
	t.Helper()
	ctx := t.Context()
	db := open(t)
	say(t, db, "bad", "one", "two")
	say(t, db, "good", "hello")
	dir := filepath.Join(t.TempDir(), "work")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "a.txt"), []byte("text\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	w := must[*checkpoint.Workspace](t)(db.Checkpoints().Open(ctx, dir))
	defer w.Close()
	return db, must[*checkpoint.Result](t)(w.Checkpoint(ctx, checkpoint.Request{Conversation: "bad"})).Record
}

// valueOf returns a row of a store.
func valueOf[M proto.Message](t *testing.T, db *stet.DB, key string, into M) M {
	t.Helper()
	row := must[kv.Row](t)(db.Rows().Get(t.Context(), key))
	if err := proto.Unmarshal(row.Value, into); err != nil {
		t.Fatal(err)
	}
	return into
}

// leftOf lists the rows that a store has of a conversation or its checkpoints.
func leftOf(t *testing.T, db *stet.DB, conversation string, checkpoints ...string) []string {
	t.Helper()
	var keys []string
	for row, err := range db.Rows().Scan(t.Context(), kv.Range{}, kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(row.Key, ":") // a number may hold "bad" by chance
		for _, name := range append(checkpoints, conversation) {
			if slices.Contains(parts, name) {
				keys = append(keys, row.Key)
			}
		}
	}
	return keys
}

// readable holds every reader that goes over many conversations to work.
func readable(t *testing.T, db *stet.DB) {
	t.Helper()
	ctx := t.Context()
	page := must[conversation.Page](t)(db.Conversations().List(ctx, nil))
	for _, info := range page.Conversations {
		for _, err := range db.Conversations().History(ctx, info.ID, nil) {
			if err != nil {
				t.Errorf("history of %s: %v", info.ID, err)
			}
		}
		if _, err := db.Conversations().Open(ctx, info.ID); err != nil {
			t.Errorf("open %s: %v", info.ID, err)
		}
	}
	must[upkeep.CollectResult](t)(db.Collect(ctx, nil))
	must[[]conversation.Retained](t)(db.Conversations().Retainable(ctx, nil))
	must[[]checkpoint.Retained](t)(db.Checkpoints().Retainable(ctx, nil))
	index := must[interface{ Degraded() error }](t)(db.Search(ctx))
	if err := index.Degraded(); err != nil {
		t.Error(err)
	}
	healthy(t, db)
}

func encoded(t *testing.T, m proto.Message) []byte {
	t.Helper()
	return must[[]byte](t)(proto.MarshalOptions{Deterministic: true}.Marshal(m))
}

// What no reader accepts is refused before anything of its conversation is written,
// and the other conversations are moved.
func TestPoisonIsRefused(t *testing.T) {
	for name, spoil := range poisons() {
		t.Run(name, func(t *testing.T) {
			from, at := source(t)
			to := open(t)
			rows, bad, reason := spoil(t, from, at)
			hostileSide := side(from)
			hostileSide.Rows = hostile{from.Rows(), rows}
			report, err := transfer.Run(t.Context(), hostileSide, side(to), nil, nil)
			var failed *transfer.FailedError
			if !errors.As(err, &failed) || len(failed.Errs) != 1 || !strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), reason) {
				t.Errorf("got %v, want one error that names %q and %q", err, bad, reason)
			}
			if got := statuses(report); got[bad] != transfer.Failed || got["good"] != transfer.Created {
				t.Errorf("statuses %v", got)
			}
			if left := leftOf(t, to, bad, at.ID); bad != long && len(left) > 0 {
				t.Errorf("rows that were left behind: %q", left)
			}
			if left := leftOf(t, to, long); len(left) > 0 {
				t.Errorf("rows that were left behind: %q", left)
			}
			if _, err := to.Conversations().Get(t.Context(), "good"); err != nil {
				t.Errorf("the good one: %v", err)
			}
			readable(t, to)
		})
	}
}

// long is an id that is too long.
var long = strings.Repeat("x", 404)

// poisons are ways to spoil the rows of a conversation.
func poisons() map[string]func(t *testing.T, db *stet.DB, at *checkpoint.Record) (rows map[string][]byte, bad, reason string) {
	return map[string]func(t *testing.T, db *stet.DB, at *checkpoint.Record) (rows map[string][]byte, bad, reason string){
		"a save that is its own parent": func(t *testing.T, db *stet.DB, _ *checkpoint.Record) (map[string][]byte, string, string) {
			rec := valueOf(t, db, keyspace.Save("bad", 2), new(stetv1.SaveRecord))
			rec.Parent = 2
			return map[string][]byte{keyspace.Save("bad", 2): encoded(t, rec)}, "bad", "save 2 after 2"
		},
		"a save with the last number": func(t *testing.T, db *stet.DB, _ *checkpoint.Record) (map[string][]byte, string, string) {
			rec := valueOf(t, db, keyspace.Save("bad", 2), new(stetv1.SaveRecord))
			rec.Seq = math.MaxUint64
			return map[string][]byte{keyspace.Save("bad", math.MaxUint64): encoded(t, rec)}, "bad", "18446744073709551615"
		},
		"an id of 404 bytes": func(t *testing.T, db *stet.DB, _ *checkpoint.Record) (map[string][]byte, string, string) {
			rec := valueOf(t, db, keyspace.Conversation("bad"), new(stetv1.ConversationRecord))
			rec.Id = long
			return map[string][]byte{keyspace.Conversation(long): encoded(t, rec)}, long, "404 bytes"
		},
		"a record of another id": func(t *testing.T, db *stet.DB, _ *checkpoint.Record) (map[string][]byte, string, string) {
			rec := valueOf(t, db, keyspace.Conversation("bad"), new(stetv1.ConversationRecord))
			rec.Id = "good"
			return map[string][]byte{keyspace.Conversation("bad"): encoded(t, rec)}, "bad", `"good"`
		},
		"a checkpoint of another id": func(t *testing.T, db *stet.DB, at *checkpoint.Record) (map[string][]byte, string, string) {
			rec := valueOf(t, db, keyspace.Checkpoint(at.ID), new(stetv1.CheckpointRecord))
			rec.Id = "01m7fwtdh1aaaaaaaaaaaaaaaa"
			return map[string][]byte{keyspace.Checkpoint(at.ID): encoded(t, rec)}, "bad", rec.Id
		},
		"a checkpoint with the last number": func(t *testing.T, db *stet.DB, at *checkpoint.Record) (map[string][]byte, string, string) {
			rec := valueOf(t, db, keyspace.Checkpoint(at.ID), new(stetv1.CheckpointRecord))
			rec.Number = math.MaxUint64
			return map[string][]byte{keyspace.Checkpoint(at.ID): encoded(t, rec)}, "bad", "18446744073709551615"
		},
		"a tree that claims 2^50 bytes": func(t *testing.T, db *stet.DB, at *checkpoint.Record) (map[string][]byte, string, string) {
			return claiming(t, db, at, 1<<50), "bad", "1125899906842624"
		},
		"a tree that claims another size": func(t *testing.T, db *stet.DB, at *checkpoint.Record) (map[string][]byte, string, string) {
			return claiming(t, db, at, 7), "bad", "claims 7 bytes"
		},
	}
}

// claiming makes the checkpoint's tree say something else about the size of its file.
func claiming(t *testing.T, db *stet.DB, at *checkpoint.Record, size uint64) map[string][]byte {
	t.Helper()
	content := blob.New([]byte("a content of its own\n"))
	node := append([]byte("stWd\x01\x01\x01\xa4\x03\x05a.txt"), varint(size)...)
	tree := blob.New(append(node, content.ID[:]...))
	if err := db.Blobs().Put(t.Context(), content, tree); err != nil {
		t.Fatal(err)
	}
	if _, err := workspace.DecodeNode(tree.Data); (err == nil) != (size < 1<<44) {
		t.Fatalf("size %d: %v", size, err)
	}
	rec := valueOf(t, db, keyspace.Checkpoint(at.ID), new(stetv1.CheckpointRecord))
	rec.Tree = tree.ID.Bytes()
	return map[string][]byte{keyspace.Checkpoint(at.ID): encoded(t, rec)}
}

func varint(n uint64) []byte {
	var b []byte
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// Rows that were changed at random are refused, or every reader takes them.
func TestRandomRowsAreRefusedOrReadable(t *testing.T) {
	from, at := source(t)
	kinds := map[string]func() proto.Message{
		keyspace.Conversation("bad"):     func() proto.Message { return new(stetv1.ConversationRecord) },
		keyspace.Save("bad", 1):          func() proto.Message { return new(stetv1.SaveRecord) },
		keyspace.Save("bad", 2):          func() proto.Message { return new(stetv1.SaveRecord) },
		keyspace.Checkpoint(at.ID):       func() proto.Message { return new(stetv1.CheckpointRecord) },
		keyspace.Workspace(at.Workspace): func() proto.Message { return new(stetv1.WorkspaceRecord) },
	}
	keys := []string{keyspace.Conversation("bad"), keyspace.Save("bad", 1), keyspace.Save("bad", 2), keyspace.Checkpoint(at.ID), keyspace.Workspace(at.Workspace)}
	refused, taken := 0, 0
	for seed := range uint64(testenv.Sizes(100, 300, 1000)) {
		r := rand.New(rand.NewPCG(seed, 7))
		key := keys[r.IntN(len(keys))]
		m := valueOf(t, from, key, kinds[key]())
		value := encoded(t, m)
		if r.IntN(4) == 0 {
			value[r.IntN(len(value))] ^= 1 << r.IntN(8)
		} else {
			change(r, m.ProtoReflect())
			raw, err := proto.Marshal(m)
			if err != nil {
				continue // text that is not UTF-8
			}
			value = raw
		}
		to := memory(t)
		hostileSide := side(from)
		hostileSide.Rows = hostile{from.Rows(), map[string][]byte{key: value}}
		_, err := transfer.Run(t.Context(), hostileSide, side(to), nil, nil)
		var failed *transfer.FailedError
		switch {
		case err == nil:
			taken++
		case errors.As(err, &failed):
			refused++
			if left := leftOf(t, to, ":bad", at.ID); len(left) > 0 {
				t.Errorf("seed %d, row %q: %v, and left behind %q", seed, key, err, left)
			}
		default:
			t.Errorf("seed %d, row %q: %v", seed, key, err)
		}
		readable(t, to)
		if t.Failed() {
			t.Fatalf("seed %d, row %q is %q", seed, key, value)
		}
	}
	if refused == 0 || taken == 0 {
		t.Errorf("%d were refused and %d were taken, want some of both", refused, taken)
	}
	t.Logf("%d refused, %d taken", refused, taken)
}

// change gives a field of a message another value.
func change(r *rand.Rand, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	f := fields.Get(r.IntN(fields.Len()))
	numbers := []uint64{0, 1, 2, 3, 1 << 31, 1 << 32, 1 << 44, math.MaxInt64 - 1, math.MaxInt64, 1 << 63, math.MaxUint64}
	texts := []string{"", "x", "bad", "good", ":", "%", "a\nb", "\x7f", strings.Repeat("y", 256), strings.Repeat("z", 404), "01m7fwtdh1aaaaaaaaaaaaaaaa"}
	number := numbers[r.IntN(len(numbers))]
	if f.IsList() || f.IsMap() || r.IntN(8) == 0 {
		m.Clear(f)
		return
	}
	switch f.Kind() {
	case protoreflect.Uint64Kind:
		m.Set(f, protoreflect.ValueOfUint64(number))
	case protoreflect.Int64Kind:
		m.Set(f, protoreflect.ValueOfInt64(int64(number)))
	case protoreflect.Uint32Kind:
		m.Set(f, protoreflect.ValueOfUint32(uint32(number)))
	case protoreflect.EnumKind:
		m.Set(f, protoreflect.ValueOfEnum(protoreflect.EnumNumber(uint32(number))))
	case protoreflect.BoolKind:
		m.Set(f, protoreflect.ValueOfBool(number&1 == 1))
	case protoreflect.StringKind:
		m.Set(f, protoreflect.ValueOfString(texts[r.IntN(len(texts))]))
	case protoreflect.BytesKind:
		raw := make([]byte, []int{0, 1, 4, 31, 32, 33}[r.IntN(6)])
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		m.Set(f, protoreflect.ValueOfBytes(raw))
	}
}

// memory opens a store that is kept in memory.
func memory(t *testing.T) *stet.DB {
	t.Helper()
	blobs := memblob.New()
	db := must[*stet.DB](t)(stet.New(t.Context(), stet.Backend{Blobs: blobs, Rows: memkv.New(blobs), Inventory: blobs}, nil, nil))
	t.Cleanup(func() { db.Close() })
	return db
}
