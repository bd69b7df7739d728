package cursor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"github.com/stet-dev/stet/blob"
)

// agentStores are the stores of the agents in an SDK directory, opened on demand.
type agentStores struct {
	dir  string
	opts Options

	mu   sync.Mutex // guards open stores
	dbs  map[string]*database
	done bool
}

// open returns the store in a directory of the agents' directory.
func (a *agentStores) open(ctx context.Context, name string) (*database, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		return nil, blob.ErrClosed
	}
	if db := a.dbs[name]; db != nil {
		return db, nil
	}
	opts := a.opts
	opts.Write = false
	db, err := openDatabase(ctx, filepath.Join(a.dir, name, "store.db"), opts)
	if err != nil {
		return nil, err
	}
	if a.dbs == nil {
		a.dbs = map[string]*database{}
	}
	a.dbs[name] = db
	return db, nil
}

// all opens all stores. The error names the stores that cannot be opened; the others
// are returned.
func (a *agentStores) all(ctx context.Context) ([]*database, error) {
	if a.dir == "" {
		return nil, ctx.Err()
	}
	entries, err := os.ReadDir(a.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []*database
	errs := []error{err}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		db, err := a.open(ctx, e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // an agent without blobs
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, db)
	}
	return out, errors.Join(errs...)
}

func (a *agentStores) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = true
	var errs []error
	for _, db := range a.dbs {
		errs = append(errs, db.close())
	}
	a.dbs = nil
	return errors.Join(errs...)
}

func agentBlobs(db *database) *tableBlobs {
	return &tableBlobs{db: db, table: blobTable, emptyAs: []byte{}}
}

// unionBlobs are the blobs of all agents of an SDK store.
type unionBlobs struct{ stores *agentStores }

// Get returns the blob from the first agent with an intact copy.
func (u *unionBlobs) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	dbs, errs := u.stores.all(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, db := range dbs {
		data, err := agentBlobs(db).Get(ctx, id)
		if err == nil {
			return data, nil
		}
		if !errors.Is(err, blob.ErrNotFound) {
			errs = errors.Join(errs, err)
		}
	}
	if errs != nil {
		return nil, errs
	}
	return nil, blob.NotFound(id)
}

// Has reports which blobs some agent has.
func (u *unionBlobs) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	dbs, err := u.stores.all(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(ids))
	for _, db := range dbs {
		has, err := agentBlobs(db).Has(ctx, ids...)
		if err != nil {
			return nil, err
		}
		for i := range has {
			out[i] = out[i] || has[i]
		}
	}
	return out, nil
}

// List merges the lists of all agents; a blob of several agents is listed once.
func (u *unionBlobs) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	dbs, err := u.stores.all(ctx)
	if err != nil {
		return err
	}
	var heads []*listHead
	defer func() {
		for _, h := range heads {
			h.stop()
		}
	}()
	for _, db := range dbs {
		h := newListHead(ctx, agentBlobs(db), after)
		heads = append(heads, h)
	}
	for {
		least := leastHead(heads)
		if least == nil {
			return ctx.Err()
		}
		if least.err != nil {
			return least.err
		}
		info := least.info
		if err := fn(info); err != nil {
			return err
		}
		for _, h := range heads {
			if h.ok && h.info.ID == info.ID {
				h.advance()
			}
		}
	}
}

// listHead is the next entry of one list.
type listHead struct {
	next func() (blob.Info, error, bool)
	stop func()
	info blob.Info
	err  error
	ok   bool
}

func newListHead(ctx context.Context, b *tableBlobs, after blob.ID) *listHead {
	errEnough := errors.New("enough")
	h := &listHead{}
	h.next, h.stop = iter.Pull2(func(yield func(blob.Info, error) bool) {
		err := b.List(ctx, after, func(info blob.Info) error {
			if !yield(info, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(blob.Info{}, err)
		}
	})
	h.advance()
	return h
}

func (h *listHead) advance() { h.info, h.err, h.ok = h.next() }

// leastHead returns the head with the smallest id, or one that failed.
func leastHead(heads []*listHead) *listHead {
	var least *listHead
	for _, h := range heads {
		switch {
		case !h.ok:
		case h.err != nil:
			return h
		case least == nil || h.info.ID.Compare(least.info.ID) < 0:
			least = h
		}
	}
	return least
}

// Put fails: the agent for the blob is undefined.
func (u *unionBlobs) Put(ctx context.Context, _ ...blob.Blob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("put into %s: %w", u.stores.dir, blob.ErrReadOnly)
}

// Flush has nothing to do.
func (u *unionBlobs) Flush(ctx context.Context) error { return ctx.Err() }
