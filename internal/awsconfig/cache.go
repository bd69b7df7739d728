package awsconfig

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stet-dev/stet/internal/s3api"
)

const (
	// early is how long before they expire keys are replaced.
	early = 5 * time.Minute
	// sourceTimeout limits what a source may take. People may have to press a button.
	sourceTimeout = time.Minute
)

// Cached keeps keys until shortly before they expire. They are obtained once at a time, and
// those who ask meanwhile get the old ones while these are valid. If no new ones can be had,
// the old ones are used as long as they are valid.
func Cached(source s3api.Credentials) s3api.Credentials {
	c := &cache{source: source, now: time.Now}
	return c.get
}

type cache struct {
	source s3api.Credentials
	now    func() time.Time

	mu     sync.Mutex // guards what follows
	keys   s3api.Keys
	due    time.Time // when they are to be replaced
	flight *flight   // nil if nobody obtains keys
}

// flight is an attempt to obtain keys.
type flight struct {
	done chan struct{} // closed when keys and err are set
	keys s3api.Keys
	err  error
}

func (c *cache) get(ctx context.Context) (s3api.Keys, error) {
	if err := ctx.Err(); err != nil {
		return s3api.Keys{}, err
	}
	f, keys := c.look(ctx)
	if f == nil {
		return keys, nil
	}
	select {
	case <-f.done:
		return f.keys, f.err
	case <-ctx.Done():
		return s3api.Keys{}, ctx.Err()
	}
}

// look returns keys, or the attempt to wait for.
func (c *cache) look(ctx context.Context) (*flight, s3api.Keys) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if c.keys.Complete() && (c.keys.Expires.IsZero() || now.Before(c.due)) {
		return nil, c.keys
	}
	if c.flight == nil {
		c.flight = &flight{done: make(chan struct{})}
		// Others wait for it, too: it does not end with the caller who began it.
		go c.obtain(context.WithoutCancel(ctx), c.flight)
	}
	if c.keys.Complete() && now.Before(c.keys.Expires) {
		return nil, c.keys
	}
	return c.flight, s3api.Keys{}
}

func (c *cache) obtain(ctx context.Context, f *flight) {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	keys, err := c.source(ctx)
	if err == nil && !keys.Complete() {
		err = fmt.Errorf("%w: the source of the credentials has no keys", ErrSettings)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	f.keys, f.err = keys, err
	switch {
	case err == nil:
		c.keys, c.due = keys, now.Add(pause(keys.Expires.Sub(now)))
	case c.keys.Complete() && now.Before(c.keys.Expires):
		c.due = now.Add(min(pause(c.keys.Expires.Sub(now)), time.Minute))
		f.keys, f.err = c.keys, nil
	}
	c.flight = nil
	close(f.done)
}

// pause returns how long keys that are valid for a time are used before others are obtained.
// Some are valid for less than the usual time before.
func pause(valid time.Duration) time.Duration {
	if valid <= 0 {
		// A source that gives out old keys may have no others. The service decides.
		return time.Minute
	}
	return max(valid-early, valid/2)
}
