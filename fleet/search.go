package fleet

import (
	"context"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/search/pgsearch"
)

// words is the search index of all tenants, opened at the first search: nodes that
// never search need neither its tables nor its connections.
type words struct {
	mu sync.Mutex   // guards db
	db *pgsearch.DB // nil until the first search
}

// index returns the index of a tenant. It is not used in an encrypted fleet: the
// tables would show what the store hides.
func (f *Fleet) index(ctx context.Context, tenant string, c *conversation.Store, blobs blob.Store, rows kv.Store) (search.Searcher, error) {
	f.words.mu.Lock()
	defer f.words.mu.Unlock()
	if f.words.db == nil {
		db, err := pgsearch.Open(ctx, f.config.Database, &pgsearch.Options{MaxConns: 4})
		if err != nil {
			return nil, err
		}
		f.words.db = db
	}
	return f.words.db.Index(tenant, c, blobs, rows)
}

func (w *words) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.db != nil {
		w.db.Close()
	}
}
