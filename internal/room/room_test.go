package room

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/workspace"
)

// sample makes a workspace with all that a tree can hold.
func sample(t *testing.T) (root string, blobs blob.Store, tree blob.ID) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "shop")
	write := func(path, content string, mode os.FileMode) {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(full, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("a.txt", "a\n", 0o644)
	write("bin/run", "#!/bin/sh\n", 0o755)
	write("deep/er/secret", "x", 0o400)
	write("empty", "", 0o664)
	write("large", strings.Repeat("0123456789abcdef", 300<<10/16), 0o644)
	write("sealed/inside", "in\n", 0o444)
	write("bad\xff name", "b", 0o644)
	for _, err := range []error{
		os.MkdirAll(filepath.Join(root, "nothing/here"), 0o750),
		os.Symlink("a.txt", filepath.Join(root, "link")),
		os.Symlink("/nowhere", filepath.Join(root, "bin/dangling")),
		os.Chmod(filepath.Join(root, "sealed"), 0o555),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(root, "sealed"), 0o755) })
	blobs = memblob.New()
	return root, blobs, treeOf(t, blobs, root)
}

func treeOf(t *testing.T, blobs blob.Store, root string) blob.ID {
	t.Helper()
	res, err := workspace.Scan(t.Context(), blobs, root, nil, &workspace.Options{NoIgnore: true})
	if err != nil {
		t.Fatal(err)
	}
	return res.Tree
}

func openRooms(t *testing.T, blobs blob.Store, opts Options) *Rooms {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = filepath.Join(t.TempDir(), "rooms")
	}
	r, err := Open(blobs, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// names lists what is in a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// A room that is captured gives the tree that it was made from.
func TestRoomEqualsItsTree(t *testing.T) {
	root, blobs, tree := sample(t)
	for name, opts := range map[string]Options{"from the store": {}, "beside the workspace": {Workspace: root}} {
		t.Run(name, func(t *testing.T) {
			rooms := openRooms(t, blobs, opts)
			first, err := rooms.Make(t.Context(), tree)
			if err != nil {
				t.Fatal(err)
			}
			second, err := rooms.Make(t.Context(), tree)
			if err != nil {
				t.Fatal(err)
			}
			if got := treeOf(t, blobs, first.Path()); got != tree {
				t.Errorf("the room has tree %s, want %s", got, tree)
			}
			if first.Path() == second.Path() {
				t.Errorf("two rooms at %s", first.Path())
			}
			if err := first.Remove(); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(first.Path()); !os.IsNotExist(err) {
				t.Errorf("after Remove: %v", err)
			}
			if err := rooms.Close(); err != nil {
				t.Error(err)
			}
			if left := names(t, filepath.Dir(rooms.dir)); len(left) > 0 {
				t.Errorf("after Close: %q", left)
			}
		})
	}
}

// A file of the workspace that is not the wanted one is not taken, even if it has the same
// size.
func TestRoomIgnoresWhatChangedInTheWorkspace(t *testing.T) {
	root, blobs, tree := sample(t)
	if err := os.WriteFile(filepath.Join(root, "a.txt"), []byte("b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	rooms := openRooms(t, blobs, Options{Workspace: root})
	defer rooms.Close()
	r, err := rooms.Make(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	if got := treeOf(t, blobs, r.Path()); got != tree {
		t.Errorf("the room has tree %s, want %s", got, tree)
	}
	if filepath.Base(r.Path()) != "shop" {
		t.Errorf("room at %s, want the name of the workspace", r.Path())
	}
}

func TestLinks(t *testing.T) {
	root, blobs, tree := sample(t)
	modules := filepath.Join(root, "web", "node_modules")
	if err := os.MkdirAll(modules, 0o755); err != nil {
		t.Fatal(err)
	}
	rooms := openRooms(t, blobs, Options{Workspace: root, Links: []string{"./web/node_modules"}})
	r, err := rooms.Make(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(filepath.Join(r.Path(), "web/node_modules")); err != nil || target != modules {
		t.Errorf("link to %q, %v; want %q", target, err, modules)
	}
	if err := rooms.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(modules); err != nil {
		t.Errorf("what was linked is gone: %v", err)
	}

	if err := os.Mkdir(filepath.Join(root, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{".git", ".GIT/config", "../shop", "/etc", "missing", ""} {
		if _, err := Open(blobs, Options{Dir: t.TempDir(), Workspace: root, Links: []string{link}}); !errors.Is(err, ErrLink) {
			t.Errorf("link %q: %v, want ErrLink", link, err)
		}
	}
	taken := openRooms(t, blobs, Options{Workspace: root, Links: []string{"bin"}})
	defer taken.Close()
	if _, err := taken.Make(t.Context(), tree); !errors.Is(err, ErrLink) {
		t.Errorf("a link in the place of captured files: %v, want ErrLink", err)
	}
}

func TestPlaceInsideTheWorkspace(t *testing.T) {
	root, blobs, _ := sample(t)
	if _, err := Open(blobs, Options{Dir: filepath.Join(root, "cache/rooms"), Workspace: root}); !errors.Is(err, ErrNoPlace) {
		t.Errorf("rooms inside the workspace: %v, want ErrNoPlace", err)
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(root, "cache"))
	t.Setenv("HOME", root)
	t.Setenv("TMPDIR", t.TempDir())
	rooms, err := Open(blobs, Options{Workspace: root})
	if err != nil {
		t.Fatal(err)
	}
	defer rooms.Close()
	if strings.HasPrefix(rooms.dir, root) {
		t.Errorf("rooms at %s, inside the workspace", rooms.dir)
	}
}

// A room that cannot be made leaves nothing.
func TestFailureLeavesNothing(t *testing.T) {
	_, blobs, tree := sample(t)
	rooms := openRooms(t, blobs, Options{})
	defer rooms.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rooms.Make(ctx, tree); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := rooms.Make(t.Context(), blob.New([]byte("missing")).ID); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("missing tree: %v", err)
	}
	if left := names(t, rooms.dir); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// The rooms of a process that was killed are removed by the next one, those of a living
// process are not.
func TestLeftovers(t *testing.T) {
	if dir := os.Getenv("STET_TEST_ROOMS"); dir != "" {
		holdRooms(t, dir)
		return
	}
	dir := filepath.Join(t.TempDir(), "rooms")
	_, blobs, tree := sample(t)
	alive := openRooms(t, blobs, Options{Dir: dir})
	defer alive.Close()
	kept, err := alive.Make(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLeftovers$")
	cmd.Env = append(os.Environ(), "STET_TEST_ROOMS="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	path, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	path = strings.TrimSpace(path)
	third := openRooms(t, blobs, Options{Dir: dir})
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("a living process lost its room: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	fourth := openRooms(t, blobs, Options{Dir: dir})
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the room of a killed process: %v", err)
	}
	if _, err := os.Lstat(kept.Path()); err != nil {
		t.Errorf("our own room: %v", err)
	}
	for _, r := range []*Rooms{third, fourth} {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// holdRooms makes a room and waits to be killed.
func holdRooms(t *testing.T, dir string) {
	_, blobs, tree := sample(t)
	r, err := openRooms(t, blobs, Options{Dir: dir}).Make(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(r.Path(), "deep"), 0); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString(r.Path() + "\n")
	_, _ = os.Stdin.Read(make([]byte, 1)) // never comes
}
