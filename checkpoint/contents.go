package checkpoint

import (
	"context"
	"io"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/swapdir"
	"github.com/stet-dev/stet/workspace"
)

// streamFrom is the size from which a file is streamed. For content in one row, a
// stream costs more than it saves.
const streamFrom = 256 << 10

// openRoot opens the directory for changes.
func (w *Workspace) openRoot() (*swapdir.Root, error) {
	t := workspace.TraitsOf(w.path)
	return swapdir.Open(w.path, &swapdir.Options{
		Hook: w.s.opts.hook, OneByOne: w.s.opts.OneByOne, NoModes: !t.Modes, Folds: t.FoldsCase || t.Normalises,
	})
}

// changes converts actions to changes of the disk, by path.
func changes(actions []Action) []swapdir.Change {
	var out []swapdir.Change
	for i := range actions {
		if a := &actions[i]; a.Changes() {
			out = append(out, swapdir.Change{Path: a.Path, Before: object(a.Before), After: object(a.After)})
		}
	}
	return out
}

func object(e *workspace.Entry) *swapdir.Object {
	if e == nil {
		return nil
	}
	kind := swapdir.File
	switch e.Kind {
	case workspace.Dir:
		kind = swapdir.Directory
	case workspace.Symlink:
		kind = swapdir.Symlink
	}
	return &swapdir.Object{Kind: kind, Mode: e.Mode}
}

// contents provides the new contents of actions and recognizes the old ones. It
// implements swapdir.Contents; the store verifies contents.
type contents struct {
	blobs  blob.Store
	byPath map[string]*Action
}

func (w *Workspace) contents(actions []Action) *contents {
	c := &contents{blobs: w.s.blobs, byPath: make(map[string]*Action, len(actions))}
	for i := range actions {
		c.byPath[actions[i].Path] = &actions[i]
	}
	return c
}

func (c *contents) WriteFile(ctx context.Context, path string, to io.Writer) error {
	e := c.byPath[path].After
	if e.Size <= streamFrom {
		data, err := workspace.ReadFile(ctx, c.blobs, *e)
		if err == nil {
			_, err = to.Write(data)
		}
		return err
	}
	content, err := workspace.OpenFile(ctx, c.blobs, *e)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(to, content)
	return err
}

func (c *contents) LinkTarget(ctx context.Context, path string) (string, error) {
	return workspace.ReadLink(ctx, c.blobs, *c.byPath[path].After)
}

func (c *contents) IsOld(path string, r io.Reader) (bool, error) {
	e := c.byPath[path].Before
	got, err := workspace.HashFile(io.LimitReader(r, e.Size+1))
	return err == nil && got.ID == e.ID && got.Size == e.Size, err
}
