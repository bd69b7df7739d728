package upkeep_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
)

// onlyPack reads the one object of a bucket.
func onlyPack(t *testing.T, b stet.Backend) (key string, whole []byte) {
	t.Helper()
	must(t, b.Objects.ListObjects(t.Context(), "", "", func(o blob.ObjectInfo) error { key = o.Key; return nil }))
	r, err := b.Objects.OpenObject(t.Context(), key, 0, -1)
	must(t, err)
	defer r.Close()
	whole, err = io.ReadAll(r)
	must(t, err)
	return key, whole
}

// A pack that is damaged is found, and named with its conversation.
func TestCheckFindsDamagedPacks(t *testing.T) {
	b := memBackend()
	db := openOver(t, b, nil)
	talk(t, db, "c1", 2)
	_, err := db.Archive(t.Context(), "c1")
	must(t, err)
	key, whole := onlyPack(t, b)
	for name, data := range map[string][]byte{"record": append(slices.Clone(whole[:20]), append([]byte{whole[20] ^ 1}, whole[21:]...)...), "gone": nil} {
		must(t, b.Objects.RemoveObjects(t.Context(), key))
		if data != nil {
			must(t, b.Objects.PutObject(t.Context(), key, bytes.NewReader(data), int64(len(data))))
		}
		report, err := openOver(t, b, nil).Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
		must(t, err)
		if len(report.Damage) == 0 || report.Damage[0].Key != keyspace.Pack("c1") || !slices.Equal(report.Damage[0].Conversations, []string{"c1"}) {
			t.Errorf("%s: damage %+v", name, report.Damage)
		}
	}
}

// Rows that only package pack reads are looked at, too, each for itself.
func TestCheckFindsDamagedRowsOfPacks(t *testing.T) {
	b := memBackend()
	db := openOver(t, b, nil)
	own := map[string]string{} // conversations by key
	for _, id := range []string{"c1", "c2"} {
		talk(t, db, id, 1)
		rec := capture(t, db, t.TempDir(), id, "text")
		_, err := db.Archive(t.Context(), id)
		must(t, err)
		for _, key := range []string{keyspace.Pack(id), keyspace.Packed(keyspace.Agent(id)), keyspace.Packed(keyspace.Checkpoint(rec.ID))} {
			own[key] = id
		}
	}
	check := func(damage string) map[string]bool {
		t.Helper()
		report, err := db.Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
		if err != nil {
			t.Fatalf("%s: %v", damage, err)
		}
		found := map[string]bool{}
		for _, d := range report.Damage {
			for _, id := range d.Conversations {
				found[id] = true
			}
		}
		return found
	}
	whole := map[string][]byte{}
	put := func(key string, value []byte) {
		t.Helper()
		batch := &kv.Batch{Delete: []string{key}}
		if value != nil {
			batch = &kv.Batch{Set: []kv.Set{{Key: key, Value: value}}}
		}
		must(t, b.Rows.Commit(t.Context(), batch))
	}
	for key, id := range own {
		row, err := b.Rows.Get(t.Context(), key)
		must(t, err)
		whole[key] = row.Value
		for _, at := range []int{0, 1, len(row.Value) / 2, len(row.Value) - 1} {
			bad := slices.Clone(row.Value)
			bad[at] ^= 2
			put(key, bad)
			if found := check(fmt.Sprintf("%s at %d", key, at)); len(found) != 1 || !found[id] {
				t.Errorf("%s is damaged at %d: found %v, want %s", key, at, found, id)
			}
		}
		put(key, nil)
		if found := check(key + " is gone"); !found[id] {
			t.Errorf("%s is gone: found %v, want %s", key, found, id)
		}
		put(key, row.Value)
	}
	if found := check("nothing"); len(found) > 0 {
		t.Errorf("all is well again: found %v", found)
	}
	for _, id := range []string{"c1", "c2"} {
		put(keyspace.Pack(id), []byte("no row of a catalog"))
	}
	if found := check("both catalogs"); !found["c1"] || !found["c2"] {
		t.Errorf("both catalogs are damaged: found %v", found)
	}
}

// A check reads the bucket and not what memory still has of it.
func TestCheckReadsPacksAgain(t *testing.T) {
	b := memBackend()
	db := openOver(t, b, nil)
	talk(t, db, "c1", 2)
	_, err := db.Archive(t.Context(), "c1")
	must(t, err)
	seen(t, db, "c1")
	key, whole := onlyPack(t, b)
	for _, at := range []int{len("stetPACK"), 20} { // its format, a record
		bad := slices.Clone(whole)
		bad[at] ^= 2
		must(t, b.Objects.RemoveObjects(t.Context(), key))
		must(t, b.Objects.PutObject(t.Context(), key, bytes.NewReader(bad), int64(len(bad))))
		report, err := db.Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
		if err != nil || report.OK() {
			t.Errorf("a bit of byte %d changed: report %+v, %v", at, report, err)
		}
	}
}
