package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// Names of the files in a store's directory.
const (
	databaseName = "stet.db"
	lockName     = "stet.lock"
	objectsName  = "objects"
	newSuffix    = ".new" // a database that is being created
)

// minLibrary is the oldest SQLite that is known to keep WAL promises in all the
// cases that the tests cover.
const minLibrary = 3_051_003

// Options shape a store; nil means all defaults.
type Options struct {
	// MustExist refuses to create a store.
	MustExist bool
	// ReadOnly opens an existing store without ever writing to it.
	ReadOnly bool
	// BusyTimeout is how long to wait for another process; 15 s by default.
	BusyTimeout time.Duration
	// ObjectSize is the size from which blobs become files; 128 KiB by default.
	ObjectSize int
	// MaxPending bounds the bytes of blobs that are put and not yet durable; 8 MiB
	// by default. A Put beyond it waits.
	MaxPending int
	// Readers is the number of concurrent reading connections; 8 by default.
	Readers int
	// VFS names a registered file system for the database, for fault injection.
	VFS string

	files       files // for fault injection in tests
	shrinkPages int   // likewise; 0 means the default
}

// DB is an open store.
type DB struct {
	dir     string
	opts    Options
	id      string
	disk    *disk
	objects *objects
	readers *pool
	writer  *writer
	watch   *watchers
	lock    *flock.Flock
	closing sync.Once
	err     error // result of Close
}

// Open opens the store in dir, creating it in a missing or empty directory. It
// refuses, with an error that says why, a directory of something else, a damaged
// or truncated database, and a newer format; it never puts a fresh store in the
// place of one that it cannot read.
func Open(ctx context.Context, dir string, opts *Options) (*DB, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db := &DB{dir: dir}
	if opts != nil {
		db.opts = *opts
	}
	db.fillDefaults()
	if err := db.open(ctx); err != nil {
		db.release()
		if db.disk != nil {
			err = db.disk.explain("use the disk", err)
		}
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	return db, nil
}

func (db *DB) fillDefaults() {
	o := &db.opts
	if o.ObjectSize <= 0 {
		o.ObjectSize = 128 << 10
	}
	if o.MaxPending <= 0 {
		o.MaxPending = 8 << 20
	}
	if o.Readers <= 0 {
		o.Readers = 8
	}
	if o.files == nil {
		o.files = osFiles{}
	}
}

func (db *DB) path() string { return filepath.Join(db.dir, databaseName) }

func (db *DB) open(ctx context.Context) error {
	var err error
	if db.disk, err = newDisk(db.opts.VFS); err != nil {
		return err
	}
	if err := db.findOrCreate(ctx); err != nil {
		return err
	}
	if err := checkHeader(db.path()); err != nil {
		return err
	}
	write, err := db.openWriter()
	if err != nil {
		return err
	}
	db.readers = newPool(db.opts.Readers, db.openReader)
	db.watch = newWatchers()
	db.objects = newObjects(filepath.Join(db.dir, objectsName), db.opts.files)
	db.writer = newWriter(db, write)
	if !db.opts.ReadOnly {
		if err := db.shareLock(); err != nil {
			return err
		}
	}
	go db.writer.run()
	return nil
}

// findOrCreate makes sure that there is a database file to open.
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
		return fmt.Errorf("%w: it is a file, a store is a directory", ErrForeign)
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

// create makes the database under another name and renames it when it is
// complete and durable, so that a crash never leaves half a store. The lock
// keeps two creators apart.
func (db *DB) create(ctx context.Context) error {
	lock := flock.New(filepath.Join(db.dir, lockName))
	defer lock.Close()
	if err := db.waitForLock(ctx, lock); err != nil {
		return err
	}
	if _, err := os.Lstat(db.path()); err == nil {
		return nil // somebody else was faster
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
	// The names above must be durable before the database gets its own: a store
	// whose objects are missing counts as damaged.
	if err := db.opts.files.SyncDir(db.dir); err != nil {
		return fileError("sync directory", err)
	}
	if err := db.opts.files.Rename(fresh, db.path()); err != nil {
		return fileError("name the database", err)
	}
	if err := db.opts.files.SyncDir(db.dir); err != nil {
		return fileError("sync directory", err)
	}
	return fileError("sync parent directory", db.opts.files.SyncDir(filepath.Dir(db.dir)))
}

// waitForLock does not wait for ever: who uses a store whose database was removed
// keeps the lock for as long as that takes.
func (db *DB) waitForLock(ctx context.Context, lock *flock.Flock) error {
	limited, cancel := context.WithTimeout(ctx, db.opts.busyTimeout())
	defer cancel()
	_, err := lock.TryLockContext(limited, 5*time.Millisecond)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: there is no %s, and another process uses what is here", kv.ErrBusy, databaseName)
	}
	return fileError("lock", err)
}

func (db *DB) writeFresh(path, id string) error {
	c, err := openConn(path, db.disk, &db.opts, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE)
	if err != nil {
		return sqlError("create database", err)
	}
	_, err = c.pragma("auto_vacuum = INCREMENTAL") // for Shrink; can only be said to an empty file
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

// refuseForeign keeps a store out of a directory that is used for other things,
// and away from the remains of a store whose database is gone.
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

// checkHeader reads the first page by hand, before the SQL library may touch
// the file: what is not ours, or newer than us, stays as it is.
func checkHeader(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fileError("open database", err)
	}
	defer f.Close()
	var h [100]byte
	if _, err := io.ReadFull(f, h[:]); err != nil {
		return fmt.Errorf("%w: database is truncated to less than its header", ErrDamaged)
	}
	if string(h[:16]) != "SQLite format 3\x00" {
		return fmt.Errorf("%w: %s is not a database", ErrDamaged, databaseName)
	}
	if id := binary.BigEndian.Uint32(h[68:]); id != applicationID {
		return fmt.Errorf("%w: the database belongs to application %#x", ErrForeign, id)
	}
	if v := binary.BigEndian.Uint32(h[60:]); v > FormatVersion {
		return fmt.Errorf("%w: version %d, this release knows up to %d", ErrNewerFormat, v, FormatVersion)
	}
	return checkLength(f, h[:])
}

// checkLength finds a database that lost its end. While a WAL exists, pages may
// live there only, and the library decides.
func checkLength(f *os.File, h []byte) error {
	if info, err := os.Stat(f.Name() + "-wal"); err == nil && info.Size() > 0 {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	pageSize := int64(binary.BigEndian.Uint16(h[16:]))
	if pageSize == 1 {
		pageSize = 65536
	}
	pages := int64(binary.BigEndian.Uint32(h[28:]))
	if pages*pageSize > info.Size() {
		return fmt.Errorf("%w: database has %d bytes, its header says %d", ErrDamaged, info.Size(), pages*pageSize)
	}
	return nil
}

// writerCache holds the index of about 300,000 blobs. The names are spread all over
// it, so that with a smaller cache every insert reads pages from the file. Pages of
// the one who writes stay valid from transaction to transaction.
const writerCache = "cache_size = -16384"

// openWriter opens the one writing connection and makes sure that the promises
// of WAL with full sync hold here.
func (db *DB) openWriter() (*conn, error) {
	flags := sqlite3.OPEN_READWRITE
	if db.opts.ReadOnly {
		flags = sqlite3.OPEN_READONLY
	}
	c, err := openConn(db.path(), db.disk, &db.opts, flags)
	if err != nil {
		return nil, sqlError("open database", err)
	}
	if err := db.prepareWriter(c); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (db *DB) prepareWriter(c *conn) error {
	if err := checkLibrary(c); err != nil {
		return err
	}
	if !db.opts.ReadOnly {
		mode, err := c.pragma("journal_mode = WAL")
		if err != nil {
			return sqlError("engage the write-ahead log", err)
		}
		if mode != "wal" {
			return fmt.Errorf("%w: the write-ahead log does not engage on this file system (journal mode %q)", ErrUnsupported, mode)
		}
		if ro, _ := c.ReadOnly("main"); ro {
			return fmt.Errorf("%w: the database file cannot be written", blob.ErrReadOnly)
		}
	}
	if _, err := c.pragma(writerCache); err != nil {
		return sqlError("set the size of the page cache", err)
	}
	if sync, err := c.pragma("synchronous"); err != nil || sync != "2" {
		return fmt.Errorf("%w: synchronous is %q (%v)", ErrUnsupported, sync, err)
	}
	if err := c.query(`SELECT value FROM meta WHERE key = 'store'`, func(s *sqlite3.Stmt) error {
		db.id = s.ColumnText(0)
		return nil
	}); err != nil {
		return sqlError("read store id", err)
	}
	if db.id == "" {
		return fmt.Errorf("%w: the database has no store id", ErrDamaged)
	}
	if err := checkStoreFile(filepath.Join(db.dir, objectsName), db.id); err != nil {
		return err
	}
	if db.opts.ReadOnly {
		return nil
	}
	// The read above created the log file. The library means to sync its directory
	// entry with the first commit but syncs the log itself a second time, so that a
	// power loss could take a fresh log with everything in it: sync it here.
	return fileError("sync directory", db.opts.files.SyncDir(db.dir))
}

func checkLibrary(c *conn) error {
	var number int64
	err := c.query(`SELECT sqlite_version()`, func(s *sqlite3.Stmt) error {
		var major, minor, patch int64
		if _, err := fmt.Sscanf(s.ColumnText(0), "%d.%d.%d", &major, &minor, &patch); err != nil {
			return err
		}
		number = major*1_000_000 + minor*1_000 + patch
		return nil
	})
	if err != nil {
		return sqlError("ask for the library version", err)
	}
	if number < minLibrary {
		return fmt.Errorf("%w: SQLite library %d is older than %d", ErrUnsupported, number, minLibrary)
	}
	return nil
}

func (db *DB) openReader() (*conn, error) {
	c, err := openConn(db.path(), db.disk, &db.opts, sqlite3.OPEN_READONLY)
	if err != nil {
		return nil, err
	}
	return c, c.Exec(`PRAGMA query_only = ON`)
}

// shareLock marks the store as in use. Whoever finds that nobody else uses it
// may sweep what killed processes left.
func (db *DB) shareLock() error {
	db.lock = flock.New(filepath.Join(db.dir, lockName))
	alone, err := db.lock.TryLock()
	if err != nil {
		return fileError("lock", err)
	}
	if alone {
		if err := db.sweepOrphans(); err != nil {
			return err
		}
		if err := db.lock.Unlock(); err != nil {
			return fileError("unlock", err)
		}
	}
	return fileError("lock", db.lock.RLock())
}

// ID returns the random name that the store got when it was created.
func (db *DB) ID() string { return db.id }

// Dir returns the directory of the store.
func (db *DB) Dir() string { return db.dir }

// Close makes everything that was put durable and releases the store. Its error
// tells what did not become durable.
func (db *DB) Close() error {
	db.closing.Do(func() {
		db.err = db.writer.stop()
		db.watch.close()
		db.release()
	})
	return db.err
}

// release frees what open acquired, also after it failed half-way.
func (db *DB) release() {
	if db.readers != nil {
		db.readers.close()
	}
	if db.writer != nil {
		db.writer.conn.close()
	}
	if db.lock != nil {
		db.lock.Close()
	}
	if db.disk != nil {
		db.disk.release()
	}
}
