//go:build !portable

package workspace

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapped returns the bytes of a file, mapped so that stores reach it, without a
// descriptor that is open.
func mapped(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func contentOf(t *testing.T, store *mapStore, res *Result, path string) []byte {
	t.Helper()
	e, err := Lookup(context.Background(), store, res.Tree, path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := ReadFile(context.Background(), store, e)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A store through a mapping to a page that is dirty already moves no stamp, and the
// next scan sees it all the same.
func TestStoresThroughAMapping(t *testing.T) {
	for _, size := range []int{8192, ChunkedFrom + 4096} {
		root, store := t.TempDir(), newStore()
		path := filepath.Join(root, "f")
		if err := os.WriteFile(path, bytes.Repeat([]byte{'.'}, size), 0o644); err != nil {
			t.Fatal(err)
		}
		m := mapped(t, path)
		m[0] = '1' // makes the page dirty, and moves the stamps
		letTick()
		res := mustScan(t, store, root, nil, nil)
		for _, c := range []byte("23") {
			m[0] = c
			res = mustScan(t, store, root, res.Index, nil)
			if got := contentOf(t, store, res, "f")[0]; got != c {
				t.Errorf("a file of %d bytes begins with %q after a store of %q", size, got, c)
			}
		}
		m[0] = '4'
		if err := unix.Munmap(m); err != nil {
			t.Fatal(err)
		}
		res = mustScan(t, store, root, res.Index, nil)
		if got := contentOf(t, store, res, "f")[0]; got != '4' {
			t.Errorf("a file of %d bytes begins with %q after the mapping went", size, got)
		}
		if again := mustScan(t, store, root, res.Index, nil); again.Stats.Read != 0 {
			t.Errorf("a file that nobody can write to was read again")
		}
	}
}

// stalled is a write() that stops in the middle, where its buffer has a page that
// another program has yet to fill.
type stalled struct {
	uffd int
	page uintptr
	done chan error
}

const (
	uffdAPI      = 0xc018aa3f
	uffdRegister = 0xc020aa00
	uffdCopy     = 0xc028aa03
)

func uffdIoctl(fd int, req uint, arg []uint64) error {
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(req), uintptr(unsafe.Pointer(&arg[0]))); e != 0 {
		return e
	}
	return nil
}

// stall begins to write size bytes to a file and returns when the kernel waits for
// the last of them.
func stall(t *testing.T, path string, size int, fill byte) *stalled {
	t.Helper()
	fd, _, e := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if e != 0 {
		t.Skipf("userfaultfd: %v", e)
	}
	s := &stalled{uffd: int(fd), done: make(chan error, 1)}
	t.Cleanup(func() { unix.Close(s.uffd) })
	buf, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	const pageSize = 4096
	for i := range size - pageSize {
		buf[i] = fill
	}
	s.page = uintptr(unsafe.Pointer(&buf[size-pageSize]))
	if err := uffdIoctl(s.uffd, uffdAPI, []uint64{0xaa, 0, 0}); err != nil {
		t.Skipf("userfaultfd: %v", err)
	}
	if err := uffdIoctl(s.uffd, uffdRegister, []uint64{uint64(s.page), pageSize, 1, 0}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := unix.Write(int(f.Fd()), buf)
		runtime.KeepAlive(buf)
		f.Close()
		s.done <- err
	}()
	var event [32]byte
	if n, err := unix.Read(s.uffd, event[:]); err != nil || n != len(event) {
		t.Fatalf("wait for the write to stall: %d bytes, %v", n, err)
	}
	if at := binary.NativeEndian.Uint64(event[16:]); at&^(pageSize-1) != uint64(s.page) {
		t.Fatalf("stalled at %x, want %x", at, s.page)
	}
	return s
}

// finish lets the write end.
func (s *stalled) finish(t *testing.T, fill byte) {
	t.Helper()
	src := bytes.Repeat([]byte{fill}, 4096)
	if err := uffdIoctl(s.uffd, uffdCopy, []uint64{uint64(s.page), uint64(uintptr(unsafe.Pointer(&src[0]))), 4096, 0, 0}); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(src)
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
}

// A scan in the middle of one write() does not make the next one believe that the
// file is as it was then.
func TestScanInTheMiddleOfAWrite(t *testing.T) {
	root, store := t.TempDir(), newStore()
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil {
		t.Fatal(err)
	}
	if fs.Type != unix.EXT4_SUPER_MAGIC && fs.Type != unix.TMPFS_MAGIC {
		t.Skip("reads may wait for writes here")
	}
	path := filepath.Join(root, "f")
	for _, size := range []int{6 << 20, 16 << 20} {
		if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
		w := stall(t, path, size, 'n')
		letTick()
		res := mustScan(t, store, root, nil, nil)
		if res.Stats.Racy != 1 {
			t.Errorf("%d racy files, want 1", res.Stats.Racy)
		}
		w.finish(t, 'n')
		res = mustScan(t, store, root, res.Index, nil)
		if got, want := contentOf(t, store, res, "f"), bytes.Repeat([]byte{'n'}, size); !bytes.Equal(got, want) {
			t.Errorf("a finished file of %d bytes is torn: %d are new", size, bytes.Count(got, []byte{'n'}))
		}
	}
}

// A file that stays open for writing is read by every scan, but neither stored nor
// indexed again, until it is closed.
func TestOpenFilesAreReadAgain(t *testing.T) {
	root, store := t.TempDir(), newStore()
	write(t, root, map[string]string{"d/open": "open", "d/closed": "closed"})
	f, err := os.OpenFile(filepath.Join(root, "d/open"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	large, err := os.Create(filepath.Join(root, "large"))
	if err != nil {
		t.Fatal(err)
	}
	defer large.Close()
	if err := large.Truncate(ChunkedFrom); err != nil {
		t.Fatal(err)
	}
	letTick()
	res := mustScan(t, store, root, nil, nil)
	letTick()
	res = mustScan(t, store, root, res.Index, nil) // knows the stamps of directories, too
	puts := store.puts
	for range 2 {
		next := mustScan(t, store, root, res.Index, nil)
		if next.Stats.Read != 2 || next.Stats.Racy != 2 || store.puts != puts || len(next.Changed) > 0 {
			t.Errorf("read %d, racy %d, stored %d, changed %v", next.Stats.Read, next.Stats.Racy, store.puts-puts, changeList(next.Changed))
		}
		if next.Index.root != res.Index.root {
			t.Error("the index has a new record")
		}
		res = next
	}
	f.Close()
	large.Close()
	for i, want := range []int64{2, 0} {
		res = mustScan(t, store, root, res.Index, nil)
		if res.Stats.Read != want || res.Stats.Racy != 0 || store.puts != puts {
			t.Errorf("scan %d after the files were closed: read %d, racy %d, stored %d", i+1, res.Stats.Read, res.Stats.Racy, store.puts-puts)
		}
	}
}

// Where the file system does not say who writes, the processes do.
func TestListWritten(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"read": "r", "written": "w", "mapped": "m", "closed": "c"})
	ino := func(name string) uint64 {
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(root, name), &st); err != nil {
			t.Fatal(err)
		}
		return st.Ino
	}
	r, err := os.Open(filepath.Join(root, "read"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w, err := os.OpenFile(filepath.Join(root, "written"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	m := mapped(t, filepath.Join(root, "mapped"))
	defer unix.Munmap(m)
	open := listWritten()
	for name, want := range map[string]bool{"read": false, "written": true, "mapped": true, "closed": false} {
		if _, got := open[ino(name)]; got != want {
			t.Errorf("%s: listed %v, want %v", name, got, want)
		}
	}
}

// Without a word of the kernel, what was stamped a moment ago is not relied on.
func TestRacyMargin(t *testing.T) {
	var o openFiles
	now := stampClock()
	o.once.Do(func() { o.at, o.inos = now, map[uint64]struct{}{7: {}} })
	for _, c := range []struct {
		st   fileStat
		want writing
	}{
		{fileStat{ino: 7, ctime: now - int64(time.Hour)}, somebody},
		{fileStat{ino: 8, ctime: now - int64(time.Hour)}, nobody},
		{fileStat{ino: 8, ctime: now - racyMargin + 1}, notKnown},
		{fileStat{ino: 8, ctime: now + 1}, notKnown},
	} {
		if got := o.has(c.st); got != c.want {
			t.Errorf("inode %d, stamped %v before: %d, want %d", c.st.ino, time.Duration(now-c.st.ctime), got, c.want)
		}
	}
}
