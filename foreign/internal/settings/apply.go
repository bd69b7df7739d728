package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/internal/osfile"
)

// Result is the effect of a change on a file.
type Result struct {
	// Before and After are the content; nil means that there is no file.
	Before, After []byte
	// Backup is the copy that was made of the original file, or "".
	Backup string
}

// Changed reports whether the file differs from before.
func (r Result) Changed() bool {
	return (r.Before == nil) != (r.After == nil) || !bytes.Equal(r.Before, r.After)
}

// Plan returns what Apply would do. It changes nothing.
func Plan(c foreign.Change) (Result, error) {
	before, _, err := read(c.Path)
	if err != nil {
		return Result{}, err
	}
	after, err := apply(c, before)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", c.Path, err)
	}
	return Result{Before: before, After: after}, nil
}

// PlanRevert returns what Revert would do. It changes nothing.
func PlanRevert(c foreign.Change) (Result, error) {
	before, _, err := read(c.Path)
	if err != nil || before == nil {
		return Result{}, err
	}
	after, err := revert(c, before)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", c.Path, err)
	}
	return Result{Before: before, After: after}, nil
}

// Applied reports whether a change has been made in its file.
func Applied(c foreign.Change) (bool, error) {
	r, err := Plan(c)
	return err == nil && !r.Changed(), err
}

// Apply makes a change. It keeps a copy of the original beside the file, under its
// name and ".stet-1" or the next free number. If stet may not write the file, the
// error is foreign.ErrSettings and nothing was changed.
func Apply(c foreign.Change) (Result, error) {
	return write(c.Path, func() (Result, error) { return Plan(c) })
}

// Revert reverts a change, and removes the copy that Apply made if the file now
// equals it.
func Revert(c foreign.Change) (Result, error) {
	r, err := write(c.Path, func() (Result, error) { return PlanRevert(c) })
	if err != nil || !r.Changed() {
		return r, err
	}
	_ = os.Remove(r.Backup) // of the connected file: worth nothing
	r.Backup = ""
	for _, path := range backups(c.Path) {
		if data, err := os.ReadFile(path); err == nil && bytes.Equal(data, r.After) {
			_ = os.Remove(path)
		}
	}
	return r, nil
}

func apply(c foreign.Change, before []byte) ([]byte, error) {
	if c.Hooks != nil {
		return Add(before, c.Hooks)
	}
	if c.Block != nil {
		return addBlock(before, *c.Block)
	}
	if before != nil && !ours(c, before) {
		return nil, fmt.Errorf("%w: the file is there and is not stet's", foreign.ErrSettings)
	}
	return c.Content, nil
}

// ours reports whether a file is entirely ours, from any release: its first line is
// always the same.
func ours(c foreign.Change, have []byte) bool {
	first := func(b []byte) []byte {
		line, _, _ := bytes.Cut(b, []byte("\n"))
		return line
	}
	return bytes.Equal(first(have), first(c.Content))
}

func revert(c foreign.Change, before []byte) ([]byte, error) {
	if c.Hooks == nil && c.Block == nil {
		if !ours(c, before) {
			return before, nil
		}
		return nil, nil
	}
	after, err := Remove(before, c.Hooks)
	if c.Block != nil {
		after, err = removeBlock(before, *c.Block)
	}
	if err == nil && len(after) == 0 && len(before) > 0 {
		for _, path := range backups(c.Path) { // there was an empty file
			if info, err := os.Stat(path); err == nil && info.Size() == 0 {
				return []byte{}, nil
			}
		}
		return nil, nil
	}
	return after, err
}

// read returns a file that stet may write, nil if there is none.
func read(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", foreign.ErrSettings, err)
	}
	refuse := func(why string) ([]byte, fs.FileMode, error) {
		return nil, 0, fmt.Errorf("%w: %s %s", foreign.ErrSettings, path, why)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return refuse("is a link; change the file that it names")
	case !info.Mode().IsRegular():
		return refuse("is not a file")
	case info.Mode().Perm()&0o200 == 0:
		return refuse("is read-only")
	case !mine(info):
		return refuse("belongs to another user")
	case info.Size() > maxSize:
		return refuse("is too large for settings")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", foreign.ErrSettings, err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, info.Mode().Perm(), nil
}

const maxSize = 16 << 20

// backups returns the copies of a file that exist.
func backups(path string) (out []string) {
	for n := 1; ; n++ {
		name := path + ".stet-" + strconv.Itoa(n)
		if _, err := os.Lstat(name); err != nil {
			return out
		}
		out = append(out, name)
	}
}

// write carries a plan out. If another process writes the file in the meantime, it plans again.
func write(path string, plan func() (Result, error)) (Result, error) {
	const attempts = 5
	for range attempts {
		r, err := plan()
		if err != nil || !r.Changed() {
			return r, err
		}
		done, err := replace(path, &r)
		if err != nil || done {
			return r, err
		}
	}
	return Result{}, fmt.Errorf("%w: %s keeps changing", foreign.ErrSettings, path)
}

// replace replaces a whole file. It reports false if the file differs from what the
// plan read.
func replace(path string, r *Result) (done bool, err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("%w: %w", foreign.ErrSettings, err)
	}
	_, mode, err := read(path)
	if err != nil {
		return false, err
	}
	var made string
	if r.After != nil {
		if made, err = temporary(dir, r.After, mode); err != nil {
			return false, err
		}
		defer os.Remove(made)
	}
	if r.Before != nil {
		if r.Backup, err = backup(path, r.Before, mode); err != nil {
			return false, err
		}
	}
	now, _, err := read(path)
	if err != nil || (now == nil) != (r.Before == nil) || !bytes.Equal(now, r.Before) {
		return false, err
	}
	if r.After == nil {
		err = os.Remove(path)
	} else {
		err = osfile.Rename(made, path)
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", foreign.ErrSettings, err)
	}
	return true, osfile.SyncDir(dir)
}

// backup keeps a copy. An existing one is enough.
func backup(path string, data []byte, mode fs.FileMode) (string, error) {
	have := backups(path)
	for _, name := range have {
		if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, data) {
			return name, nil
		}
	}
	name := path + ".stet-" + strconv.Itoa(len(have)+1)
	made, err := temporary(filepath.Dir(path), data, mode)
	if err != nil {
		return "", err
	}
	defer os.Remove(made)
	return name, osfile.Rename(made, name)
}

// temporary writes a file under a name of its own.
func temporary(dir string, data []byte, mode fs.FileMode) (name string, err error) {
	f, err := os.CreateTemp(dir, ".stet-*.tmp")
	if err != nil {
		return "", fmt.Errorf("%w: %w", foreign.ErrSettings, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}
