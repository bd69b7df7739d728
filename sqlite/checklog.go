package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// markedVersion is the first format whose databases name their log.
const markedVersion = 2

// ErrWrongLog says that the log beside a database is not its own, or is gone. It is
// an ErrDamaged. Nothing was changed; Options.ForgetLog opens the database as it is.
var ErrWrongLog = fmt.Errorf("%w: database and log do not belong together", ErrDamaged)

// checkLog compares the log with the mark in the database, before the library may
// read either. Somebody alone with the store looks at every frame that the database
// may hold.
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
	// Others may begin or remove a log meanwhile. They change the mark before they let
	// the log differ from it, so that a mark which stays proves the difference.
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
	return nil // not to be told from a mark that a disk has torn
}

// judgeFile says what is wrong with the log at a path, if anything is.
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

// judge does so for a log that was opened, or is missing.
func (m mark) judge(f io.ReaderAt, name string, alone bool) (string, error) {
	used := !m.none() && !m.closed
	if f == nil {
		if used {
			return fmt.Sprintf("the log %s is missing, and with it the latest commits; put it back, or restore a backup", name), nil
		}
		return "", nil
	}
	log, ok, err := readLog(f)
	switch {
	case err != nil:
		return "", err
	case !ok && used && m.frames > 0:
		return fmt.Sprintf("the log %s was emptied or overwritten, and the latest commits are missing; put it back, or restore a backup", name), nil
	case !ok:
		return "", nil // power was lost before the first commit
	case log.salts == m.salts:
		return m.judgeFrames(log, name, alone)
	}
	// A header alone says nothing: it is written before the mark.
	committed, err := log.committed()
	if err != nil || !committed {
		return "", err
	}
	if used {
		return fmt.Sprintf("%s is the log of another store or of an earlier time, and the database's own is missing with the latest commits; put that in its place, or restore a backup", name), nil
	}
	return fmt.Sprintf("%s is the log of another store or of an earlier time, and the database needs none; move it away", name), nil
}

// judgeFrames looks whether the database's own log still has what it had when it was
// copied: one that was put back from earlier would undo what came later.
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
		return fmt.Sprintf("%s is of an earlier time, or damaged, and the database needs no log; move it away", name), nil
	}
	return fmt.Sprintf("%s is of an earlier time, or damaged: the database holds commits that came later; put the latest one in its place, or restore a backup", name), nil
}

// forgetLog makes a database stand for itself. A log stays, under another name. The
// caller is alone with the store.
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
	// The index of the log is made from it when it is missing.
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
