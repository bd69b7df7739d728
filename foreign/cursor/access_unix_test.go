//go:build unix

package cursor_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
)

func TestFIFODoesNotHang(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "state.vscdb")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cursor.Open(t.Context(), fifo, nil); !errors.Is(err, cursor.ErrNotDatabase) {
		t.Errorf("FIFO: %v", err)
	}
}

const readOnlyEnv = "STET_TEST_READ_ONLY_STORE"

// TestReadOnlyDirectory reads stores in directories that may not be written,
// in a process of a user who has no right to override that.
func TestReadOnlyDirectory(t *testing.T) {
	if path := os.Getenv(readOnlyEnv); path != "" {
		if err := os.WriteFile(path+"-probe", nil, 0o600); err == nil {
			t.Fatal("the directory can be written")
		}
		if err := readNumbered(t.Context(), cursortest.Open(t, path, nil), 50); err != nil {
			t.Error(err)
		}
		return
	}
	binary := os.Args[0]
	var user *syscall.SysProcAttr
	if os.Geteuid() == 0 {
		user = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		data, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		openUp(t, dir)
		binary = filepath.Join(dir, "cursor.test")
		if err := os.WriteFile(binary, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name := range layouts {
		t.Run(name, func(t *testing.T) {
			path := layOut(t, name)
			openUp(t, filepath.Dir(path))
			for _, suffix := range []string{"", "-wal", "-shm"} {
				if err := os.Chmod(path+suffix, 0o444); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(filepath.Dir(path), 0o555); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Chmod(filepath.Dir(path), 0o755) })
			cmd := exec.CommandContext(t.Context(), binary, "-test.run=^TestReadOnlyDirectory$", "-test.v")
			cmd.Dir = "/"
			cmd.Env = append(os.Environ(), readOnlyEnv+"="+path, "TMPDIR=/tmp")
			cmd.SysProcAttr = user
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// openUp lets other users pass through the directories of a test.
func openUp(t *testing.T, dir string) {
	t.Helper()
	temp := filepath.Clean(os.TempDir())
	for d := dir; d != temp && len(d) > len(temp); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
