package sqlite

import (
	"errors"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// logBuffer is how much of the log is written at once.
const logBuffer = 256 << 10

// logFile is the write-ahead log. SQLite writes it piece by piece, a header of 24
// bytes and a page in turns; this collects them. It tells others of a transaction's
// pages after the sync of its commit, which is when everything must be in the file, or
// when this connection reads it back. Two things make that so: synchronous is FULL,
// and the disk is taken to be safe against torn neighbours (else SQLite writes on
// after the sync, to fill a sector).
type logFile struct {
	*diskFile
	at  int64  // where buf belongs
	buf []byte // written, but not in the file yet
}

// flush fails as a write, whoever calls it: after a sync that failed nobody could
// tell what the disk has, and nothing more would be written.
func (f *logFile) flush() error {
	if len(f.buf) == 0 {
		return nil
	}
	_, err := f.diskFile.WriteAt(f.buf, f.at)
	f.buf = f.buf[:0]
	return vfs.SystemError(err, sqlite3.IOERR_WRITE)
}

func (f *logFile) WriteAt(p []byte, off int64) (int, error) {
	if off != f.at+int64(len(f.buf)) || len(f.buf)+len(p) > logBuffer {
		if err := f.flush(); err != nil {
			return 0, err
		}
		f.at = off
	}
	f.buf = append(f.buf, p...)
	return len(p), nil
}

func (f *logFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.flush(); err != nil {
		return 0, err
	}
	return f.diskFile.ReadAt(p, off)
}

func (f *logFile) Truncate(size int64) error {
	if err := f.flush(); err != nil {
		return err
	}
	return f.diskFile.Truncate(size)
}

func (f *logFile) Size() (int64, error) {
	if err := f.flush(); err != nil {
		return 0, err
	}
	return f.diskFile.Size()
}

func (f *logFile) Sync(flags vfs.SyncFlag) error {
	if err := f.flush(); err != nil {
		return err
	}
	return f.diskFile.Sync(flags)
}

func (f *logFile) Close() error { return errors.Join(f.flush(), f.diskFile.Close()) }
