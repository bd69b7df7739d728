package cli

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// diskReady tells whether a store's directory can be read and its disk has room. Anybody
// may ask, so that the disk is looked at once in a second at most.
type diskReady struct {
	dir    string
	create func(dir, pattern string) (*os.File, error)

	mu   sync.Mutex // guards the rest
	last time.Time
	said error
}

func (d *diskReady) check(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last.IsZero() || time.Since(d.last) > time.Second {
		d.said, d.last = d.look(), time.Now()
	}
	return d.said
}

func (d *diskReady) look() error {
	if _, err := os.ReadDir(d.dir); err != nil {
		return errors.New("its directory cannot be read")
	}
	if err := d.room(); errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return errors.New("its disk is full")
	}
	return nil // a store that is read-only can be read
}

// room writes a file, as only that finds out about quotas and reserved blocks.
func (d *diskReady) room() error {
	f, err := d.create(d.dir, ".room-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 256<<10))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
