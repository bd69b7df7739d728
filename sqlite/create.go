package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/kv"
)

// findOrCreate makes sure that a database file exists.
func (db *DB) findOrCreate(ctx context.Context) error {
	switch info, err := os.Stat(db.dir); {
	case errors.Is(err, fs.ErrNotExist):
		if db.opts.MustExist || db.opts.ReadOnly {
			return ErrNoStore
		}
		if err := makeDurably(db.opts.files, db.dir); err != nil {
			return err
		}
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%w: it is a file, and a store is a directory", ErrForeign)
	}
	switch info, err := os.Lstat(db.path()); {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a regular file", ErrForeign, databaseName)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case db.opts.MustExist || db.opts.ReadOnly:
		return ErrNoStore
	}
	return db.create(ctx)
}

// makeDurably makes a directory and those above it, each with a durable name.
func makeDurably(f files, dir string) error {
	parent := filepath.Dir(dir)
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err := makeDurably(f, parent); err != nil {
			return err
		}
	}
	if err := f.MkdirAll(dir); err != nil {
		return fileError("make directory", err)
	}
	return fileError("sync directory", f.SyncDir(parent))
}

// create builds the database under another name and renames it once it is complete and
// durable, so a crash never leaves half a store. The lock keeps two creators apart.
func (db *DB) create(ctx context.Context) error {
	if err := db.refuseForeign(); errors.Is(err, ErrForeign) && !Exists(db.dir) {
		return err // before the lock, which leaves a file
	}
	lock := flock.New(filepath.Join(db.dir, lockName))
	defer lock.Close()
	if err := db.waitForLock(ctx, lock); err != nil {
		return err
	}
	if _, err := os.Lstat(db.path()); err == nil {
		// Another process was faster. The names that it made may not be durable yet.
		return db.syncNames()
	}
	if err := db.refuseForeign(); err != nil {
		return err
	}
	fresh := db.path() + newSuffix
	for _, leftover := range []string{fresh, fresh + "-journal", fresh + "-wal", fresh + "-shm"} {
		if err := ignoreMissing(db.opts.files.Remove(leftover)); err != nil {
			return fileError("remove leftover", err)
		}
	}
	id := newStoreID()
	if err := db.writeFresh(fresh, id); err != nil {
		return err
	}
	objects := filepath.Join(db.dir, objectsName)
	if err := db.opts.files.MkdirAll(objects); err != nil {
		return fileError("make directory", err)
	}
	if err := writeDurably(db.opts.files, filepath.Join(objects, storeFileName), []byte(id+"\n")); err != nil {
		return err
	}
	// The names above must be durable before the name of the database: a store whose
	// objects are missing counts as damaged.
	if err := db.opts.files.SyncDir(db.dir); err != nil {
		return fileError("sync directory", err)
	}
	if err := db.opts.files.Rename(fresh, db.path()); err != nil {
		return fileError("name the database", err)
	}
	return db.syncNames()
}

// syncNames makes the names of the database and of its directory durable.
func (db *DB) syncNames() error {
	if err := db.opts.files.SyncDir(db.dir); err != nil {
		return fileError("sync directory", err)
	}
	return fileError("sync parent directory", db.opts.files.SyncDir(filepath.Dir(db.dir)))
}

// waitForLock waits until the lock is free or another process has created the database:
// that process keeps the lock for as long as it uses the store. It does not wait forever,
// because a process that uses a store whose database was removed keeps it, too.
func (db *DB) waitForLock(ctx context.Context, lock *flock.Flock) error {
	limited, cancel := context.WithTimeout(ctx, db.opts.busyTimeout())
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		if locked, err := lock.TryLock(); err != nil || locked {
			return fileError("lock", err)
		}
		if _, err := os.Lstat(db.path()); err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%w: %s is missing, and another process uses the directory", kv.ErrBusy, databaseName)
		}
	}
}

func (db *DB) writeFresh(path, id string) error {
	c, err := openConn(path, db.disk, &db.opts, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE)
	if err != nil {
		return sqlError("create database", err)
	}
	_, err = c.pragma("auto_vacuum = INCREMENTAL") // for Shrink; works only on an empty file
	if err == nil {
		err = createSchema(c, id)
	}
	if err == nil {
		_, err = c.pragma("journal_mode = WAL")
	}
	if closeErr := c.close(); err == nil {
		err = closeErr
	}
	return sqlError("create database", err)
}

// refuseForeign refuses a directory that is used for other things, and the remains of a
// store whose database is gone.
func (db *DB) refuseForeign() error {
	entries, err := os.ReadDir(db.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if name == lockName || strings.HasPrefix(name, databaseName+newSuffix) {
			continue
		}
		if name == objectsName || strings.HasPrefix(name, databaseName) {
			if name == objectsName && onlyStoreFile(filepath.Join(db.dir, name)) {
				continue // an earlier creation ended before the database got its name
			}
			return fmt.Errorf("%w: %s is missing beside %s", ErrDamaged, databaseName, name)
		}
		return fmt.Errorf("%w: the directory holds %q", ErrForeign, name)
	}
	return nil
}
