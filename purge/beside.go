package purge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// lookBeside finds the files beside the store that hold the bytes: events that hooks have
// reported and that are kept until the store has their turn.
func (p *Plan) lookBeside(ctx context.Context) error {
	dir := p.find.s.stores.Beside
	if dir == "" {
		return nil
	}
	return eachFile(ctx, dir, func(path string) error {
		n, _, err := p.find.raw(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.find.unread = append(p.find.unread, err)
		}
		if n > 0 {
			p.Beside = append(p.Beside, path)
		}
		return nil
	})
}

// maskBeside writes asterisks over the bytes in the files beside the store. They are
// written in place: processes append to these files without a lock.
func (s *Service) maskBeside(ctx context.Context, plan *Plan, res *Result) error {
	for _, path := range plan.Beside {
		err := plan.find.maskFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			res.Files++
		} else if err := res.left(ctx, "file "+path, err); err != nil {
			return err
		}
	}
	return nil
}

// maskFile writes asterisks over the bytes in a file.
func (f *finder) maskFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	at, failed := int64(0), error(nil) // at is where the window begins
	keep := max(f.contents.longest-1, 0)
	err = windows(file, f.contents.longest, func(part []byte) bool {
		f.contents.each(part, func(from, n int) bool {
			_, failed = file.WriteAt(bytes.Repeat([]byte("*"), n), at+int64(from))
			return failed == nil
		})
		at += int64(len(part) - min(len(part), keep))
		return failed == nil
	})
	if err = errors.Join(err, failed); err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("mask %s: %w", path, err)
	}
	return nil
}

// eachFile calls fn with every file below a directory that is still there.
func eachFile(ctx context.Context, dir string, fn func(path string) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return fn(path)
	})
}
