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
	// quietTime is how long the store must be idle before the backlog is processed,
	// so that a save never competes with it.
	quietTime = time.Second
	// maxBacklog is the backlog from which it is processed even without idle time: a
	// busy store must not grow without limit.
	maxBacklog = 256 << 20
	// compactPage is how many blobs are examined before others get their turn. A pass
	// begins with firstPage, so that one that is stopped early has made progress.
	firstPage, compactPage = 16, 128
)

// compactMark is the row with the progress through the backlog. Its key is older than
// the word compact.
var compactMark = keyspace.Setting("settled")

// Compactor compresses recently stored content when the store is idle, so writers
// wait for the disk but not for the compressor. A mark in the rows lets the next
// process continue where the last one stopped.
//
// A nil Compactor is for a store that compresses at once: it does nothing.
type Compactor struct {
	replacer blob.Replacer // of the store below the layer
	arrivals blob.Arrivals // in the store below the layer
	manual   bool
	layer    Compressor
	rows     kv.Store
	shrink   func(context.Context) error // returns free space; nil if not supported
	pass     chan struct{}               // held by the running pass

	mu      sync.Mutex // guards the fields below
	backlog int64      // bytes that this process put and has not examined since
	puts    uint64
	stop    context.CancelFunc // of the goroutine; nil if there is none
	done    chan struct{}      // closed when it has ended
	closed  bool
}

// Compressor is the layer whose blobs a Compactor compresses, a *compressed.Store.
type Compressor interface {
	Compact(ctx context.Context, below blob.Replacer, blobs []blob.Info) (saved int64, err error)
}

// NewCompactor returns a compactor of the blobs that arrive in the store below the
// compressing layer. It works by itself when the store is idle, unless it is manual:
// then only Compact works. Call Attach to complete it; it is separate because the
// layer needs Notice first.
func NewCompactor(replacer blob.Replacer, arrivals blob.Arrivals, manual bool) *Compactor {
	return &Compactor{replacer: replacer, arrivals: arrivals, manual: manual, pass: make(chan struct{}, 1)}
}

// Attach sets the compressing layer, the rows with the mark, and the function that
// returns free space to the file system, or nil.
func (c *Compactor) Attach(layer Compressor, rows kv.Store, shrink func(context.Context) error) {
	c.layer, c.rows, c.shrink = layer, rows, shrink
}

// Notice counts content that was stored uncompressed.
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

// run works until nothing is left or until the first error; a later run continues.
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

// work compacts everything after the mark. If polite, it stops when the store is used
// again, unless the backlog is too large.
func (c *Compactor) work(ctx context.Context, polite bool, progress func(done int)) error {
	select {
	case c.pass <- struct{}{}:
		defer func() { <-c.pass }()
	case <-ctx.Done(): // another pass may take long
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
			return fmt.Errorf("record how far blobs are compacted: %w", err)
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

// lookedAt removes blobs, or with nil all that arrived before the pass, from the
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

// Close stops the background work. The next process does what is left.
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

// Compact compresses recently stored content now, and returns the space to the file
// system. An open store does that by itself when it is idle. progress, if set, is
// called with the number of examined blobs.
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

// Backlog estimates how many bytes Compact has not examined, from all processes. It
// stops counting at enough.
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

// mark returns how far blobs were examined.
func (c *Compactor) mark(ctx context.Context) (string, error) {
	row, err := c.rows.Get(ctx, compactMark)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return "", fmt.Errorf("read how far blobs are compacted: %w", err)
	}
	return string(row.Value), nil
}
