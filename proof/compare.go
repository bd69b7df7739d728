package proof

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

// Difference is a path that differs from the proof.
type Difference struct {
	Path string `json:"path"`
	// What is "missing", "kind", "mode", "content" or "erased": the store no longer had
	// the directory, so nothing is known about it.
	What string `json:"what"`
}

// Compare compares a directory with the tree of a checkpoint, given by name or id;
// the empty name means the latest in the proof. extra lists paths of the directory
// that the tree does not have: they may be ignored files, and the proof says nothing
// about them.
func (r *Result) Compare(dir, checkpoint string) (differ []Difference, extra []string, err error) {
	at, err := r.find(checkpoint)
	if err != nil {
		return nil, nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		return nil, nil, fmt.Errorf("compare with %s: %w", dir, &fs.PathError{Op: "list", Path: dir, Err: errors.New("not a directory")})
	}
	c := &comparison{r: r, root: dir}
	if err := c.dir("", at.Tree); err != nil {
		return nil, nil, fmt.Errorf("compare with %s: %w", dir, err)
	}
	return c.differ, c.extra, nil
}

// find returns a checkpoint by name or id. Names are unique only within a workspace,
// so the latest one counts.
func (r *Result) find(name string) (Checkpoint, error) {
	for i := len(r.Checkpoints) - 1; i >= 0; i-- {
		if at := r.Checkpoints[i]; name == "" || name == at.Name || name == at.ID {
			return at, nil
		}
	}
	if name == "" {
		return Checkpoint{}, fmt.Errorf("%w: the proof has no checkpoint", ErrNotFound)
	}
	return Checkpoint{}, fmt.Errorf("%w: the proof has no checkpoint %q", ErrNotFound, name)
}

type comparison struct {
	r      *Result
	root   string
	seen   int // entries: a few nodes that name each other make an endless tree
	differ []Difference
	extra  []string
}

func (c *comparison) found(path, what string) {
	c.differ = append(c.differ, Difference{path, what})
}

func (c *comparison) dir(path string, node blob.ID) error {
	var entries []workspace.Entry
	if !node.IsZero() {
		data, ok := c.r.nodes[node]
		if !ok {
			c.found(path, "erased")
			return nil
		}
		var err error
		if entries, err = workspace.DecodeNode(data); err != nil {
			return err
		}
	}
	if c.seen += len(entries); c.seen > workspace.MaxTree || len(path) > workspace.MaxPath {
		return broken("the tree is too large")
	}
	proven := make(map[string]bool, len(entries))
	for _, e := range entries {
		proven[e.Name] = true
		if err := c.entry(join(path, e.Name), e); err != nil {
			return err
		}
	}
	there, err := os.ReadDir(filepath.Join(c.root, filepath.FromSlash(path)))
	if err != nil {
		return err
	}
	for _, e := range there {
		if !proven[e.Name()] && e.Name() != ".git" {
			c.extra = append(c.extra, join(path, e.Name()))
		}
	}
	return nil
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func (c *comparison) entry(path string, e workspace.Entry) error {
	file := filepath.Join(c.root, filepath.FromSlash(path))
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		c.found(path, "missing")
		return nil
	}
	if err != nil {
		return err
	}
	mode := info.Mode()
	switch {
	case e.Kind == workspace.Dir && mode.IsDir():
		return c.dir(path, e.ID)
	case e.Kind == workspace.Symlink && mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(file)
		if err == nil && blob.Sum([]byte(target)) != e.ID {
			c.found(path, "content")
		}
		return err
	case e.Kind == workspace.File && mode.IsRegular():
		return c.file(path, file, info, e)
	}
	c.found(path, "kind")
	return nil
}

func (c *comparison) file(path, file string, info fs.FileInfo, e workspace.Entry) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() // only read
	got, err := workspace.HashFile(f)
	if err != nil {
		return err
	}
	switch {
	case got.ID != e.ID || got.Size != e.Size:
		c.found(path, "content")
	case uint32(info.Mode().Perm()) != e.Mode&0o777:
		c.found(path, "mode")
	}
	return nil
}
