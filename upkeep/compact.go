package upkeep

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

const (
	// quietTime is how long nothing must have been put before the backlog is
	// worked on, so that a save never competes with it.
	quietTime = time.Second
	// maxBacklog is how much may wait before that no longer counts: a store that is
	// never quiet must not grow by plain content without end.
	maxBacklog = 256 << 20
	// compactPage is how many blobs are looked at before others get their turn. A pass
	// begins with fewer, so that one that is stopped early has done something.
	firstPage, compactPage = 16, 128
)

// compactMark is the row that says how far the backlog has been worked on. Its key is
// older than the word compact.
var compactMark = keyspace.Setting("settled")

// Compactor compresses, when there is time, content that was stored as it came.
// Writers then pay for the disk and not for the compressor. What one process leaves
// undone the next one finds by a mark in the rows.
//
// A nil Compactor is that of a store that compresses at once: it has nothing to do.
type Compactor struct {
	replacer blob.Replacer // of the store below the layer
	arrivals blob.Arrivals // in the store below the layer
	manual   bool
	layer    Compressor
	rows     kv.Store
	shrink   func(context.Context) error // gives room back; nil where nothing can
	pass     chan struct{}               // taken by the one pass at a time

	mu      sync.Mutex // guards the fields below
	backlog int64      // bytes that this process put and has not looked at since
	puts    uint64
	stop    context.CancelFunc // of the goroutine; nil where there is none
	done    chan struct{}      // closed when it has ended
	closed  bool
}

// Compressor is the layer whose blobs a Compactor compresses, a *compressed.Store.
type Compressor interface {
	Compact(ctx context.Context, below blob.Replacer, blobs []blob.Info) (saved int64, err error)
}

// NewCompactor returns a compactor of the blobs that arrive in the store below the
// layer that compresses. It works by itself when the store is quiet, unless it is
// manual: then only Compact does. Attach completes it, since the layer needs its Notice
// first.
func NewCompactor(replacer blob.Replacer, arrivals blob.Arrivals, manual bool) *Compactor {
	return &Compactor{replacer: replacer, arrivals: arrivals, manual: manual, pass: make(chan struct{}, 1)}
}

// Attach hands over the layer that compresses, the rows that keep the mark, and what
// gives free room back to the file system; nil where nothing can.
func (c *Compactor) Attach(layer Compressor, rows kv.Store, shrink func(context.Context) error) {
	c.layer, c.rows, c.shrink = layer, rows, shrink
}

// Notice counts content that was stored as it is.
func (c *Compactor) Notice(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.backlog += bytes
	c.puts++
	if c.stop == nil && !c.closed && !c.manual {
		ctx, stop := context.WithCancel(context.Background())
		c.stop, c.done = stop, make(chan struct{})
		go c.run(ctx, c.done)
	}
}

// run works until nothing is left, or the first error: what it does not do, a
// later one does.
func (c *Compactor) run(ctx context.Context, done chan struct{}) {
	defer close(done)
	for {
		c.waitForQuiet(ctx)
		puts := c.count()
		err := c.work(ctx, true, nil)
		c.mu.Lock()
		if err != nil || c.puts == puts {
			c.stop()
			c.stop = nil
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}

func (c *Compactor) count() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.puts
}

func (c *Compactor) waitForQuiet(ctx context.Context) {
	for {
		c.mu.Lock()
		puts, full := c.puts, c.backlog >= maxBacklog
		c.mu.Unlock()
		if full {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(quietTime):
		}
		if c.count() == puts {
			return
		}
	}
}

// work compacts everything behind the mark. A polite one makes way when the
// store is used again, unless too much waits.
func (c *Compactor) work(ctx context.Context, polite bool, progress func(done int)) error {
	select {
	case c.pass <- struct{}{}:
		defer func() { <-c.pass }()
	case <-ctx.Done(): // another one may take long
		return ctx.Err()
	}
	mark, err := c.mark(ctx)
	if err != nil {
		return err
	}
	done, puts := 0, c.count()
	for page := firstPage; ; page = min(2*page, compactPage) {
		infos, next, err := c.arrivals.Arrived(ctx, mark, page)
		if err != nil {
			return fmt.Errorf("find blobs to compact: %w", err)
		}
		if next == mark {
			c.lookedAt(puts, nil)
			if c.shrink == nil || done == 0 && polite {
				return nil
			}
			return c.shrink(ctx)
		}
		if _, err := c.layer.Compact(ctx, c.replacer, infos); err != nil {
			return err
		}
		err = c.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: compactMark, Value: []byte(next)}}})
		if err != nil {
			return fmt.Errorf("note how far blobs are compacted: %w", err)
		}
		mark, done = next, done+len(infos)
		if progress != nil {
			progress(done)
		}
		if used := c.lookedAt(puts, infos); polite && used {
			return nil
		}
	}
}

// lookedAt takes blobs, or with nil all that came before the pass, off the
// backlog. It reports whether the store was used meanwhile and the rest can wait.
func (c *Compactor) lookedAt(puts uint64, infos []blob.Info) (used bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range infos {
		c.backlog = max(0, c.backlog-i.Stored)
	}
	used = c.puts != puts
	if infos == nil && !used {
		c.backlog = 0
	}
	return used && c.backlog < maxBacklog
}

// Close ends the work in the background. What is left waits for the next process.
func (c *Compactor) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.closed = true
	done := c.done
	if c.stop != nil {
		c.stop()
	}
	c.mu.Unlock()
	if done != nil {
		<-done
	}
}

// Compact compresses now what the store keeps as it came, and gives the room back to
// the file system. An open store does that by itself when it is quiet. progress, if
// set, is called with the number of blobs looked at.
func (c *Compactor) Compact(ctx context.Context, progress func(done int)) error {
	if c == nil {
		return nil
	}
	return c.work(ctx, false, progress)
}

// Waiting returns how many bytes this process stored that are not compressed yet.
func (c *Compactor) Waiting() int64 {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.backlog
}

// Backlog returns about how many bytes Compact has not looked at, whichever process
// stored them. It stops counting at enough.
func (c *Compactor) Backlog(ctx context.Context, enough int64) (bytes int64, err error) {
	if c == nil {
		return 0, nil
	}
	mark, err := c.mark(ctx)
	for err == nil && bytes < enough {
		infos, next, arrivedErr := c.arrivals.Arrived(ctx, mark, compactPage)
		if arrivedErr != nil {
			return bytes, fmt.Errorf("find blobs to compact: %w", arrivedErr)
		}
		if next == mark {
			break
		}
		for _, i := range infos {
			bytes += i.Stored
		}
		mark = next
	}
	return bytes, err
}

// mark returns how far blobs were looked at.
func (c *Compactor) mark(ctx context.Context) (string, error) {
	row, err := c.rows.Get(ctx, compactMark)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return "", fmt.Errorf("read how far blobs are compacted: %w", err)
	}
	return string(row.Value), nil
}
