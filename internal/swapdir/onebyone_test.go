package swapdir

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// counting counts how many files are written at once. With two it waits for the other.
type counting struct {
	Contents
	now, most atomic.Int32
	both      chan struct{} // closed when two are written at once; nil does not wait
}

func (c *counting) WriteFile(_ context.Context, _ string, w io.Writer) error {
	if n := c.now.Add(1); n > c.most.Load() {
		c.most.Store(n)
		if n == 2 && c.both != nil {
			close(c.both)
		}
	}
	defer c.now.Add(-1)
	if c.both != nil {
		<-c.both
	}
	_, err := io.WriteString(w, "x")
	return err
}

// Files are staged side by side, or one after the other where that is asked for.
func TestFilesOneByOne(t *testing.T) {
	for _, one := range []bool{false, true} {
		root, err := Open(testenv.TempDir(t), &Options{OneByOne: one})
		must(t, err)
		contents := &counting{}
		if !one {
			contents.both = make(chan struct{})
		}
		var changes []Change
		for i := range 20 {
			changes = append(changes, Change{Path: fmt.Sprint("f", i), After: &Object{Kind: File, Mode: 0o644}})
		}
		swap, err := root.Begin(stageName, changes, contents)
		must(t, err)
		must(t, swap.Stage(t.Context()))
		if most := contents.most.Load(); one != (most == 1) {
			t.Errorf("one by one %v: %d files at once", one, most)
		}
		swap.Close()
		root.Close()
	}
}
