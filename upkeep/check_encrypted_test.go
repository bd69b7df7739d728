package upkeep_test

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/encrypted"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/upkeep"
)

// rotten is a store in which a bit of some blobs has changed.
type rotten struct {
	*memblob.Store
	at atomic.Pointer[map[blob.ID]int] // which byte; negative ones count from the end
}

func newRotten() *rotten {
	r := &rotten{Store: memblob.New()}
	r.damage(nil)
	return r
}

// damage changes which blobs are damaged. A read that a canceled walk began may still
// be under way.
func (r *rotten) damage(at map[blob.ID]int) { r.at.Store(&at) }

func (r *rotten) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	data, err := r.Store.Get(ctx, id)
	if at, bad := (*r.at.Load())[id]; bad && err == nil {
		data[(at+len(data))%len(data)] ^= 1
	}
	return data, err
}

func (r *rotten) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	data, err := r.Get(ctx, id)
	return io.NopCloser(bytes.NewReader(data)), err
}

// TestCheckOfADamagedEncryptedStore changes a bit of each blob in turn, in its head
// and in its content.
func TestCheckOfADamagedEncryptedStore(t *testing.T) {
	ctx := t.Context()
	for _, keyed := range []bool{false, true} {
		blobs := newRotten()
		b := stet.Backend{Blobs: blobs, Rows: memkv.New(blobs.Store), Inventory: blobs, Objects: memblob.NewObjects()}
		ring := newRing(t)
		if !keyed {
			ring = nil
		}
		db := openOver(t, b, ring)
		talk(t, db, "c1", 1)
		capture(t, db, t.TempDir(), "c1", "text")
		_, err := db.Collect(ctx, &upkeep.CollectOptions{Grace: -1})
		must(t, err)
		must(t, db.Blobs().Put(ctx, blob.New([]byte("nobody needs this"))))
		var names []blob.ID
		must(t, blobs.List(ctx, blob.ID{}, func(i blob.Info) error { names = append(names, i.ID); return nil }))
		others := []blob.ID{blob.Sum([]byte("nobody needs this"))} // of no conversation
		for root, err := range db.Holders().Agents(ctx) {
			must(t, err)
			others = append(others, root.ID)
		}
		for i := range others {
			if keyed {
				others[i] = encrypted.New(blobs, ring, nil).Name(others[i])
			}
		}
		for _, name := range names {
			for _, at := range []int{0, 10, 50, -1} {
				blobs.damage(map[blob.ID]int{name: at})
				report, err := openOver(t, b, ring).Check(ctx, &upkeep.CheckOptions{ReadData: true})
				if err != nil {
					t.Errorf("encrypted %v, %s at %d: %v", keyed, name, at, err)
					continue
				}
				affects := slices.ContainsFunc(report.Damage, func(d upkeep.Damage) bool { return slices.Contains(d.Conversations, "c1") })
				if report.OK() || !affects && !slices.Contains(others, name) {
					t.Errorf("encrypted %v, %s at %d: damage %+v", keyed, name, at, report.Damage)
				}
			}
		}
	}
}

// TestDamageIsNotArchived has a changed bit in a blob that nobody looks into: a pack
// would vouch for it.
func TestDamageIsNotArchived(t *testing.T) {
	blobs := newRotten()
	b := stet.Backend{Blobs: blobs, Rows: memkv.New(blobs.Store), Inventory: blobs, Objects: memblob.NewObjects()}
	db := openOver(t, b, nil)
	talk(t, db, "c1", 1)
	capture(t, db, t.TempDir(), "c1", "text")
	var names []blob.ID
	must(t, blobs.List(t.Context(), blob.ID{}, func(i blob.Info) error { names = append(names, i.ID); return nil }))
	for _, name := range names {
		blobs.damage(map[blob.ID]int{name: -1})
		if _, err := openOver(t, b, nil).Archive(t.Context(), "c1"); err == nil {
			t.Errorf("%s is damaged, and was archived", name)
			must(t, db.Unarchive(t.Context(), "c1"))
		}
	}
	blobs.damage(nil)
	_, err := db.Archive(t.Context(), "c1")
	must(t, err)
}
