package sqlite

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// asNobody runs the calling test again as a user whom permissions bind, if this
// one is root. It reports whether it did.
func asNobody(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	dir, err := os.MkdirTemp("", "stet-nobody-") // go's own build directory is root's
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "test")
	if err := copyProgram(program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("as nobody: %v\n%s", err, out)
	}
	return true
}

func copyProgram(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	in, err := os.Open(self)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), os.Chmod(to, 0o755))
}

// withhold takes the permission to write from a whole store.
func withhold(t *testing.T, dir string) {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, path)
			return nil
		}
		return os.Chmod(path, 0o400)
	})
	for _, path := range dirs {
		err = errors.Join(err, os.Chmod(path, 0o500))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, path := range dirs {
			_ = os.Chmod(path, 0o700) // for others than root to remove it
		}
	})
}

// readable holds a store that cannot be written to what it promises.
func readable(t *testing.T, dir string, small, large blob.Blob, value string) {
	t.Helper()
	before := snapshot(t, dir)
	for _, opts := range []*Options{nil, {MustExist: true}, {ReadOnly: true}} {
		db, err := Open(t.Context(), dir, opts)
		if err != nil {
			t.Fatalf("Open with %+v: %v", opts, err)
		}
		for _, want := range []blob.Blob{small, large} {
			got, err := db.Blobs().Get(t.Context(), want.ID)
			if err != nil || !bytes.Equal(got, want.Data) {
				t.Errorf("Get(%s) = %d bytes, %v", want.ID.Short(), len(got), err)
			}
		}
		row, err := db.Rows().Get(t.Context(), "row/0")
		if err != nil || string(row.Value) != value {
			t.Errorf("row = %q, %v, want %q", row.Value, err, value)
		}
		n := 0
		if err := db.Blobs().List(t.Context(), blob.ID{}, func(blob.Info) error { n++; return nil }); err != nil || n != 2 {
			t.Errorf("List gave %d blobs, %v", n, err)
		}
		if report, err := db.Check(t.Context(), CheckOptions{}); err != nil || len(report.Damage) > 0 {
			t.Errorf("Check = %v, %v", report, err)
		}
		if err := db.Blobs().Put(t.Context(), blob.New([]byte("new"))); !errors.Is(err, blob.ErrReadOnly) {
			t.Errorf("Put = %v, want ErrReadOnly", err)
		}
		if err := db.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "k"}}}); !errors.Is(err, blob.ErrReadOnly) {
			t.Errorf("Commit = %v, want ErrReadOnly", err)
		}
		if _, err := db.Blobs().Begin(t.Context()); !errors.Is(err, blob.ErrReadOnly) {
			t.Errorf("Begin = %v, want ErrReadOnly", err)
		}
		closeNow(t, db)
	}
	after := snapshot(t, dir)
	if len(after) != len(before) {
		t.Errorf("%d files became %d", len(before), len(after))
	}
	for path, content := range before {
		if after[path] != content {
			t.Errorf("reading changed %s", path)
		}
	}
}

// closedStore and killedStore hold two blobs and a row.
func closedStore(t *testing.T) (dir string, small, large blob.Blob) {
	dir, small, large = filled(t)
	db, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	commits(t, db, 1, "closed")
	closeNow(t, db)
	return dir, small, large
}

func killedStore(t *testing.T, index bool) (dir string, small, large blob.Blob) {
	dir, small, large = closedStore(t)
	db, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	commits(t, db, 1, "killed")
	dir = killed(t, db)
	if index {
		if err := os.WriteFile(filepath.Join(dir, databaseName+indexSuffix), make([]byte, 32<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, small, large
}

func TestStoresWithoutPermissionToWrite(t *testing.T) {
	if asNobody(t) {
		return
	}
	t.Run("closed", func(t *testing.T) {
		dir, small, large := closedStore(t)
		withhold(t, dir)
		readable(t, dir, small, large, "closed")
	})
	for _, index := range []bool{false, true} {
		t.Run("killed", func(t *testing.T) {
			dir, small, large := killedStore(t, index)
			withhold(t, dir)
			readable(t, dir, small, large, "killed")
		})
	}
	t.Run("a directory only", func(t *testing.T) {
		dir, small, large := closedStore(t)
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(dir, 0o700) })
		readable(t, dir, small, large, "closed")
	})
	t.Run("in use by somebody who may write", func(t *testing.T) {
		dir, _, _ := closedStore(t)
		writer, err := Open(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Close()
		commits(t, writer, 1, "first")
		withhold(t, dir) // what is open stays open
		reader, err := Open(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		for _, value := range []string{"second", "third"} {
			commits(t, writer, 1, value)
			if row, err := reader.Rows().Get(t.Context(), "row/0"); err != nil || string(row.Value) != value {
				t.Errorf("row = %q, %v, want %q", row.Value, err, value)
			}
		}
	})
}

// TestAFrozenStoreThatIsWrittenTo is read by a process that may not write, when another
// one, who may, begins to use it.
func TestAFrozenStoreThatIsWrittenTo(t *testing.T) {
	if asNobody(t) {
		return
	}
	dir, _, _ := closedStore(t)
	withhold(t, dir)
	reader, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	get := func(want string) {
		t.Helper()
		if row, err := reader.Rows().Get(t.Context(), "row/0"); err != nil || string(row.Value) != want {
			t.Errorf("row = %q, %v, want %q", row.Value, err, want)
		}
	}
	get("closed")
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		return errors.Join(err, os.Chmod(path, 0o700))
	})
	if err != nil {
		t.Fatal(err)
	}
	writer, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	commits(t, writer, 1, "second")
	get("second")
	err = reader.Blobs().ReadMany(t.Context(), func(r blob.Reader) error {
		if _, err := r.Has(t.Context(), blob.New([]byte("small")).ID); err != nil {
			return err
		}
		commits(t, writer, 1, "third")
		moveLogNow(writer, 0)
		_, err := r.Has(t.Context(), blob.New([]byte("none")).ID)
		return err
	})
	if !errors.Is(err, kv.ErrBusy) {
		t.Errorf("a read beside a writer = %v, want ErrBusy", err)
	}
	get("third")
}

// TestScratch compares what is stored with what is not.
func TestScratch(t *testing.T) {
	dir, small, _ := closedStore(t)
	db, err := Open(t.Context(), dir, &Options{ReadOnly: true, Scratch: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Blobs().Flush(t.Context()); err != nil {
		t.Errorf("Flush of nothing = %v", err)
	}
	for _, one := range []blob.Blob{blob.New([]byte("present")), blob.New(make([]byte, 300<<10))} {
		if err := db.Blobs().Put(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		if got, err := db.Blobs().Get(t.Context(), one.ID); err != nil || !bytes.Equal(got, one.Data) {
			t.Errorf("Get = %d bytes, %v", len(got), err)
		}
	}
	if has, err := db.Blobs().Has(t.Context(), small.ID, blob.New([]byte("present")).ID); err != nil || !has[0] || !has[1] {
		t.Errorf("Has = %v, %v", has, err)
	}
	if err := db.Blobs().Put(t.Context(), blob.New(make([]byte, 900<<10))); !errors.Is(err, blob.ErrReadOnly) {
		t.Errorf("Put of too much = %v, want ErrReadOnly", err)
	}
	if err := db.Blobs().Flush(t.Context()); !errors.Is(err, blob.ErrReadOnly) {
		t.Errorf("Flush = %v, want ErrReadOnly", err)
	}
}

// TestAReadOnlyFileSystem needs a mount.
func TestAReadOnlyFileSystem(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(*testing.T) (string, blob.Blob, blob.Blob)
	}{
		{"closed", closedStore},
		{"killed", func(t *testing.T) (string, blob.Blob, blob.Blob) { return killedStore(t, false) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, small, large := test.make(t)
			mount := t.TempDir()
			if err := syscall.Mount(dir, mount, "", syscall.MS_BIND, ""); err != nil {
				t.Skipf("cannot mount here (%v); TestStoresWithoutPermissionToWrite is about the same", err)
			}
			t.Cleanup(func() {
				if err := syscall.Unmount(mount, 0); err != nil {
					t.Errorf("unmount: %v", err)
				}
			})
			if err := syscall.Mount("", mount, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
			readable(t, mount, small, large, test.name)
		})
	}
}
