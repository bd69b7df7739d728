package conversation_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/sqlite"
)

// syncCounter is the library's file system and counts how often files are made
// durable.
type syncCounter struct {
	vfs.VFSFilename
	log, other atomic.Int64 // syncs of the write-ahead log and of all else
}

// osFile is what the library's own files can do.
type osFile interface {
	vfs.FileLockState
	vfs.FileHasMoved
	vfs.FileSizeHint
	vfs.FilePersistWAL
	vfs.FilePowersafeOverwrite
	vfs.FileSharedMemory
}

type countedFile struct {
	osFile
	syncs *atomic.Int64
}

func (f *countedFile) Sync(flags vfs.SyncFlag) error {
	f.syncs.Add(1)
	return f.osFile.Sync(flags)
}

func (v *syncCounter) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := v.VFSFilename.OpenFilename(name, flags)
	inner, ok := file.(osFile)
	if err != nil || !ok {
		return file, flags, err
	}
	syncs := &v.other
	if strings.HasSuffix(filepath.Base(name.String()), "-wal") {
		syncs = &v.log
	}
	return &countedFile{osFile: inner, syncs: syncs}, flags, nil
}

// The clock of the bubble stands still while anybody works, so that the store
// writes nothing on its own account meanwhile.
func TestASaveIsOneSync(t *testing.T) {
	counter := &syncCounter{VFSFilename: vfs.Find("os").(vfs.VFSFilename)}
	vfs.Register("conversation-syncs", counter)
	defer vfs.Unregister("conversation-syncs")
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(context.Background(), dir, &sqlite.Options{VFS: "conversation-syncs"})
		check(t, err)
		defer func() { check(t, db.Close()) }()
		c := prefill(t, conversation.New(blob.Checked(compressed.New(db.Blobs(), nil)), db.Rows(), nil), 20)
		for n := range 20 {
			log, other := counter.log.Load(), counter.other.Load()
			saveTurn(t, c, n)
			log, other = counter.log.Load()-log, counter.other.Load()-other
			if log != 1 || other != 0 {
				t.Errorf("save %d: %d syncs of the log and %d of other files, want 1 and 0", n, log, other)
			}
		}
	})
}
