package checkpoint_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/sqlite"
)

// failingDisk makes changes of a database and its log fail from a moment on.
type failingDisk struct {
	vfs.VFSFilename
	name string

	mu     sync.Mutex // guards what follows
	count  int
	at     int  // number of the change that fails; 0 for none
	sticky bool // and all that follow
	arrive bool // what fails arrives all the same
}

func newFailingDisk(t *testing.T) *failingDisk {
	d := &failingDisk{VFSFilename: vfs.Find("os").(vfs.VFSFilename), name: strings.ReplaceAll(t.Name(), "/", "-")}
	vfs.Register(d.name, d)
	t.Cleanup(func() { vfs.Unregister(d.name) })
	return d
}

// do makes a change, or fails.
func (d *failingDisk) do(act func() error) error {
	d.mu.Lock()
	d.count++
	fails := d.at > 0 && (d.count == d.at || d.sticky && d.count > d.at)
	arrive := d.arrive
	d.mu.Unlock()
	if !fails {
		return act()
	}
	if arrive {
		_ = act() // whatever happens, the caller gets an error
	}
	return syscall.EIO
}

func (d *failingDisk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := d.VFSFilename.OpenFilename(name, flags)
	if err != nil || flags&(vfs.OPEN_MAIN_DB|vfs.OPEN_WAL) == 0 {
		return file, flags, err
	}
	return &failingFile{osFile: file.(osFile), disk: d}, flags, nil
}

type osFile interface {
	vfs.FileLockState
	vfs.FileHasMoved
	vfs.FileSizeHint
	vfs.FilePersistWAL
	vfs.FilePowersafeOverwrite
	vfs.FileSharedMemory
}

type failingFile struct {
	osFile
	disk *failingDisk
}

func (f *failingFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.disk.do(func() (err error) { n, err = f.osFile.WriteAt(p, off); return err })
	return n, err
}

func (f *failingFile) Truncate(size int64) error {
	return f.disk.do(func() error { return f.osFile.Truncate(size) })
}

func (f *failingFile) Sync(flags vfs.SyncFlag) error {
	return f.disk.do(func() error { return f.osFile.Sync(flags) })
}

// uncertain is a workspace with a rewind ahead.
type uncertain struct {
	t          *testing.T
	disk       *failingDisk
	store, dir string
	target     string
}

func newUncertain(t *testing.T) *uncertain {
	u := &uncertain{t: t, disk: newFailingDisk(t), store: t.TempDir(), dir: t.TempDir()}
	db, w := u.open("")
	turn := checkpoint.Request{Conversation: "c", Turn: 1, Side: checkpoint.Before}
	u.write("old")
	before, err := w.Checkpoint(t.Context(), turn)
	if err != nil {
		t.Fatal(err)
	}
	u.target = before.Record.ID
	u.write("new")
	turn.Side = checkpoint.After
	if _, err := w.Checkpoint(t.Context(), turn); err != nil {
		t.Fatal(err)
	}
	u.close(db, w)
	return u
}

func (u *uncertain) write(text string) {
	for i := range 3 {
		if err := os.WriteFile(filepath.Join(u.dir, fmt.Sprint("file", i)), []byte(text), 0o600); err != nil {
			u.t.Fatal(err)
		}
	}
}

// files returns what is in all files, or everything that is found.
func (u *uncertain) files() string {
	texts := map[string]bool{}
	var found []string
	entries, err := os.ReadDir(u.dir)
	if err != nil {
		u.t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(u.dir, e.Name()))
		if err != nil {
			data = []byte(err.Error())
		}
		texts[string(data)] = true
		found = append(found, fmt.Sprintf("%s: %s", e.Name(), data))
	}
	if len(texts) == 1 && len(entries) == 3 {
		for text := range texts {
			return text
		}
	}
	return strings.Join(found, ", ")
}

func (u *uncertain) open(disk string) (*sqlite.DB, *checkpoint.Workspace) {
	u.t.Helper()
	db, err := sqlite.Open(u.t.Context(), u.store, &sqlite.Options{VFS: disk})
	if err != nil {
		u.t.Fatal(err)
	}
	w, err := checkpoint.New(db.Blobs(), db.Rows(), nil).Open(u.t.Context(), u.dir)
	if err != nil {
		u.t.Fatal(err)
	}
	return db, w
}

func (u *uncertain) close(db *sqlite.DB, w *checkpoint.Workspace) {
	u.t.Helper()
	if err := errors.Join(w.Close(), db.Close()); err != nil {
		u.t.Fatal(err)
	}
}

// rewind goes back on a disk that fails, and looks at the workspace once more from
// the same process, as a server does. It returns the changes of the disk.
func (u *uncertain) rewind(at int, sticky, arrive bool) (changes int, err error) {
	db, w := u.open(u.disk.name)
	u.disk.mu.Lock()
	u.disk.count, u.disk.at, u.disk.sticky, u.disk.arrive = 0, at, sticky, arrive
	u.disk.mu.Unlock()
	_, err = w.Rewind(u.t.Context(), checkpoint.RewindRequest{To: u.target}, "")
	u.disk.mu.Lock()
	changes = u.disk.count
	u.disk.mu.Unlock()
	if err != nil {
		if again, err := checkpoint.New(db.Blobs(), db.Rows(), nil).Open(u.t.Context(), u.dir); err == nil {
			again.Close()
		}
	}
	w.Close()
	db.Close() // fails like the rest
	return changes, err
}

// TestFilesAndLogAgreeAfterAnError makes every change of the store's files fail in
// turn while a rewind is under way. Whatever the rewind says, after the store was
// opened again the log has it if and only if the files went back.
func TestFilesAndLogAgreeAfterAnError(t *testing.T) {
	probe := newUncertain(t)
	changes, err := probe.rewind(0, false, false)
	if err != nil || probe.files() != "old" {
		t.Fatalf("rewind = %v, files %s", err, probe.files())
	}
	interrupted := 0
	for at := 1; at <= changes; at++ {
		for _, how := range []struct{ sticky, arrive bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
			name := fmt.Sprintf("%d of %d, sticky %v, arrives %v", at, changes, how.sticky, how.arrive)
			t.Run(name, func(t *testing.T) {
				u := newUncertain(t)
				_, err := u.rewind(at, how.sticky, how.arrive)
				if errors.Is(err, checkpoint.ErrInterrupted) {
					interrupted++
				}
				db, w := u.open("")
				defer u.close(db, w)
				happened := false
				for op, err := range checkpoint.New(db.Blobs(), db.Rows(), nil).Operations(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					happened = happened || op.Kind == "rewind"
				}
				want := map[bool]string{true: "old", false: "new"}[happened]
				if got := u.files(); got != want {
					t.Errorf("the log has the rewind: %v; files: %s (the rewind said: %v)", happened, got, err)
				}
				if err == nil && !happened {
					t.Error("the rewind was acknowledged and is not in the log")
				}
				if errors.Is(err, checkpoint.ErrRolledBack) && happened {
					t.Error("the rewind said that it was rolled back and is in the log")
				}
			})
		}
	}
	if interrupted == 0 {
		t.Error("no rewind ended in doubt")
	}
}
