package pack

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

func sampleIndex() *index {
	return &index{
		rows: []rowItem{
			{key: keyspace.Save("c1", 2), version: 7, extent: extent{offset: 20, length: 3, sum: sumOf([]byte("two"))}},
			{key: keyspace.Save("c1", 1), version: 1 << 61, extent: extent{offset: 9, length: 11}},
		},
		blobs: []blobItem{
			{name: blob.Sum([]byte("b")), base: blob.Sum([]byte("a")), extent: extent{offset: 23, length: 0}},
			{name: blob.Sum([]byte("a")), extent: extent{offset: 23, length: 77}},
		},
	}
}

func TestIndexRoundTrip(t *testing.T) {
	end := sampleIndex().end()
	size := int64(100 + len(end))
	got, err := parseEnd(end, size)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.end(), end) || len(got.rows) != 2 || len(got.blobs) != 2 || got.rows[1].version != 7 {
		t.Errorf("read back %+v", got)
	}
	for i := range end {
		bad := bytes.Clone(end)
		bad[i] ^= 1
		if _, err := parseEnd(bad, size); !errors.Is(err, ErrDamaged) || !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("with byte %d changed: %v", i, err)
		}
		if _, err := parseEnd(end[i+1:], size); !errors.Is(err, ErrDamaged) {
			t.Errorf("without %d bytes: %v", i+1, err)
		}
	}
	// Records must lie inside the object.
	if _, err := parseEnd(end, size-1); !errors.Is(err, ErrDamaged) {
		t.Errorf("in a smaller object: %v", err)
	}
}

func TestHead(t *testing.T) {
	if err := checkHead(head()); err != nil {
		t.Error(err)
	}
	newer := head()
	newer[len(newer)-1]++
	if err := checkHead(newer); !errors.Is(err, ErrNewerFormat) || errors.Is(err, ErrDamaged) {
		t.Errorf("a newer pack: %v", err)
	}
	for _, bad := range [][]byte{nil, head()[:3], bytes.ToUpper(head()), append([]byte(headMagic), 0)} {
		if err := checkHead(bad); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func sampleEntry() *entry {
	return &entry{
		id: "c:1%", state: archived, time: time.UnixMilli(1_700_000_000_000),
		objects: []object{{key: "packs/ab/x-0", size: 1000, end: 100}, {key: "packs/ab/x-1", size: 99, end: 40}},
		rows:    5, blobs: 9, shadows: 1,
		hot:    []kv.Row{{Key: keyspace.Head("c:1%"), Version: 3, Value: []byte("head")}, {Key: "k", Version: 4, Value: []byte{}}},
		filter: newFilter([]blob.ID{blob.Sum(nil)}),
	}
}

func TestEntryRoundTrip(t *testing.T) {
	e := sampleEntry()
	row := kv.Row{Key: e.key(), Value: e.encode(), Version: 8}
	got, err := decodeEntry(row)
	if err != nil {
		t.Fatal(err)
	}
	if got.id != e.id || got.version != 8 || !bytes.Equal(got.encode(), row.Value) || !got.time.Equal(e.time) {
		t.Errorf("read back %+v", got)
	}
	later := bytes.Clone(row.Value[:len(row.Value)-sumSize])
	later[0]++
	if _, err := decodeEntry(kv.Row{Key: row.Key, Value: sign(row.Key, later)}); !errors.Is(err, ErrNewerFormat) {
		t.Errorf("of a later release: %v", err)
	}
	moved := row
	moved.Key = keyspace.Pack("c2")
	if _, err := decodeEntry(moved); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("under another key: %v", err)
	}
	for i := range row.Value {
		bad := row
		bad.Value = bytes.Clone(row.Value)
		bad.Value[i] ^= 4
		if _, err := decodeEntry(bad); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("with byte %d changed: %v", i, err)
		}
		bad.Value = row.Value[:i]
		if _, err := decodeEntry(bad); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
}

func TestShadowRoundTrip(t *testing.T) {
	want := shadow{conversation: "c1", row: kv.Row{Key: keyspace.Agent("a"), Version: 12, Value: []byte("record")}}
	set := want.set()
	got, err := decodeShadow(kv.Row{Key: set.Key, Value: set.Value, Version: 99})
	if err != nil || got.conversation != "c1" || got.row.Key != want.row.Key || got.row.Version != 12 || string(got.row.Value) != "record" {
		t.Errorf("read back %+v, %v", got, err)
	}
	for i := range set.Value {
		bad := bytes.Clone(set.Value)
		bad[i] ^= 2
		if _, err := decodeShadow(kv.Row{Key: set.Key, Value: bad}); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("with byte %d changed: %v", i, err)
		}
	}
}

func TestFilter(t *testing.T) {
	var in, out []blob.ID
	for i := range 2000 {
		in = append(in, blob.Sum([]byte{byte(i), byte(i >> 8)}))
		out = append(out, blob.Sum([]byte{byte(i), byte(i >> 8), 1}))
	}
	f := newFilter(in)
	wrong := 0
	for i := range in {
		if !f.may(in[i]) {
			t.Fatalf("blob %d is denied", i)
		}
		if f.may(out[i]) {
			wrong++
		}
	}
	if wrong > 60 { // one in a hundred is meant; the names are always the same
		t.Errorf("%d of 2000 wrong answers", wrong)
	}
	if newFilter(nil).may(in[0]) {
		t.Error("an empty pack may hold something")
	}
}

func TestGuards(t *testing.T) {
	for key, want := range map[string]string{
		keyspace.Head("a:b"):                      keyspace.Pack("a:b"),
		keyspace.MessageHead("a:b", "m"):          keyspace.Pack("a:b"),
		keyspace.Save("a", 1):                     keyspace.Pack("a"),
		keyspace.JSONCheckpoint("a", "x"):         keyspace.Pack("a"),
		keyspace.Exec("a", "call", 1):             keyspace.Pack("a"),
		keyspace.ConversationCheckpoint("a", "k"): keyspace.Pack("a"),
		keyspace.AgentEvent("bc", 1):              keyspace.Packed(keyspace.Agent("bc")),
		keyspace.Agent("bc"):                      keyspace.Packed(keyspace.Agent("bc")),
		keyspace.Checkpoint("k"):                  keyspace.Packed(keyspace.Checkpoint("k")),
		keyspace.Conversation("a"):                "",
		keyspace.ByTime(1, "a"):                   "",
		keyspace.Pin("a"):                         "",
		keyspace.CheckpointPin("a", "w"):          "",
		keyspace.SharedCheckpointPin("a"):         "",
		keyspace.WorkspaceCheckpoint("w", "k"):    "",
		keyspace.AgentMetadata("bc"):              "",
		keyspace.Operation(1):                     "",
		"stet:save:":                              "",
		"stet:save:a":                             "",
	} {
		if got := guardOf(key); got != want {
			t.Errorf("guard of %q is %q, want %q", key, got, want)
		}
	}
	for _, c := range []struct {
		r    kv.Range
		want string
	}{
		{keyspace.Saves("a"), keyspace.Pack("a")},
		{kv.Range{Start: keyspace.Save("a", 3), End: keyspace.Save("a", 5)}, keyspace.Pack("a")},
		{keyspace.AgentEvents("bc", 4), keyspace.Packed(keyspace.Agent("bc"))},
		{keyspace.AllSaves(), ""},
		{kv.Range{Start: keyspace.Save("a", 3), End: keyspace.Save("b", 1)}, ""},
		{kv.Range{Start: keyspace.Save("a", 3)}, ""},
		{kv.Range{}, ""},
		{keyspace.Conversations(), ""},
	} {
		if got := guardOfRange(c.r); got != c.want {
			t.Errorf("guard of %+v is %q, want %q", c.r, got, c.want)
		}
	}
}

func FuzzParseEnd(f *testing.F) {
	end := sampleIndex().end()
	f.Add(end, int64(len(end)+100))
	f.Add((&index{}).end(), int64(100))
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		// With the right sum, so that the parser gets to see it.
		if len(b) >= tailSize {
			s := sumOf(b[:len(b)-tailSize])
			copy(b[len(b)-tailSize+8:], s[:])
		}
		x, err := parseEnd(b, size)
		if err != nil {
			return
		}
		for _, r := range x.rows {
			if r.offset < 0 || r.length < 0 || r.offset+r.length > size {
				t.Errorf("row at %d of %d bytes in an object of %d", r.offset, r.length, size)
			}
		}
		for _, r := range x.blobs {
			if r.offset < 0 || r.length < 0 || r.offset+r.length > size {
				t.Errorf("blob at %d of %d bytes in an object of %d", r.offset, r.length, size)
			}
		}
	})
}

func FuzzDecodeEntry(f *testing.F) {
	e := sampleEntry()
	f.Add(e.encode()[:len(e.encode())-sumSize])
	f.Fuzz(func(t *testing.T, body []byte) {
		key := keyspace.Pack("c1")
		if got, err := decodeEntry(kv.Row{Key: key, Value: sign(key, bytes.Clone(body)), Version: 1}); err == nil {
			for _, o := range got.objects {
				if o.size < o.end || o.end <= 0 {
					t.Errorf("object %+v", o)
				}
			}
		}
		key = keyspace.Packed(keyspace.Agent("a"))
		if got, err := decodeShadow(kv.Row{Key: key, Value: sign(key, bytes.Clone(body)), Version: 1}); err == nil && got.conversation == "" {
			t.Errorf("shadow %+v", got)
		}
	})
}
