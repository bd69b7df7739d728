package kvcases

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/overlap"
	"github.com/stet-dev/stet/kv"
)

var references = []named{
	{"a batch may refer to stored blobs", func(x *scratch) {
		a, b := x.newBlob(), x.newBlob()
		x.must(x.refer("r", a.ID, b.ID, a.ID), "commit with references")
		x.want("r", a.ID.String())
		x.wantBlob(a)
		x.wantBlob(b)
	}},
	{"a batch that refers to missing blobs fails and names them", missingBlobs},
	{"references alone may be committed", func(x *scratch) {
		x.must(x.store.Commit(x.ctx, &kv.Batch{Refs: []blob.ID{x.newBlob().ID}}), "commit of references")
		x.mustFail(x.store.Commit(x.ctx, &kv.Batch{Refs: []blob.ID{freshBlob().ID}}), blob.ErrNotFound, "commit of a missing reference")
	}},
	{"a conflict beats nothing: rows stay as they are", func(x *scratch) {
		x.put("r", "old")
		b := x.newBlob()
		x.unchanged(kv.ErrConflict, "commit", func() error {
			return x.store.Commit(x.ctx, &kv.Batch{Expect: []kv.Expect{x.expect("r", 0)}, Set: []kv.Set{x.set("r", "new")}, Refs: []blob.ID{b.ID}})
		})
	}},
	{"many references in one batch", func(x *scratch) {
		var blobs []blob.Blob
		var ids []blob.ID
		for range 1200 {
			b := freshBlob()
			blobs, ids = append(blobs, b), append(ids, b.ID)
		}
		x.must(x.blobs.Put(x.ctx, blobs...), "put blobs")
		x.must(x.refer("r", ids...), "commit")
		lost := freshBlob().ID
		x.unchanged(blob.ErrNotFound, "commit with one missing of many", func() error {
			return x.refer("r", append(ids, lost)...)
		})
	}},
	{"a collector keeps what a commit refers to meanwhile", collectorKeeps},
	{"a collector and a commit cannot both have a blob", collectorRaces},
	{"commits go on while collectors begin", commitsBesideBeginnings},
}

func freshBlob() blob.Blob { return blob.New([]byte("kvtest " + rand.Text())) }

func (x *scratch) newBlob() blob.Blob {
	b := freshBlob()
	x.must(x.blobs.Put(x.ctx, b), "put blob")
	return b
}

// refer commits a row that names blobs.
func (x *scratch) refer(name string, ids ...blob.ID) error {
	return x.store.Commit(x.ctx, &kv.Batch{Set: []kv.Set{x.set(name, ids[0].String())}, Refs: ids})
}

func (x *scratch) wantBlob(b blob.Blob) {
	data, err := x.blobs.Get(x.ctx, b.ID)
	x.must(err, "get blob")
	if string(data) != string(b.Data) {
		x.failf("blob %s holds %.40q, want %.40q", b.ID, data, b.Data)
	}
}

func missingBlobs(x *scratch) {
	x.put("r", "old")
	here, gone, lost := x.newBlob(), freshBlob(), freshBlob()
	err := x.refer("r", gone.ID, here.ID, lost.ID)
	var missing *kv.MissingBlobsError
	if !errors.As(err, &missing) || !errors.Is(err, blob.ErrNotFound) {
		x.failf("commit gave %v, want a MissingBlobsError", err)
	}
	named := map[blob.ID]bool{}
	for _, id := range missing.IDs {
		named[id] = true
	}
	if len(named) != 2 || !named[gone.ID] || !named[lost.ID] {
		x.failf("commit names %v, want %v and %v", missing.IDs, gone.ID, lost.ID)
	}
	x.want("r", "old")
	x.must(x.blobs.Put(x.ctx, gone, lost), "put what is missing")
	x.must(x.refer("r", gone.ID, here.ID, lost.ID), "commit once more")
	x.want("r", gone.ID.String())
}

// sweep removes only blobs of the check, so it can run on a live store.
func (x *scratch) sweep(s blob.Sweeper, generation uint64, mine ...blob.Blob) error {
	own := map[blob.ID]bool{}
	for _, b := range mine {
		own[b.ID] = true
	}
	_, err := s.Sweep(x.ctx, generation, blob.SweepOptions{Live: func(id blob.ID) bool { return !own[id] }})
	return err
}

func collectorKeeps(x *scratch) {
	s, ok := x.blobs.(blob.Sweeper)
	if !ok {
		return // nothing removes blobs from this store
	}
	old, referred := x.newBlob(), x.newBlob()
	large := blob.New(slices.Repeat([]byte(rand.Text()), 12<<10)) // drivers may keep it elsewhere
	x.must(x.blobs.Put(x.ctx, large), "put a large blob")
	generation, err := s.Begin(x.ctx)
	x.must(err, "begin a generation")
	x.must(x.refer("r", referred.ID, large.ID), "refer to old blobs")
	young := x.newBlob()
	x.must(x.sweep(s, generation, old, referred, large, young), "sweep")
	x.wantBlob(referred)
	x.wantBlob(large)
	x.wantBlob(young)
	_, err = x.blobs.Get(x.ctx, old.ID)
	x.mustFail(err, blob.ErrNotFound, "get of a swept blob")
	x.unchanged(blob.ErrNotFound, "reference to a swept blob", func() error { return x.refer("r", old.ID) })
	x.must(x.blobs.Put(x.ctx, old), "put the swept blob again")
	x.must(x.refer("r", old.ID), "refer to it")
	x.wantBlob(old)
}

// commitsBesideBeginnings opens generations as fast as it can. A commit belongs to one of
// them and must not run out of attempts.
func commitsBesideBeginnings(x *scratch) {
	s, ok := x.blobs.(blob.Sweeper)
	if !ok {
		return // nothing removes blobs from this store
	}
	b := x.newBlob()
	x.must(overlap.Run(20,
		func(int) error {
			_, err := s.Begin(x.ctx)
			return err
		},
		func(round int) error { return x.refer(fmt.Sprintf("r%d", round%3), b.ID) }), "commit while collectors begin")
	x.wantBlob(b)
}

// collectorRaces runs commits against a sweep: the loser must notice.
func collectorRaces(x *scratch) {
	s, ok := x.blobs.(blob.Sweeper)
	if !ok {
		return // nothing removes blobs from this store
	}
	for round := range 10 {
		var old []blob.Blob
		for range 16 {
			old = append(old, x.newBlob())
		}
		generation, err := s.Begin(x.ctx)
		x.must(err, "begin a generation")
		var g errgroup.Group
		g.Go(func() error { return x.sweep(s, generation, old...) })
		for i, b := range old {
			g.Go(func() error {
				err := x.refer(fmt.Sprintf("r%d-%d", round, i), b.ID)
				if errors.Is(err, blob.ErrNotFound) {
					return nil // the sweep was first
				}
				return err
			})
		}
		x.must(g.Wait(), "sweep and commit")
		x.danglingIn(round, old)
	}
}

func (x *scratch) danglingIn(round int, blobs []blob.Blob) {
	for i, b := range blobs {
		if _, err := x.store.Get(x.ctx, x.key(fmt.Sprintf("r%d-%d", round, i))); err == nil {
			x.wantBlob(b)
		} else {
			x.mustFail(err, kv.ErrNotFound, "get of the row of a swept blob")
		}
	}
}
