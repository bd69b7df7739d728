package checkpoint

import (
	"os"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/workspace"
)

// hide writes to a file in a way that leaves its stamps as the index knows them: the
// index takes the old content for one that is there.
func (f *fixture) hide(name, old, now string) {
	f.t.Helper()
	f.write(name, now)
	info, err := os.Stat(f.path(name))
	must(f.t, err)
	b := blob.New([]byte(old))
	index, err := workspace.ScanPaths(f.t.Context(), f.blobs, f.dir, f.w.index, []string{name}, &workspace.Options{
		Written: map[string]workspace.Written{name: {
			ID: b.ID, Size: int64(len(now)), Inode: testenv.Inode(f.t, f.path(name)), Mtime: info.ModTime().UnixNano(),
		}},
	})
	must(f.t, err)
	must(f.t, f.w.keepIndex(index.Index))
	res, err := f.w.Present(f.t.Context())
	if err == nil && res.Stats.Read != 0 && !trustsStamps {
		f.t.Skip("scans read files again here that changed a moment ago")
	}
	if err != nil || res.Stats.Read != 0 {
		f.t.Fatalf("the change is not hidden: read %d, %v", res.Stats.Read, err)
	}
}
