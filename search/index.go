package search

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/search/internal/corpus"
)

// ErrClosed says that an Index was closed.
var ErrClosed = fault.Named(fault.Closed, "index-closed", "search index is closed")

// Options configure an Index; nil gives the defaults.
type Options struct {
	// Path is the index's file. If it is empty, the index is in memory.
	Path string
}

// Index finds words in conversations. It is safe for concurrent use, and several
// processes may use one file.
type Index struct {
	source *corpus.Source

	updating    chan struct{} // holds a value while an update of all conversations runs
	done, total atomic.Int64  // of the conversations that running updates change

	mu       sync.Mutex // guards what follows; taken before a handle's
	path     string
	degraded error
	closed   bool
	// Searching does not wait for updating unless the index is in memory, where
	// both are the same handle.
	writer, finder *handle
}

// handle is a connection and its lock.
type handle struct {
	mu sync.Mutex // guards c
	c  *conn      // nil once another handle has taken its place
}

// Open opens an index of the conversations in a store; blobs and rows are those that
// the store works on. A damaged file, or one of an older release, is rebuilt. If the
// file cannot be used at all, the index is in memory and Degraded returns why.
func Open(ctx context.Context, conversations *conversation.Store, blobs blob.Store, rows kv.Store, opts *Options) (*Index, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ix := &Index{source: corpus.NewSource(conversations, blobs, rows), updating: make(chan struct{}, 1)}
	if opts != nil {
		ix.path = opts.Path
	}
	if err := ix.openLocked(); err != nil {
		return nil, fmt.Errorf("open search index: %w", err)
	}
	return ix, nil
}

// Degraded returns why the index is in memory although it has a file, or nil.
func (ix *Index) Degraded() error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.degraded
}

// openLocked makes the handles.
func (ix *Index) openLocked() error {
	if ix.path != "" {
		err := ix.openFileLocked()
		if damaged(err) {
			if err = removeFile(ix.path); err == nil {
				err = ix.openFileLocked()
			}
		}
		if err == nil {
			return nil
		}
		ix.degradeLocked(err)
	}
	c, err := openConn("")
	if err != nil {
		return err
	}
	if err := ensure(c); err != nil {
		return errors.Join(err, c.close())
	}
	ix.writer = &handle{c: c}
	ix.finder = ix.writer
	return nil
}

func (ix *Index) degradeLocked(err error) {
	ix.degraded, ix.path = fmt.Errorf("search index is in memory only: %w", err), ""
}

func (ix *Index) openFileLocked() error {
	w, err := openConn(ix.path)
	if err != nil {
		return err
	}
	if err := ensure(w); err != nil {
		return errors.Join(err, w.close())
	}
	r, err := openConn(ix.path)
	if err != nil {
		return errors.Join(err, w.close())
	}
	ix.writer, ix.finder = &handle{c: w}, &handle{c: r}
	return nil
}

func removeFile(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// update calls fn with the connection that writes, find with the one that reads. A
// damaged index is replaced by an empty one, and the error is returned.
func (ix *Index) update(ctx context.Context, fn func(*conn) error) error {
	return ix.with(ctx, func() *handle { return ix.writer }, fn)
}

func (ix *Index) find(ctx context.Context, fn func(*conn) error) error {
	return ix.with(ctx, func() *handle { return ix.finder }, fn)
}

func (ix *Index) with(ctx context.Context, pick func() *handle, fn func(*conn) error) error {
	for {
		ix.mu.Lock()
		h, closed := pick(), ix.closed
		ix.mu.Unlock()
		if closed {
			return ErrClosed
		}
		used, err := h.with(ctx, fn)
		if !used && err == nil {
			continue // the index was rebuilt meanwhile
		}
		if damaged(err) {
			err = errors.Join(err, ix.renew(h))
		}
		return err
	}
}

// with calls fn with the connection, if there still is one.
func (h *handle) with(ctx context.Context, fn func(*conn) error) (used bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil || h.c == nil {
		return false, err
	}
	old := h.c.SetInterrupt(ctx)
	defer h.c.SetInterrupt(old)
	err = fn(h.c)
	if ctxErr := ctx.Err(); err != nil && ctxErr != nil {
		return true, ctxErr // the library calls it an interrupt
	}
	return true, err
}

// Truncate empties the log of the index's file, in which removed text may remain.
func (ix *Index) Truncate(ctx context.Context) error {
	err := ix.update(ctx, func(c *conn) error {
		_, _, err := c.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
		return err
	})
	if err != nil {
		return fmt.Errorf("empty the log of the search index: %w", err)
	}
	return nil
}

// Close releases the index. It waits for running calls.
func (ix *Index) Close() error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.closed {
		return nil
	}
	ix.closed = true
	return errors.Join(ix.finder.close(), ix.writer.close())
}

func (h *handle) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.c == nil {
		return nil
	}
	c := h.c
	h.c = nil
	return c.close()
}

// renew replaces the damaged index of a handle by an empty one.
func (ix *Index) renew(of *handle) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.closed {
		return ErrClosed
	}
	if of != ix.writer && of != ix.finder {
		return nil // another goroutine did
	}
	// Errors of closing a damaged file do not matter.
	_, _ = ix.finder.close(), ix.writer.close()
	if ix.path != "" {
		if err := removeFile(ix.path); err != nil {
			ix.degradeLocked(err)
		}
	}
	return ix.openLocked()
}
