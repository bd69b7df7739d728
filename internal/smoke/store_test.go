package smoke

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// Windows had a limit of 260 characters, and many programs still have it.
func TestProgramRewindsLongPaths(t *testing.T) {
	m := newMachine(t)
	long := strings.Repeat(strings.Repeat("d", 60)+"/", 6) + "file.txt"
	first := map[string]string{"a.txt": "one", long: "one"}
	for name, text := range first {
		m.write(name, text)
	}
	m.stet("checkpoint", "-m", "first")
	m.stet("pin", "start", "@")
	if err := os.RemoveAll(filepath.Join(m.work, strings.Repeat("d", 60))); err != nil {
		t.Fatal(err)
	}
	m.stet("rewind", "pin:start", "--exact", "-y")
	m.want("after the rewind", first)
	m.write(long, "two")
	m.stet("rewind", "pin:start", "--exact", "-y")
	m.want("after another rewind", first)
}

// A store that was made on Linux is read, checked and continued on every system.
func TestProgramOpensStoresOfLinux(t *testing.T) {
	m := newMachine(t)
	unpack(t, filepath.Join(testenv.Root(), "testdata", "releases", "v0.1.0", "plain.tar.gz"), m.dir)
	if list := m.stet("ls", "--json"); !strings.Contains(list, "add retry to checkout") {
		t.Errorf("it has the conversations\n%s", list)
	}
	m.stet("fsck", "--read-data")
	if found := m.stet("search", "retry"); !strings.Contains(found, "retry") {
		t.Errorf("a search finds\n%s", found)
	}
	m.write("a.txt", "one")
	m.stet("checkpoint", "-m", "first")
	m.stet("pin", "mine", "@")
	m.write("a.txt", "two")
	m.stet("rewind", "pin:mine", "--exact", "-y")
	m.want("after the rewind", map[string]string{"a.txt": "one"})
	m.stet("fsck", "--read-data")
}

// unpack writes the files of an archive below a directory.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else {
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
