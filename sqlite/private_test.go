//go:build unix

package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stet-dev/stet/blob"
)

// openToOthers lists what others may do anything with, as it is in use.
func openToOthers(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			paths = append(paths, info.Mode().String()+" "+path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

const umaskDir = "STET_TEST_UMASK_DIR"

// TestNothingIsOpenToOthers makes a store with a umask that takes nothing away. The
// umask is the whole process's, so it is done in another one.
func TestNothingIsOpenToOthers(t *testing.T) {
	if dir := os.Getenv(umaskDir); dir != "" {
		syscall.Umask(0)
		useStore(t, filepath.Join(dir, "parent", "store"))
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestNothingIsOpenToOthers$")
	cmd.Env = append(os.Environ(), umaskDir+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestWhatIsOpenToOthersIsNarrowed is about stores of earlier releases and copies.
func TestWhatIsOpenToOthersIsNarrowed(t *testing.T) {
	dir := t.TempDir()
	useStore(t, dir)
	for path, mode := range map[string]fs.FileMode{
		dir: 0o755, filepath.Join(dir, databaseName): 0o664, filepath.Join(dir, lockName): 0o644, filepath.Join(dir, objectsName): 0o777,
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	useStore(t, dir)
}

func useStore(t *testing.T, dir string) {
	t.Helper()
	ctx := context.Background()
	db, err := Open(ctx, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(db.Blobs().Put(ctx, blob.New([]byte("small")), blob.New(make([]byte, 200<<10))), db.Blobs().Flush(ctx))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range openToOthers(t, dir) {
		t.Errorf("in use, others may use %s", path)
	}
	closeNow(t, db)
	for _, path := range openToOthers(t, dir) {
		t.Errorf("closed, others may use %s", path)
	}
}
