package compressed

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stet-dev/stet/blob"
)

// living is a process that puts and compacts.
type living struct {
	*bench
	s *Store
}

func newLiving(t testing.TB) *living {
	b := newBench(t, nearReads)
	return &living{b, b.fresh()}
}

func (l *living) put(v version) blob.ID {
	l.t.Helper()
	one := v.blob()
	l.contents[one.ID] = v.content
	l.must(l.s.Put(l.t.Context(), one))
	l.must(l.s.Flush(l.t.Context()))
	return one.ID
}

func (l *living) compactAll() {
	l.t.Helper()
	l.must(l.compact(l.t.Context(), l.s, 10_000))
	if infos, _, err := l.kept.Arrived(l.t.Context(), l.mark, 1); err != nil || len(infos) > 0 {
		l.t.Fatalf("there are still blobs to compact, %v", err)
	}
}

// list grows by an entry with each call.
func list(entries ...[]byte) []byte {
	return append(append([]byte("["), bytes.Join(entries, []byte(","))...), ']')
}

// A list that is put whenever it has grown takes little more than its last state, whenever
// it is compacted. Without turns it takes 2.7 times as much.
func TestAGrowingListIsStoredOnce(t *testing.T) {
	const n, words = 100, 100
	for _, every := range []int{1, n} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			l := newLiving(t)
			rng := rand.New(rand.NewPCG(1, 1))
			var entries [][]byte
			var last blob.ID
			for i := range n {
				entries = append(entries, paragraph(rng, words))
				last = l.put(version{content: list(entries...), like: last})
				if i%every == 0 {
					l.compactAll()
				}
			}
			l.compactAll()
			st := l.check()
			whole, _ := l.s.codec.shrink(l.contents[last])
			if most := int64(len(whole))*3/2 + n*60; st.bytes > most {
				t.Errorf("%d bytes are stored, want at most %d; the last state alone takes %d", st.bytes, most, len(whole))
			}
		})
	}
}

// Histories with branches, edits, returning contents, local blobs, collections and new
// processes keep every content, and chains stay short.
func TestTurnsInHistoriesWithBranches(t *testing.T) {
	for seed := range uint64(3) {
		l := newLiving(t)
		rng := rand.New(rand.NewPCG(seed, 9))
		ids := []blob.ID{l.put(version{content: paragraph(rng, 100)})}
		for range 250 {
			like := ids[len(ids)-1]
			switch rng.IntN(10) {
			case 0:
				like = ids[rng.IntN(len(ids))]
			case 1:
				like = ids[max(0, len(ids)-1-rng.IntN(5))]
			}
			old, ok := l.contents[like]
			if !ok {
				continue // collected
			}
			v := version{like: like, local: rng.IntN(30) == 0}
			switch rng.IntN(12) {
			case 0:
				v.content = edited(rng, old)
			case 1:
				v.content, v.keep = append(bytes.Clone(old), paragraph(rng, 50)...), int64(len(old))
			default:
				v.content = append(bytes.Clone(old[:max(0, len(old)-rng.IntN(3))]), paragraph(rng, 1+rng.IntN(150))...)
			}
			ids = append(ids, l.put(v))
			switch rng.IntN(40) {
			case 0, 1, 2:
				l.compactAll()
			case 3:
				l.s = l.fresh()
			case 4:
				live := make(map[blob.ID]bool)
				for id := range l.contents {
					live[id] = rng.IntN(3) > 0
				}
				l.collect(live)
			}
		}
		l.compactAll()
		l.check()
	}
}

// Nothing is made to lean on a blob whose stored bytes are not what its id says: they may
// be repaired.
func TestNothingIsTurnedOntoDamage(t *testing.T) {
	l := newLiving(t)
	rng := rand.New(rand.NewPCG(2, 2))
	var entries [][]byte
	var ids []blob.ID
	for range 5 {
		entries = append(entries, paragraph(rng, 200))
		v := version{content: list(entries...)}
		if len(ids) > 0 {
			v.like = ids[len(ids)-1]
		}
		ids = append(ids, l.put(v))
	}
	fourth, err := l.kept.Kept(t.Context(), ids[4])
	l.must(err)
	fourth.Data = bytes.Clone(fourth.Data)
	fourth.Data[len(fourth.Data)-400] ^= 1
	l.must(l.kept.Replace(t.Context(), fourth))
	l.compactAll()
	st := l.look()
	for _, id := range ids[:4] {
		if st.bases[id] == ids[4] {
			t.Errorf("%s leans on damage", id)
		}
	}
	if _, err := blob.Checked(l.fresh()).Get(t.Context(), ids[4]); !errors.Is(err, blob.ErrCorrupt) {
		t.Fatalf("the damage is not seen: %v", err)
	}
	delete(l.contents, ids[4])
	l.check()
}

// What stands alone because its base is removed becomes a difference from its hint again.
func TestARepairedBlobWithAHint(t *testing.T) {
	l := newLiving(t)
	rng := rand.New(rand.NewPCG(3, 3))
	first := l.put(version{content: paragraph(rng, 300)})
	second := l.put(version{content: append(bytes.Clone(l.contents[first]), paragraph(rng, 20)...)})
	l.compactAll()
	l.must(l.s.Repairer(l.kept).Repair(t.Context(), blob.Blob{ID: second, Data: l.contents[second], Like: first}))
	if st := l.check(); st.kinds[second] != kindHinted || !st.bases[second].IsZero() {
		t.Errorf("repaired: kind %d on %s", st.kinds[second], st.bases[second])
	}
	l.compactAll()
	if st := l.check(); st.bases[second] != first {
		t.Errorf("compacted: kind %d on %s", st.kinds[second], st.bases[second])
	}
}
