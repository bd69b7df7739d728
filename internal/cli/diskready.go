package cli

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/stet-dev/stet/access"
)

// diskReady reports whether a store's directory and the tokens of its tenants can be
// read and its disk has room. Anyone may call it, so the disk is checked at most once a
// second.
type diskReady struct {
	dir    string
	create func(dir, pattern string) (*os.File, error)
	tokens *access.Tokens // nil in local mode

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
		return errors.New("cannot read its directory")
	}
	if d.tokens != nil {
		if _, err := d.tokens.Empty(); err != nil { // every call fails
			return errors.New("the tokens cannot be read")
		}
	}
	if err := d.room(); errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return errors.New("its disk is full")
	}
	return nil // a read-only store can be read
}

// room writes a file, because only that detects quotas and reserved blocks.
func (d *diskReady) room() error {
	f, err := d.create(d.dir, ".room-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 256<<10))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
