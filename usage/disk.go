package usage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Disk adds up the sizes of the files below a directory, which must exist. A file or
// directory that vanishes during the walk counts as empty.
func Disk(ctx context.Context, dir string) (int64, error) {
	if _, err := os.Stat(dir); err != nil {
		return 0, fmt.Errorf("measure files: %w", err)
	}
	total, err := sumFiles(ctx, func(fn fs.WalkDirFunc) error { return filepath.WalkDir(dir, fn) })
	if err != nil {
		return 0, fmt.Errorf("measure files: %w", err)
	}
	return total, nil
}

// sumFiles is Disk over any walk.
func sumFiles(ctx context.Context, walk func(fs.WalkDirFunc) error) (total int64, err error) {
	err = walk(func(_ string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && !d.IsDir() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				total += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return total, err
}
