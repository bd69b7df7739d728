//go:build unix

package checkpoint

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// blocks returns how much of a file takes up room.
func blocks(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(path, &st))
	return st.Blocks * 512
}

// A sparse file comes back as one, at any size that is stored in another way.
func TestSparseFilesStaySparse(t *testing.T) {
	for _, size := range []int64{200 << 10, 4 << 20, 20 << 20} {
		f := newFixture(t)
		path := f.path("sparse")
		file, err := os.Create(path)
		must(t, err)
		for _, at := range []int64{0, 70_001, size / 2} {
			_, err := file.WriteAt([]byte("data"), at)
			must(t, err)
		}
		must(t, file.Truncate(size))
		must(t, file.Close())
		if blocks(t, path) > size/2 {
			t.Skip("no holes on this file system")
		}
		want, err := os.ReadFile(path)
		must(t, err)
		room := blocks(t, path)
		c1 := f.before("c", 1)
		f.write("sparse", "no longer\n")
		f.after("c", 1)
		f.rewind(RewindRequest{To: c1.ID})
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes came back as %d others, %v", len(want), len(got), err)
		}
		if got := blocks(t, path); got > 2*room {
			t.Errorf("a file of %d bytes takes %d, %d before", size, got, room)
		}
	}
}
