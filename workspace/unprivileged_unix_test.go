//go:build unix

package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// unprivileged runs the rest of a test as nobody, since root may read anything.
func unprivileged(t *testing.T, root string) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(root, "test.bin")
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, data, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = root
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "TMPDIR=") }), "TMPDIR="+root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	return false
}

func TestFilesThatMayNotBeRead(t *testing.T) {
	shared, err := os.MkdirTemp("/tmp", "stet-workspace-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(shared) })
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	if !unprivileged(t, shared) {
		return
	}
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"open": "x", "shut": "y", "dir/f": "z"})
	for _, name := range []string{"shut", "dir"} {
		if err := os.Chmod(filepath.Join(root, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	res := mustScan(t, store, root, nil, nil)
	if err := os.Chmod(filepath.Join(root, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	wantList(t, "tree", listTree(t, store, res.Tree), "open file")
	wantList(t, "not captured", skippedList(res.NotCaptured), "dir: permission denied", "shut: permission denied")
}
