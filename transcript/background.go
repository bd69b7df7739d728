package transcript

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
)

// ErrClosed says that a Background was closed.
var ErrClosed = fault.New(fault.Closed, "transcript writer is closed")

// BackgroundOptions configure a Background; nil gives the defaults.
type BackgroundOptions struct {
	// OnWritten, if set, is called after the files of a conversation are written.
	OnWritten func(conversation string)
	// OnError, if set, is called when they cannot be written. Wait and Close return the
	// error in any case.
	OnError func(conversation string, err error)
	// Options select what is written. All turns are always written.
	Options Options
}

// Background writes transcripts as files in the background. It writes only the latest
// queued state of a conversation. It is safe for concurrent use.
type Background struct {
	reader *Reader
	dir    string
	opts   BackgroundOptions
	cancel context.CancelFunc
	files  map[string]*file // used only by the worker

	mu      sync.Mutex         // guards what follows
	roots   map[string]blob.ID // queued roots
	queue   []string           // order of roots
	busy    bool               // the worker is writing
	closed  bool
	errs    map[string]error // since the last Wait
	changed chan struct{}    // closed and replaced at every change
	done    chan struct{}    // closed when the worker has ended
}

// NewBackground starts a writer of files below dir. It must be closed.
func NewBackground(reader *Reader, dir string, opts *BackgroundOptions) *Background {
	b := &Background{
		reader: reader, dir: dir, files: make(map[string]*file),
		roots: make(map[string]blob.ID), errs: make(map[string]error), changed: make(chan struct{}), done: make(chan struct{}),
	}
	if opts != nil {
		b.opts = *opts
	}
	b.opts.Options.TurnFrom, b.opts.Options.TurnTo = 0, 0
	// The worker outlives every call, so it has its own context, which ends with
	// Close.
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go b.work(ctx)
	return b
}

// Write queues the transcript of a conversation's root. It does not wait; errors go
// to OnError and are returned by Wait and Close.
func (b *Background) Write(conversation string, root blob.ID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	if _, waits := b.roots[conversation]; !waits {
		b.queue = append(b.queue, conversation)
	}
	b.roots[conversation] = root
	b.signal()
	return nil
}

func (b *Background) signal() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Wait returns once everything queued is written, with the errors since the last
// Wait.
func (b *Background) Wait(ctx context.Context) error {
	for {
		b.mu.Lock()
		if len(b.queue) == 0 && !b.busy {
			defer b.mu.Unlock()
			return b.takeErrors()
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (b *Background) takeErrors() error {
	var all []error
	for _, err := range b.errs {
		all = append(all, err)
	}
	clear(b.errs)
	return errors.Join(all...)
}

// Close writes what is queued, ends the writer and returns the errors not returned
// before. If ctx ends first, the rest is dropped and named in the error.
func (b *Background) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.signal()
	b.mu.Unlock()
	var given error
	select {
	case <-b.done:
	case <-ctx.Done():
		given = fmt.Errorf("close transcript writer: %w", ctx.Err())
	}
	b.cancel()
	<-b.done
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Join(given, b.takeErrors())
}

// next returns the conversation to write, or false at the end.
func (b *Background) next(ctx context.Context) (string, blob.ID, bool) {
	for {
		b.mu.Lock()
		b.busy = false
		if len(b.queue) > 0 {
			id := b.queue[0]
			root := b.roots[id]
			b.queue = b.queue[1:]
			delete(b.roots, id)
			b.busy = true
			b.mu.Unlock()
			return id, root, true
		}
		b.signal() // wake waiters
		if b.closed {
			b.mu.Unlock()
			return "", blob.ID{}, false
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return "", blob.ID{}, false
		}
	}
}

func (b *Background) work(ctx context.Context) {
	defer close(b.done)
	for {
		id, root, ok := b.next(ctx)
		if !ok {
			return
		}
		err := b.write(ctx, id, root)
		if err != nil {
			err = fmt.Errorf("write transcript of conversation %s: %w", id, err)
			b.mu.Lock()
			b.errs[id] = err
			b.mu.Unlock()
			delete(b.files, id) // the state of the files is unknown now
			if b.opts.OnError != nil {
				b.opts.OnError(id, err)
			}
		} else if b.opts.OnWritten != nil {
			b.opts.OnWritten(id)
		}
	}
}
