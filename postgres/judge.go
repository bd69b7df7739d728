package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// judge answers and drops the requests whose conditions do not hold, after one of
// them failed the transaction. It reads without locks: it may report a condition that
// was false at any time during the call.
func (g *group) judge(deadline time.Time) error {
	var seen facts
	for {
		var err error
		if seen, err = g.look(); err == nil {
			break
		}
		if refused(err) || time.Now().After(deadline) {
			return g.t.db.wrap(g.t.db.ctx, "look at rows", err)
		}
		if err := g.t.db.pause(100 * time.Millisecond); err != nil {
			return err
		}
	}
	g.t.forget(g.change().refs, seen.blobs)
	g.loseRecords(seen)
	failed := false
	g.reqs = slices.DeleteFunc(g.reqs, func(r *request) bool {
		if r.batch == nil {
			return false
		}
		verdict := g.verdict(r.batch, seen)
		if verdict != nil {
			r.done <- verdict
			failed = true
		}
		return verdict != nil
	})
	if failed {
		return nil
	}
	if !g.general {
		g.general = true
		return nil
	}
	// Another commit was faster, a collector has begun on another node, or the
	// tenant's own rows are gone, as after a restore.
	g.outrun++
	g.t.newGeneration(0)
	return g.t.db.pause(time.Millisecond)
}

// facts is what judge reads.
type facts struct {
	versions map[string]uint64
	blobs    map[blob.ID]bool
}

func (g *group) look() (facts, error) {
	seen := facts{versions: make(map[string]uint64), blobs: make(map[blob.ID]bool)}
	var keys, ids [][]byte
	for _, r := range g.reqs {
		if r.batch == nil {
			continue
		}
		for _, e := range r.batch.Expect {
			keys = append(keys, []byte(e.Key))
		}
		ids = append(ids, idBytes(r.batch.Refs)...)
	}
	for _, r := range g.recs {
		if !r.base.IsZero() {
			ids = append(ids, r.base.Bytes())
		}
	}
	ctx, cancel := context.WithTimeout(g.t.db.ctx, g.t.db.opts.StatementTimeout)
	defer cancel()
	b := &pgx.Batch{}
	b.Queue(g.t.db.sql(`SELECT r.key, r.version`+eachRow), g.t.name, keys).Query(func(rows pgx.Rows) error {
		var key []byte
		var version int64
		_, err := pgx.ForEachRow(rows, []any{&key, &version}, func() error {
			seen.versions[string(key)] = uint64(version)
			return nil
		})
		return err
	})
	b.Queue(g.t.db.sql(sqlHasBlobs), g.t.name, ids).Query(func(rows pgx.Rows) error {
		var id []byte
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
			seen.blobs[blob.ID(id)] = true
			return nil
		})
		return err
	})
	return seen, g.t.db.pool.SendBatch(ctx, b).Close()
}

// loseRecords drops blobs whose base was swept after the layer above read it, and the
// blobs that lean on them.
func (g *group) loseRecords(seen facts) {
	for again := true; again; {
		carried := make(map[blob.ID]bool, len(g.recs))
		for _, r := range g.recs {
			carried[r.id] = true
		}
		before := len(g.recs)
		g.recs = slices.DeleteFunc(slices.Clone(g.recs), func(r *record) bool {
			if r.base.IsZero() || carried[r.base] || seen.blobs[r.base] {
				return false
			}
			g.lost = append(g.lost, loss{r, fmt.Errorf("store blob %s: its base: %w", r.id, blob.NotFound(r.base))})
			return true
		})
		again = len(g.recs) < before
	}
	for _, r := range g.recs {
		seen.blobs[r.id] = true
	}
}

// verdict returns why a batch cannot be applied, or nil.
func (g *group) verdict(b *kv.Batch, seen facts) error {
	for _, e := range b.Expect {
		if got := seen.versions[e.Key]; got != e.Version {
			return &kv.ConflictError{Key: e.Key, Want: e.Version, Got: got}
		}
	}
	var missing []blob.ID
	for _, id := range b.Refs {
		if !seen.blobs[id] {
			missing = append(missing, id)
		}
	}
	if missing != nil {
		return &kv.MissingBlobsError{IDs: missing}
	}
	return nil
}
