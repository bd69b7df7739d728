package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/fault"
)

// markedVersion is the first format whose databases name their log.
const markedVersion = 2

// ErrWrongLog means that the log beside a database belongs to another one or is
// missing. It is an ErrDamaged. Nothing was changed; Options.ForgetLog opens the
// database as it is.
var ErrWrongLog = fault.Under(ErrDamaged, "wrong-log", "store is damaged: database and log do not belong together")

// checkLog compares the log with the mark in the database, before the library may read
// either. If this process is alone with the store, it checks every frame that the
// database may hold.
func checkLog(path string, alone bool) error {
	f, err := os.Open(path)
	if err != nil {
		return fileError("open database", err)
	}
	defer f.Close()
	var version [4]byte
	if _, err := f.ReadAt(version[:], 60); err != nil {
		return fileError("read database", err)
	}
	if binary.BigEndian.Uint32(version[:]) < markedVersion {
		return nil
	}
	// Others may begin or remove a log meanwhile. They change the mark before the log
	// differs from it. If the mark stays the same, the difference is real.
	for range 100 {
		before, known, err := readMark(f)
		if err != nil {
			return fileError("read database", err)
		}
		if !known {
			continue
		}
		verdict, err := before.judgeFile(path+logSuffix, alone)
		if err != nil || verdict == "" {
			return fileError("read log", err)
		}
		after, known, err := readMark(f)
		if err != nil {
			return fileError("read database", err)
		}
		if known && before == after {
			return fmt.Errorf("%w: %s", ErrWrongLog, verdict)
		}
	}
	return nil // looks the same as a torn mark
}

// judgeFile reports what is wrong with the log at a path, or "".
func (m mark) judgeFile(path string, alone bool) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m.judge(nil, filepath.Base(path), alone)
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	return m.judge(f, filepath.Base(path), alone)
}

// judge does the same for an open or missing log.
func (m mark) judge(f io.ReaderAt, name string, alone bool) (string, error) {
	used := !m.none() && !m.closed
	if f == nil {
		if used {
			return fmt.Sprintf("the log %s is missing, and the latest commits with it; put it back or restore a backup", name), nil
		}
		return "", nil
	}
	log, ok, err := readLog(f)
	switch {
	case err != nil:
		return "", err
	case !ok && used && m.frames > 0:
		return fmt.Sprintf("the log %s was emptied or overwritten, and the latest commits are missing; put it back or restore a backup", name), nil
	case !ok:
		return "", nil // power was lost before the first commit
	case log.salts == m.salts:
		return m.judgeFrames(log, name, alone)
	}
	// A header alone proves nothing: it is written before the mark.
	committed, err := log.committed()
	if err != nil || !committed {
		return "", err
	}
	if used {
		return fmt.Sprintf("%s belongs to another store or is out of date; the database's own log is missing, and the latest commits with it; put that log back or restore a backup", name), nil
	}
	return fmt.Sprintf("%s belongs to another store or is out of date, and the database needs no log; move it away", name), nil
}

// judgeFrames checks that the database's own log still holds the frames it had when it
// was copied. An older copy of the log would undo later commits.
func (m mark) judgeFrames(log *logReader, name string, alone bool) (string, error) {
	if m.frames == 0 {
		return "", nil
	}
	sum, ok, err := log.frameSum(m.frames)
	if err == nil && ok && alone {
		ok, err = log.intact(m.frames)
	}
	if err != nil || ok && sum == m.sum {
		return "", err
	}
	if m.closed {
		return fmt.Sprintf("%s is out of date or damaged, and the database needs no log; move it away", name), nil
	}
	return fmt.Sprintf("%s is out of date or damaged: the database holds later commits; put the latest log back or restore a backup", name), nil
}

// forgetLog makes a database usable without its log. An existing log is kept under
// another name. The caller is alone with the store.
func (db *DB) forgetLog() error {
	log := db.path() + logSuffix
	kept := log + ".refused"
	for i := 2; ; i++ {
		if _, err := os.Lstat(kept); errors.Is(err, fs.ErrNotExist) {
			break
		}
		kept = fmt.Sprintf("%s.refused-%d", log, i)
	}
	if err := ignoreMissing(db.opts.files.Rename(log, kept)); err != nil {
		return fileError("move the log away", err)
	}
	// The library rebuilds the index from the log when it is missing.
	if err := ignoreMissing(db.opts.files.Remove(db.path() + indexSuffix)); err != nil {
		return fileError("remove the index of the log", err)
	}
	if err := db.opts.files.SyncDir(db.dir); err != nil {
		return syncError("sync directory", err)
	}
	f, err := os.OpenFile(db.path(), os.O_RDWR, 0)
	if err != nil {
		return fileError("open database", err)
	}
	defer f.Close()
	if _, err := f.WriteAt(mark{}.encode(), markOffset); err != nil {
		return fileError("write database", err)
	}
	return syncError("sync database", f.Sync())
}
