package room

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/workspace"
)

const (
	// together is how many files are read from the store in one call.
	together = 32
	// streamFrom is the size from which a file is streamed.
	streamFrom = 256 << 10
	// ownMode is the mode of directories while they are filled, and permissions are the bits
	// that a room keeps: a command runs with the rights of its user.
	ownMode, permissions = 0o700, 0o777
)

// errDiffers says that a file of the workspace is another one than the wanted.
var errDiffers = fault.New(fault.Conflict, "the file differs")

// item is an entry of a tree with its path.
type item struct {
	path string
	workspace.Entry
}

// fill writes a tree into a new directory. Nothing but this function writes there, and
// links are made last, so that no path leads through one.
func (r *Rooms) fill(ctx context.Context, dir string, tree blob.ID) error {
	if err := os.MkdirAll(dir, ownMode); err != nil {
		return err
	}
	var dirs, files, links []item
	err := workspace.Walk(ctx, r.blobs, tree, func(path string, e workspace.Entry) error {
		if err := cmp.Or(workspace.CheckPath(path), workspace.CheckHere(path)); err != nil {
			return err
		}
		switch at := (item{path, e}); e.Kind {
		case workspace.Dir:
			dirs = append(dirs, at)
			return os.Mkdir(filepath.Join(dir, path), ownMode)
		case workspace.Symlink:
			links = append(links, at)
		default:
			files = append(files, at)
		}
		return nil
	})
	if err != nil {
		return err
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(max(2, runtime.NumCPU())) // more get in each other's way
	for part := range slices.Chunk(files, together) {
		group.Go(func() error { return r.files(inner, dir, part) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, link := range links {
		target, err := workspace.ReadLink(ctx, r.blobs, link.Entry)
		if err == nil {
			err = os.Symlink(target, filepath.Join(dir, link.path))
		}
		if err != nil {
			return err
		}
	}
	if err := r.linkIn(dir); err != nil {
		return err
	}
	for _, d := range slices.Backward(dirs) { // what is in one is there when it becomes unwritable
		if mode := d.Mode & permissions; mode != ownMode {
			if err := os.Chmod(filepath.Join(dir, d.path), os.FileMode(mode)); err != nil {
				return err
			}
		}
	}
	return nil
}

// files writes some files. Small contents are read from the store in one call.
func (r *Rooms) files(ctx context.Context, dir string, files []item) error {
	contents := make([][]byte, len(files))
	if r.plain.Load() || r.opts.Workspace == "" { // else most are shared with the workspace
		err := blob.ReadMany(ctx, r.blobs, func(from blob.Reader) (err error) {
			for i := range files {
				if files[i].Chunked || files[i].Size > streamFrom {
					continue
				}
				if contents[i], err = from.Get(ctx, files[i].ID); err != nil {
					return fmt.Errorf("read %q: %w", files[i].path, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i := range files {
		if err := r.file(ctx, dir, files[i], contents[i]); err != nil {
			return err
		}
	}
	return nil
}

// file writes one file, whose content may have been read already.
func (r *Rooms) file(ctx context.Context, dir string, file item, content []byte) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	mode := os.FileMode(file.Mode & permissions)
	f, err := os.OpenFile(filepath.Join(dir, file.path), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	if content != nil {
		_, err = f.Write(content)
	} else if !r.shared(f, file) {
		err = r.rewrite(ctx, f, file.Entry)
	}
	if err != nil {
		return fmt.Errorf("write %q: %w", file.path, err)
	}
	if mode&r.umask == 0 {
		return nil
	}
	return f.Chmod(mode)
}

// rewrite writes a content in the place of what was not the wanted one.
func (r *Rooms) rewrite(ctx context.Context, f *os.File, e workspace.Entry) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return r.write(ctx, f, e)
}

// write writes the content of a file from the store, which verifies it.
func (r *Rooms) write(ctx context.Context, to io.Writer, e workspace.Entry) error {
	if e.Size <= streamFrom {
		data, err := workspace.ReadFile(ctx, r.blobs, e)
		if err == nil {
			_, err = to.Write(data)
		}
		return err
	}
	content, err := workspace.OpenFile(ctx, r.blobs, e)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, content)
	return errors.Join(err, content.Close())
}

// shared gives a file the content of the workspace's own file by a copy on write, if that
// is possible and the content is the wanted one. It is compared after it was taken, since
// the file may change at any time.
func (r *Rooms) shared(f *os.File, file item) bool {
	if r.opts.Workspace == "" || r.plain.Load() {
		return false
	}
	if file.Size == 0 {
		return false
	}
	switch err := clone(f, filepath.Join(r.opts.Workspace, file.path), file.Size); {
	case errors.Is(err, errDiffers):
		return false
	case err != nil:
		r.plain.Store(true)
		return false
	}
	got, err := workspace.HashFile(io.LimitReader(f, file.Size+1))
	return err == nil && got.ID == file.ID && got.Size == file.Size && got.Chunked == file.Chunked
}

// linkIn makes the links to the workspace. No link of the tree is followed out of the room.
func (r *Rooms) linkIn(dir string) error {
	if len(r.opts.Links) == 0 {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, link := range r.opts.Links {
		if _, err := root.Lstat(link); err == nil {
			return fmt.Errorf("%w: %q is a part of the checkpoint", ErrLink, link)
		}
		if above := filepath.Dir(link); above != "." {
			if err := root.MkdirAll(above, ownMode); err != nil {
				return fmt.Errorf("%w: %w", ErrLink, err)
			}
		}
		if err := root.Symlink(filepath.Join(r.opts.Workspace, link), link); err != nil {
			return fmt.Errorf("%w: %w", ErrLink, err)
		}
	}
	return nil
}
