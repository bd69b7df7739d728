package fleet

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/postgres"
	"github.com/stet-dev/stet/search/pgsearch"
)

// words is the search index of all tenants. Its tables are created with those of the
// store; its connections are opened at the first search.
type words struct {
	there atomic.Bool  // the tables are there
	mu    sync.Mutex   // guards db
	db    *pgsearch.DB // nil until the first search
}

// searchOptions limit the connections that searches use.
var searchOptions = &pgsearch.Options{MaxConns: 4}

// prepare creates the tables, unless the fleet is encrypted: they would show what the
// store hides. Where that fails, as without the right to create a schema, everything but
// searches works.
func (w *words) prepare(ctx context.Context, db *postgres.DB) {
	w.there.Store(pgsearch.Prepare(ctx, db.Pool(), searchOptions) == nil)
}

// beside removes what leaves the store from the index, in the same transaction.
func (w *words) beside(tenant string, batches []*kv.Batch, condition string) (out []postgres.Statement) {
	if !w.there.Load() {
		return nil
	}
	for _, s := range pgsearch.Beside(tenant, batches, condition, searchOptions) {
		out = append(out, postgres.Statement(s))
	}
	return out
}

func (w *words) open(ctx context.Context, database string) (*pgsearch.DB, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.db == nil {
		db, err := pgsearch.Open(ctx, database, searchOptions)
		if err != nil {
			return nil, err
		}
		w.db = db
		w.there.Store(true)
	}
	return w.db, nil
}

func (w *words) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.db != nil {
		w.db.Close()
	}
}

// index returns the index of a tenant. It is not used in an encrypted fleet.
func (f *Fleet) index(ctx context.Context, t *postgres.Tenant, c *conversation.Store, blobs blob.Store, rows kv.Store) (*pgsearch.Index, error) {
	db, err := f.words.open(ctx, f.config.Database)
	if err != nil {
		return nil, err
	}
	index, err := db.Index(t.Name(), c, blobs, rows)
	if err != nil {
		return nil, err
	}
	index.Packed = func(ctx context.Context, id string) (bool, error) { return packed(ctx, t.Rows(), id) }
	return index, nil
}

// packed reports whether a conversation is archived: its rows have left the database.
func packed(ctx context.Context, rows kv.Store, id string) (bool, error) {
	if _, err := rows.Get(ctx, keyspace.Pack(id)); err != nil {
		if errors.Is(err, kv.ErrNotFound) {
			err = nil
		}
		return false, err
	}
	_, err := rows.Get(ctx, keyspace.Head(id))
	if errors.Is(err, kv.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// SearchMode returns what the index of a tenant holds.
func (f *Fleet) SearchMode(ctx context.Context, tenant string) (pgsearch.Mode, error) {
	index, err := f.bareIndex(ctx, tenant)
	if err != nil {
		return "", err
	}
	return index.Mode(ctx)
}

// SetSearchMode changes what the index of a tenant holds. Nodes then change the index in
// the background.
func (f *Fleet) SetSearchMode(ctx context.Context, tenant string, mode pgsearch.Mode) error {
	index, err := f.bareIndex(ctx, tenant)
	if err != nil {
		return err
	}
	return index.SetMode(ctx, mode)
}

// bareIndex is an index whose mode alone is used.
func (f *Fleet) bareIndex(ctx context.Context, tenant string) (*pgsearch.Index, error) {
	t, _, err := f.tenant(tenant)
	if err != nil {
		return nil, err
	}
	return f.index(ctx, t, nil, t.Blobs(), t.Rows())
}

// UpdateSearch brings the indexes of all tenants up to date: the words of conversations
// that changed, and the lists by workspace and agent of stores from earlier releases. It
// works on each tenant for about as long as budget says, and reports how many conversations
// it indexed and whether there is more to do. It can be ended anywhere and be called on
// several nodes at once: one at a time changes an index, and continues what another left.
func (f *Fleet) UpdateSearch(ctx context.Context, budget time.Duration) (done int64, more bool, err error) {
	if f.ring != nil {
		return 0, false, nil
	}
	db, err := f.words.open(ctx, f.config.Database)
	if err != nil {
		return 0, false, err
	}
	names, err := db.Waiting(ctx, f.db.Table("tenants"), f.db.Table("rows"))
	if err != nil {
		return 0, false, err
	}
	for _, name := range names {
		if name == system {
			continue
		}
		n, left, failed := f.updateTenant(ctx, name, budget)
		if ctx.Err() != nil {
			return done, more, ctx.Err()
		}
		if errors.Is(failed, ErrMigrating) {
			continue
		}
		done, more, err = done+n, more || left, errors.Join(err, failed)
	}
	return done, more, err
}

func (f *Fleet) updateTenant(ctx context.Context, name string, budget time.Duration) (done int64, more bool, err error) {
	db, err := f.Open(ctx, name)
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Conversations().FileAll(ctx, nil); err != nil {
		return 0, false, err
	}
	index, err := f.indexOf(ctx, name, db)
	if err != nil {
		return 0, false, err
	}
	stats, more, err := index.Work(ctx, budget)
	return int64(stats.Conversations + stats.Removed), more, err
}

func (f *Fleet) indexOf(ctx context.Context, name string, db *stet.DB) (*pgsearch.Index, error) {
	t, _, err := f.tenant(name)
	if err != nil {
		return nil, err
	}
	return f.index(ctx, t, db.Conversations(), db.Blobs(), db.Rows())
}

const (
	// searchBudget is how long a node works on the index of one tenant before it looks at
	// the others.
	searchBudget = 10 * time.Second
	// searchPause is how long it waits before it looks for changes again.
	searchPause = time.Second
)

// KeepSearch keeps the indexes up to date until ctx is done. failed is called with errors,
// after which it goes on.
func (f *Fleet) KeepSearch(ctx context.Context, failed func(error)) {
	for ctx.Err() == nil {
		_, more, err := f.UpdateSearch(ctx, searchBudget)
		if err != nil && ctx.Err() == nil {
			failed(err)
			more = false
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(searchPause):
		}
	}
}
