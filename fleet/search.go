package fleet

import (
	"context"
	"errors"
	"slices"
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
	there atomic.Bool  // the tables exist
	mu    sync.Mutex   // guards db
	db    *pgsearch.DB // nil until the first search
}

// searchOptions limit the connections that searches use.
var searchOptions = &pgsearch.Options{MaxConns: 4}

// prepare creates the tables, unless the fleet is encrypted: they would show what the
// store hides. If that fails, for example without the right to create a schema,
// everything but searches works.
func (w *words) prepare(ctx context.Context, db *postgres.DB) {
	w.there.Store(pgsearch.Prepare(ctx, db.Pool(), searchOptions) == nil)
}

// beside removes from the index what leaves the store, in the same transaction.
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

// UpdateSearch brings the indexes of all tenants up to date: the words of
// conversations that changed, and the lists by workspace and agent of stores from
// earlier releases. It works on each tenant for about the time in budget, and reports
// how many conversations it indexed and whether there is more to do. It can be
// stopped at any point and called on several nodes at once: only one at a time
// changes an index, and continues where another stopped.
func (f *Fleet) UpdateSearch(ctx context.Context, budget time.Duration) (done int64, more bool, err error) {
	names, err := f.searchWaiting(ctx)
	if err != nil {
		return 0, false, err
	}
	for _, name := range names {
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

// searchWaiting returns the tenants whose index is not up to date. An encrypted fleet has
// no indexes.
func (f *Fleet) searchWaiting(ctx context.Context) ([]string, error) {
	if f.ring != nil {
		return nil, nil
	}
	db, err := f.words.open(ctx, f.config.Database)
	if err != nil {
		return nil, err
	}
	names, err := db.Waiting(ctx, f.db.Table("tenants"), f.db.Table("rows"))
	return slices.DeleteFunc(names, func(name string) bool { return name == system }), err
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
	// searchTask is the name of the task, for its lease and its state.
	searchTask = "search"
	// searchBudget is how long a node works on the index of one tenant before it looks at
	// the others.
	searchBudget = 10 * time.Second
	// searchPause is how long it waits before it looks for changes again.
	searchPause = time.Second
	// searchIdle is how long it keeps the lease when nothing changes, so that an active
	// fleet does not write a lease every second.
	searchIdle = 10 * time.Second
	// searchReport is how often it reports its progress.
	searchReport = 10 * time.Second
)

// KeepSearch keeps the indexes up to date until ctx is done, on one node at a time.
// Its state is that of a task named search: see House. failed is called with errors,
// after which it continues. A pause of housekeeping does not stop it, because it
// touches no objects.
func (f *Fleet) KeepSearch(ctx context.Context, failed func(error)) {
	stop := f.measureHouse([]Task{{Name: searchTask}})
	defer stop()
	for ctx.Err() == nil {
		if err := f.keepSearch(ctx, searchIdle); err != nil && ctx.Err() == nil {
			failed(err)
		}
		_ = sleep(ctx, searchPause)
	}
}

// keepSearch updates indexes if there is something to do and no other node does it,
// until there has been nothing to do for some time.
func (f *Fleet) keepSearch(ctx context.Context, idle time.Duration) error {
	names, err := f.searchWaiting(ctx)
	if err != nil || len(names) == 0 {
		return err
	}
	_, err = f.Lease("house:"+searchTask).Hold(ctx, func(ctx context.Context) error { return f.runSearch(ctx, idle) })
	return err
}

// runSearch updates indexes and reports its progress.
func (f *Fleet) runSearch(ctx context.Context, idle time.Duration) error {
	before, err := f.state(ctx, searchTask)
	if err != nil {
		return err
	}
	s := TaskState{Name: searchTask, Node: f.node, Began: f.db.Now().UTC(), Succeeded: before.Succeeded}
	worked, reported := time.Now(), time.Now()
	for {
		n, more, err := f.UpdateSearch(ctx, searchBudget)
		if ctx.Err() != nil {
			return ctx.Err() // this node is stopping or has lost the lease; another one continues
		}
		if s.Done += n; n > 0 || more {
			worked = time.Now()
		}
		s.Ended = f.db.Now().UTC()
		if err != nil {
			s.Error = firstLine(err)
		} else if !more {
			s.Succeeded = s.Ended
		}
		ends := err != nil || !more && time.Since(worked) >= idle
		if ends || time.Since(reported) >= searchReport {
			if noteErr := f.note(ctx, s); noteErr != nil {
				return errors.Join(err, noteErr)
			}
			reported = time.Now()
		}
		if ends {
			return err
		}
		if !more {
			if err := sleep(ctx, searchPause); err != nil {
				return err
			}
		}
	}
}
