// Package room makes directories with the files of a tree, outside of any workspace, for
// commands that must not work in the workspace itself. It promises that a room has exactly
// the files, modes, links and empty directories of its tree, and that no room is left
// behind: Close removes them all, and the next Open removes those of processes that ended
// without it.
//
//	rooms, err := room.Open(blobs, room.Options{Workspace: "/src/shop", Links: []string{"node_modules"}})
//	defer rooms.Close()
//	r, err := rooms.Make(ctx, tree)
//	// … run something in r.Path() …
//	err = r.Remove()
//
// A room has what the tree has: no .git, no ignored files, no set-user-id bits. What a
// command needs beside that is linked in; it is then shared with the workspace. Running
// commands, and ending all that they start, is left to the caller.
package room

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/gofrs/flock"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/workspace"
)

// Errors of this package.
var (
	// ErrLink says that a path cannot be linked into a room.
	ErrLink = fault.New(fault.Invalid, "cannot be linked")
	// ErrFull says that there is no space left for rooms.
	ErrFull = fault.New(fault.Exhausted, "no space is left")
	// ErrNoPlace says that no directory for rooms is outside the workspace.
	ErrNoPlace = fault.New(fault.Invalid, "no place for rooms outside the workspace")
)

// Options configure Rooms.
type Options struct {
	// Dir holds the rooms of all processes. The default is stet/rooms in the user's cache
	// directory, or a directory for temporary files if that is inside the workspace.
	Dir string
	// Workspace is the directory that rooms stand for: its files are shared with rooms
	// where they are equal and the file system can copy on write. It is never written.
	Workspace string
	// Links are paths of the workspace, such as node_modules, that each room has as
	// symbolic links.
	Links []string
}

// Rooms are the rooms of one process.
type Rooms struct {
	blobs blob.Store
	opts  Options
	lock  *flock.Flock // held as long as the process lives
	dir   string       // has a directory for each room
	last  atomic.Int64
	plain atomic.Bool // the file system cannot copy on write
	umask os.FileMode // bits that new files do not get
}

// Open prepares rooms for trees in a store of blobs. It removes the rooms of processes that
// have ended.
func Open(blobs blob.Store, opts Options) (*Rooms, error) {
	place, err := placeFor(opts.Dir, opts.Workspace)
	if err != nil {
		return nil, err
	}
	for i, link := range opts.Links {
		if opts.Links[i], err = checkLink(opts.Workspace, link); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(place, 0o700); err != nil {
		return nil, fmt.Errorf("open rooms: %w", err)
	}
	swept := sweep(place) // what cannot be removed must not keep anybody from working
	r := &Rooms{blobs: blobs, opts: opts}
	if r.lock, r.dir, err = claim(place); err != nil {
		return nil, fmt.Errorf("open rooms: %w", errors.Join(err, swept))
	}
	if r.umask, err = umaskAt(r.dir); err != nil {
		return nil, fmt.Errorf("open rooms: %w", errors.Join(err, r.Close()))
	}
	return r, nil
}

// umaskAt returns the bits that new files in a directory do not get. Asking the system for
// its umask would change it.
func umaskAt(dir string) (os.FileMode, error) {
	path := filepath.Join(dir, "mode")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, permissions)
	if err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Close(), os.Remove(path)); err != nil {
		return 0, err
	}
	return permissions &^ info.Mode().Perm(), nil
}

// placeFor returns the directory for rooms.
func placeFor(dir, workspace string) (string, error) {
	if dir != "" {
		return dir, outside(dir, workspace)
	}
	var places []string
	if cache, err := os.UserCacheDir(); err == nil {
		places = append(places, filepath.Join(cache, "stet", "rooms"))
	}
	places = append(places, filepath.Join(os.TempDir(), "stet-rooms-"+strconv.Itoa(os.Getuid())))
	for _, place := range places {
		if outside(place, workspace) == nil {
			return place, nil
		}
	}
	return "", fmt.Errorf("%w: %s contains %s", ErrNoPlace, workspace, strings.Join(places, " and "))
}

// outside fails if a directory, which need not exist, is inside the workspace.
func outside(dir, workspace string) error {
	if workspace == "" {
		return nil
	}
	real := dir
	for above := dir; ; above = filepath.Dir(above) {
		if found, err := filepath.EvalSymlinks(above); err == nil {
			real = filepath.Join(found, strings.TrimPrefix(dir, above))
			break
		}
		if above == filepath.Dir(above) {
			break
		}
	}
	if root, err := filepath.EvalSymlinks(workspace); err == nil {
		workspace = root
	}
	if rel, err := filepath.Rel(workspace, real); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("%w: %s contains %s", ErrNoPlace, workspace, dir)
	}
	return nil
}

// checkLink returns a path to be linked in its clean form.
func checkLink(root, link string) (string, error) {
	if root == "" {
		return "", fmt.Errorf("%w: %q: there is no workspace", ErrLink, link)
	}
	path := filepath.ToSlash(filepath.Clean(link))
	// A link to .git would let a command in a room change the repository.
	if err := workspace.CheckPath(path); err != nil {
		return "", fmt.Errorf("%w: %w", ErrLink, err)
	}
	if _, err := os.Lstat(filepath.Join(root, path)); err != nil {
		return "", fmt.Errorf("%w: %w", ErrLink, err)
	}
	return path, nil
}

const lockSuffix = ".lock"

// claim makes the directory of this process. The lock says that the process lives; it ends
// with it, however it ends.
func claim(place string) (*flock.Flock, string, error) {
	for {
		dir := filepath.Join(place, strings.ToLower(rand.Text()[:10]))
		lock := flock.New(dir + lockSuffix)
		ok, err := lock.TryLock()
		if err != nil {
			return nil, "", err
		}
		// Another process may have taken it for a leftover before it was locked.
		if _, err := os.Lstat(dir + lockSuffix); !ok || err != nil {
			_ = lock.Close() // nothing is in it
			continue
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, "", errors.Join(err, lock.Close(), os.Remove(dir+lockSuffix))
		}
		return lock, dir, nil
	}
}

// sweep removes the rooms of processes that have ended.
func sweep(place string) error {
	entries, err := os.ReadDir(place)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), lockSuffix)
		if !ok {
			continue
		}
		lock := flock.New(filepath.Join(place, e.Name()))
		if free, err := lock.TryLock(); err != nil || !free {
			errs = append(errs, err)
			continue
		}
		err := removeAll(filepath.Join(place, name))
		if err == nil { // else the next one tries again
			err = os.Remove(filepath.Join(place, e.Name()))
		}
		errs = append(errs, err, lock.Close())
	}
	return errors.Join(errs...)
}

// Close removes all rooms.
func (r *Rooms) Close() error {
	err := removeAll(r.dir)
	if err == nil {
		err = os.Remove(r.dir + lockSuffix)
	}
	if err = errors.Join(err, r.lock.Close()); err != nil {
		return fmt.Errorf("close rooms: %w", err)
	}
	return nil
}

// leastFree is the space below which a command in a room may have failed for want of it.
const leastFree = 1 << 20

// Full returns ErrFull if there is no space left for rooms: what a command in one did then
// says nothing about its files.
func (r *Rooms) Full() error {
	if left, known := free(r.dir); known && left < leastFree {
		return fmt.Errorf("%w in %s", ErrFull, r.dir)
	}
	return nil
}

// Room is a directory with the files of a tree.
type Room struct {
	rooms *Rooms
	outer string
	path  string
}

// Make makes a room with the files of a tree. Several may be made at the same time. If it
// fails, nothing is left.
func (r *Rooms) Make(ctx context.Context, tree blob.ID) (*Room, error) {
	outer := filepath.Join(r.dir, strconv.FormatInt(r.last.Add(1), 10))
	name := "files" // tools show the name of the directory that they work in
	if r.opts.Workspace != "" {
		name = filepath.Base(r.opts.Workspace)
	}
	made := &Room{rooms: r, outer: outer, path: filepath.Join(outer, name)}
	if err := r.fill(ctx, made.path, tree); err != nil {
		return nil, errors.Join(fmt.Errorf("make room: %w", err), made.Remove())
	}
	return made, nil
}

// Path returns the absolute path of the directory.
func (r *Room) Path() string { return r.path }

// Remove removes the room. Whatever was linked in stays.
func (r *Room) Remove() error {
	if err := removeAll(r.outer); err != nil {
		return fmt.Errorf("remove room: %w", err)
	}
	return nil
}

// removeAll removes a directory. A command may have left directories that cannot be
// written, and processes that still write: it is tried a few times.
func removeAll(path string) error {
	const tries = 5
	var err error
	for range tries {
		if err = os.RemoveAll(path); err == nil {
			return nil
		}
		_ = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() && os.Chmod(path, 0o700) == nil && err != nil {
				return nil // it could not be read; the next round does it
			}
			return nil
		})
	}
	return err
}
