//go:build !portable

package swapdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stet-dev/stet/internal/testenv"
)

// swapper lets a directory and a link to another place trade places, over and
// over, until it is stopped.
func swapper(t *testing.T, dir, outside string) (stop func()) {
	t.Helper()
	link := filepath.Join(filepath.Dir(dir), "aside", "link")
	must(t, os.MkdirAll(filepath.Dir(link), 0o755))
	must(t, os.Symlink(outside, link))
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for turns := 0; ; turns++ {
			select {
			case <-done:
				if turns%2 == 0 {
					return
				}
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
			runtime.Gosched()
		}
	})
	return func() { close(done); wg.Wait() }
}

// Changes below a directory that turns into a link to the outside never reach
// the outside.
func TestRacedSteps(t *testing.T) {
	root, outside := testenv.TempDir(t), testenv.TempDir(t)
	must(t, os.MkdirAll(filepath.Join(root, "a/b"), 0o755))
	must(t, os.MkdirAll(filepath.Join(outside, "b"), 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "b/file"), []byte("precious"), 0o644))
	want := testenv.Snapshot(t, outside)
	d, err := openDisk(root, nil)
	must(t, err)
	defer d.close()
	s, err := d.stage(".stet-stage-test", true)
	must(t, err)
	defer s.close()
	stop := swapper(t, filepath.Join(root, "a"), outside)
	ops := testenv.Scale(50_000, 5_000_000)
	refused := 0
	ours := func(w io.Writer) error {
		_, err := io.WriteString(w, "ours")
		return err
	}
	for i := 0; i < ops; i += 5 {
		slot := fmt.Sprintf("n%d", i)
		_, err := s.file(slot, "a/b/file", ours, 0o644, owner{os.Getuid(), os.Getgid()}, true)
		must(t, err)
		errs := []error{
			s.put(slot, "a/b/file"), s.swap("a/b/file", slot), s.take("a/b/file", slot),
			d.chmodDir("a/b", 0o700), d.syncDir("a/b"),
		}
		for _, err := range errs {
			if err == nil {
				continue
			}
			refused++
			if !isNotExist(err) && !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTDIR) {
				t.Fatal(err)
			}
		}
		if i%1000 == 0 {
			for _, name := range []string{slot, "o"} {
				_ = removeAll(s.fd, name, 1)
			}
		} else {
			_ = removeAll(s.fd, slot, 1) // it may have stayed in a/b
		}
	}
	stop()
	if diff := testenv.Differ(testenv.Snapshot(t, outside), want); len(diff) > 0 {
		t.Errorf("the outside changed: %v", diff)
	}
	t.Logf("%d of %d operations refused", refused, ops)
}
