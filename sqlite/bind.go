package sqlite

import (
	"slices"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// Suffixes that the library adds to the name of a database: the log, and the
// shared-memory index of the log.
const (
	logSuffix   = "-wal"
	indexSuffix = "-shm"
)

// databaseFile is the database of one connection. It hides the mark from the library:
// reads at the mark's place return zeros, and writes store the mark.
//
// The library's locks order changes of the mark. A connection that begins a log holds a
// shared lock on reading without the log; a connection that copies a log into the
// database holds an exclusive one.
type databaseFile struct {
	diskFile
	path string
	log  *logFile // nil before the connection opened one

	copying *mark // the mark during a copy of the log into the database
	last    int64 // offset of the last frame read for that copy
	failed  error // why the mark could not be written after the copy
}

// logFile is the log of one connection.
type logFile struct {
	diskFile
	database *databaseFile // nil if it cannot be found
	bound    bool          // the database's mark names this log
	begun    bool          // the connection wrote a header, and no frame yet
	fresh    bool          // the log was empty before
	frames   frames
}

func openLog(on diskFile, name *vfs.Filename) *logFile {
	f := &logFile{diskFile: on}
	file := name.DatabaseFile()
	if wrapped, ok := file.(vfs.FileUnwrap); ok {
		file = wrapped.Unwrap()
	}
	if f.database, _ = file.(*databaseFile); f.database != nil {
		f.database.log = f
	}
	return f
}

// WriteAt implements vfs.File. A header begins a log.
func (f *logFile) WriteAt(p []byte, off int64) (int, error) {
	if off == 0 && len(p) == logHeaderSize {
		size, err := f.Size()
		if err != nil {
			return 0, f.disk.note(err)
		}
		f.bound, f.begun, f.fresh = false, true, size == 0
		return f.diskFile.WriteAt(p, off)
	}
	if !f.bound {
		if err := f.bind(); err != nil {
			return 0, f.disk.note(err)
		}
	}
	return f.writeFrames(p, off)
}

// Sync implements vfs.File. The library syncs a header before the first frame follows.
// The mark becomes durable at that point, after the header, because a log with its old
// header must fit the old mark. If the log was empty before, the header can wait for
// the first commit: without it no frame counts.
func (f *logFile) Sync(flags vfs.SyncFlag) error {
	if err := f.flush(); err != nil {
		return vfs.SystemError(err, sqlite3.IOERR_WRITE)
	}
	if f.disk.syncing != nil {
		f.disk.syncing(true)
		defer f.disk.syncing(false)
	}
	if !f.begun {
		return f.diskFile.Sync(flags)
	}
	if !f.fresh {
		if err := f.diskFile.Sync(flags); err != nil {
			return err
		}
	}
	return f.disk.note(f.bind())
}

// ReadAt implements vfs.File.
func (f *logFile) ReadAt(p []byte, off int64) (int, error) {
	if d := f.database; d != nil && d.copying != nil {
		d.last = max(d.last, off)
	}
	if err := f.flush(); err != nil {
		return 0, err
	}
	return f.diskFile.ReadAt(p, off)
}

// bind writes this log's mark into the database before the first frame.
func (f *logFile) bind() error {
	if f.database == nil {
		f.begun = false
		return nil
	}
	log, ok, err := readLog(f.osFile)
	if err != nil || !ok {
		return err // without a header no frame counts
	}
	m, stored, err := f.database.markFor(log)
	if err != nil {
		return err
	}
	if !stored {
		if err := f.database.writeMark(m); err != nil {
			return err
		}
		if err := f.database.osFile.Sync(vfs.SYNC_NORMAL); err != nil {
			return err
		}
	}
	f.bound, f.begun = true, false
	return nil
}

// markFor returns the mark for a log in use, and whether it is stored.
func (f *databaseFile) markFor(log *logReader) (m mark, stored bool, err error) {
	m, known, err := readMark(f.osFile)
	if err != nil || !known || m.salts != log.salts {
		return mark{salts: log.salts}, false, err
	}
	stored = !m.closed
	m.closed = false
	return m, stored, nil
}

func (f *databaseFile) writeMark(m mark) error {
	_, err := f.osFile.WriteAt(m.encode(), markOffset)
	return err
}

// CheckpointStart implements vfs.FileCheckpoint: the library has synced the log and
// begins to copy it.
func (f *databaseFile) CheckpointStart() {
	f.copying, f.last, f.failed = nil, 0, nil
	if f.log == nil {
		return
	}
	log, ok, err := readLog(f.log.osFile)
	if err == nil && ok {
		var m mark
		if m, _, err = f.markFor(log); err == nil {
			f.copying = &m
		}
	}
	f.failed = err
}

// CheckpointDone implements vfs.FileCheckpoint. The mark becomes durable with the pages
// or before them. Before is harmless, because the frames are durable.
func (f *databaseFile) CheckpointDone() {
	if f.copying == nil || f.failed != nil {
		return
	}
	f.failed = f.disk.note(f.markCopied())
	f.copying = nil
}

func (f *databaseFile) markCopied() error {
	log, ok, err := readLog(f.log.osFile)
	if err != nil || !ok || f.last == 0 {
		return err
	}
	m := *f.copying
	frame := uint32((f.last-logHeaderSize)/(frameHeaderSize+log.page)) + 1
	if frame > m.frames {
		sum, ok, err := log.frameSum(frame)
		if err != nil || !ok {
			return err
		}
		m.frames, m.sum = frame, sum
	}
	return f.writeMark(m)
}

// ReadAt implements vfs.File.
func (f *databaseFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.diskFile.ReadAt(p, off)
	part, _ := overMark(p[:n], off)
	clear(part)
	return n, err
}

// WriteAt implements vfs.File.
func (f *databaseFile) WriteAt(p []byte, off int64) (int, error) {
	if part, _ := overMark(p, off); part != nil {
		var err error
		if p, err = f.withMark(p, off); err != nil {
			return 0, f.disk.note(err)
		}
	}
	return f.diskFile.WriteAt(p, off)
}

// withMark returns a copy of p with the mark in its place.
func (f *databaseFile) withMark(p []byte, off int64) ([]byte, error) {
	m := f.copying
	if m == nil {
		stored, _, err := readMark(f.osFile)
		if err != nil {
			return nil, err
		}
		m = &stored
	}
	p = slices.Clone(p)
	part, from := overMark(p, off)
	copy(part, m.encode()[from:])
	return p, nil
}

// Truncate implements vfs.File.
func (f *databaseFile) Truncate(size int64) error {
	if f.failed != nil {
		return f.failed
	}
	return f.diskFile.Truncate(size)
}

// Sync implements vfs.File. The library syncs a database once it holds the whole log.
// It has an exclusive lock at that point only if it is about to remove the log.
func (f *databaseFile) Sync(flags vfs.SyncFlag) error {
	if f.failed != nil {
		return f.failed
	}
	if f.log != nil && f.LockState() == vfs.LOCK_EXCLUSIVE {
		if _, err := f.markClosed(); err != nil {
			return f.disk.note(err)
		}
	}
	return f.diskFile.Sync(flags)
}

// markClosed records in the mark that the database needs no log.
func (f *databaseFile) markClosed() (changed bool, err error) {
	m, known, err := readMark(f.osFile)
	if err != nil || !known || m.none() || m.closed {
		return false, err
	}
	m.closed = true
	return true, f.writeMark(m)
}

// dropLog is called before the log is removed. The database has been synced, but
// perhaps before the library knew that no other connection continues the log.
func (f *databaseFile) dropLog() error {
	changed, err := f.markClosed()
	if err != nil || !changed {
		return err
	}
	return f.osFile.Sync(vfs.SYNC_NORMAL)
}

// Close implements vfs.File.
func (f *databaseFile) Close() error {
	f.disk.closed(f)
	return f.diskFile.Close()
}
