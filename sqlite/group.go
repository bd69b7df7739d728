package sqlite

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// group holds what one transaction writes: blobs first, then the batches that may refer
// to them. Each batch is checked completely before its first change, so a failed batch
// leaves nothing behind and does not affect the others.
type group struct {
	w      *writer
	c      *conn
	gen    int64
	unused map[*record]bool  // object files of blobs that were already stored
	fresh  map[blob.ID]bool  // blobs now in the current generation
	lost   map[blob.ID]error // blobs that cannot be stored, for example because their base is gone
}

// apply returns an error only if the whole transaction must fail. The error of a single
// batch goes into its verdict.
func (g *group) apply(recs []*record, reqs []*request, verdicts []error) error {
	gen, err := generation(g.c)
	if err != nil {
		return err
	}
	g.gen, g.w.generation = gen, gen
	g.w.fresh.current.Store(gen)
	born := time.Now().Unix()
	for _, r := range recs {
		if err := g.insert(r, born); err != nil {
			return sqlError("store blob "+r.id.String(), err)
		}
	}
	for i, r := range reqs {
		if r.batch == nil || verdicts[i] != nil {
			continue
		}
		verdict, err := g.check(r.batch)
		if err != nil {
			return sqlError("check batch", err)
		}
		if verdicts[i] = verdict; verdict != nil {
			continue
		}
		if err := g.change(r.batch); err != nil {
			return sqlError("write rows", err)
		}
	}
	return nil
}

// generation returns the number for new blobs.
func generation(c *conn) (int64, error) {
	var gen int64
	err := c.query(`SELECT value FROM meta WHERE key = 'generation'`, func(s *sqlite3.Stmt) error {
		gen = s.ColumnInt64(0)
		return nil
	})
	if err == nil && gen == 0 {
		return 0, fmt.Errorf("%w: the generation is missing", ErrDamaged)
	}
	return gen, sqlError("read generation", err)
}

const insertBlob = `INSERT INTO blobs (id, gen, born, size, base, file, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING`

func (g *group) insert(r *record, born int64) error {
	if r.renewal {
		found, err := g.touch(r.id)
		if err == nil && !found { // swept after Put saw it; the content is gone
			g.lose(r, fmt.Errorf("store blob %s once more: %w", r.id, blob.NotFound(r.id)))
		}
		return err
	}
	if r.file != "" && !g.w.db.objects.exists(r.id, r.file) {
		// It waited so long that another process swept it as an orphan.
		g.lose(r, fmt.Errorf("store blob %s: its object file: %w", r.id, blob.NotFound(r.id)))
		return nil
	}
	if !r.base.IsZero() {
		found, err := g.touch(r.base)
		if err != nil {
			return err
		}
		if !found { // swept after the layer above had read it
			g.lose(r, fmt.Errorf("store blob %s: its base: %w", r.id, blob.NotFound(r.base)))
			return nil
		}
	}
	s, err := g.c.stmt(insertBlob)
	if err != nil {
		return err
	}
	defer s.Reset()
	if err := bindBlob(s, r, g.gen, born); err != nil {
		return err
	}
	if err := s.Exec(); err != nil {
		return err
	}
	if g.c.Changes() == 0 {
		g.notUsed(r)
		_, err := g.touch(r.id)
		return err
	}
	g.refreshed(r.id)
	return nil
}

// lose records why a blob cannot be stored.
func (g *group) lose(r *record, err error) {
	if g.lost == nil {
		g.lost = make(map[blob.ID]error)
	}
	g.lost[r.id] = err
	g.notUsed(r)
}

// notUsed records that the file of a record, if any, is not needed.
func (g *group) notUsed(r *record) {
	if g.unused == nil {
		g.unused = make(map[*record]bool)
	}
	g.unused[r] = true
}

func bindBlob(s *sqlite3.Stmt, r *record, gen, born int64) error {
	err := s.BindBlob(1, r.id[:])
	if err == nil {
		err = s.BindInt64(2, gen)
	}
	if err == nil {
		err = s.BindInt64(3, born)
	}
	if err == nil {
		err = s.BindInt64(4, r.size)
	}
	if err == nil {
		if r.base.IsZero() {
			err = s.BindNull(5)
		} else {
			err = s.BindBlob(5, r.base[:])
		}
	}
	if err != nil {
		return err
	}
	if r.file != "" {
		if err := s.BindText(6, r.file); err != nil {
			return err
		}
		return s.BindNull(7)
	}
	if err := s.BindNull(6); err != nil {
		return err
	}
	return s.BindBlob(7, r.data)
}

// touch moves a blob and its bases into the current generation, so that a running
// collector keeps them. If the blob is already in it, its bases were touched before, or
// Replace gave it one. That base may be older, and stays as long as the blob does.
func (g *group) touch(id blob.ID) (found bool, err error) {
	for {
		if g.fresh[id] || g.w.fresh.has(g.gen, id) {
			return true, nil
		}
		gen, base, ok, err := blobLinks(g.c, id)
		if err != nil || !ok {
			return found, err
		}
		found = true
		g.refreshed(id)
		if gen >= g.gen {
			return found, nil
		}
		if err := g.c.exec(`UPDATE blobs SET gen = ?1 WHERE id = ?2`, g.gen, id[:]); err != nil {
			return found, err
		}
		if base.IsZero() {
			return found, nil
		}
		id = base
	}
}

// refreshed records a blob of the current generation.
func (g *group) refreshed(id blob.ID) {
	if g.fresh == nil {
		g.fresh = make(map[blob.ID]bool)
	}
	g.fresh[id] = true
}

func blobLinks(c *conn, id blob.ID) (gen int64, base blob.ID, ok bool, err error) {
	s, err := c.stmt(`SELECT gen, base FROM blobs WHERE id = ?1`)
	if err != nil {
		return 0, blob.ID{}, false, err
	}
	defer s.Reset()
	if err := s.BindBlob(1, id[:]); err != nil {
		return 0, blob.ID{}, false, err
	}
	if s.Step() {
		ok, gen = true, s.ColumnInt64(0)
		copy(base[:], s.ColumnRawBlob(1))
	}
	return gen, base, ok, s.Err()
}

// check reports whether a batch can be applied now.
func (g *group) check(b *kv.Batch) (verdict, err error) {
	for _, e := range b.Expect {
		version, err := rowVersion(g.c, e.Key)
		if err != nil {
			return nil, err
		}
		if version != e.Version {
			return &kv.ConflictError{Key: e.Key, Want: e.Version, Got: version}, nil
		}
	}
	var missing []blob.ID
	for _, id := range b.Refs {
		found, err := g.touch(id)
		if err != nil {
			return nil, err
		}
		if !found {
			missing = append(missing, id)
		}
	}
	if missing != nil {
		return &kv.MissingBlobsError{IDs: missing}, nil
	}
	return nil, nil
}

func rowVersion(c *conn, key string) (uint64, error) {
	s, err := c.stmt(`SELECT version FROM rows WHERE key = ?1`)
	if err != nil {
		return 0, err
	}
	defer s.Reset()
	if err := s.BindText(1, key); err != nil {
		return 0, err
	}
	var version uint64
	if s.Step() {
		version = uint64(s.ColumnInt64(0))
	}
	return version, s.Err()
}

// change applies a checked batch.
func (g *group) change(b *kv.Batch) error {
	for _, r := range b.DeleteRange {
		if r.Empty() {
			continue
		}
		sql, args := `DELETE FROM rows WHERE key >= ?1 AND key < ?2`, []any{r.Start, r.End}
		if r.End == "" {
			sql, args = `DELETE FROM rows WHERE key >= ?1`, args[:1]
		}
		if err := g.c.exec(sql, args...); err != nil {
			return err
		}
	}
	for _, key := range b.Delete {
		if err := g.c.exec(`DELETE FROM rows WHERE key = ?1`, key); err != nil {
			return err
		}
	}
	version := newVersion()
	for _, set := range b.Set {
		if err := g.set(set, version); err != nil {
			return err
		}
	}
	return nil
}

// newVersion draws a version at random: a counter would be one more page to write in
// every transaction, and a clock may jump back. Sixty-two random bits do not repeat on
// one key.
func newVersion() int64 { return rand.Int64()>>1 + 1 }

func (g *group) set(set kv.Set, version int64) error {
	s, err := g.c.stmt(`INSERT INTO rows (key, version, value) VALUES (?1, ?2, ?3)
		ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value`)
	if err != nil {
		return err
	}
	defer s.Reset()
	if err := s.BindText(1, set.Key); err != nil {
		return err
	}
	if err := s.BindInt64(2, version); err != nil {
		return err
	}
	value := set.Value
	if value == nil {
		value = []byte{}
	}
	if err := s.BindBlob(3, value); err != nil {
		return err
	}
	return s.Exec()
}
