package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// minLibrary is the oldest SQLite that keeps the promises of WAL in all cases that the
// tests cover.
const minLibrary = 3_051_003

// Options configure a store; nil means all defaults.
type Options struct {
	// MustExist refuses to create a store.
	MustExist bool
	// ReadOnly opens an existing store without ever writing to it.
	ReadOnly bool
	// ReadIfFull opens an existing store for reading if its disk has no room to open it
	// for writing. Writes then fail with both blob.ErrReadOnly and blob.ErrFull until the
	// store is opened again. It is not for processes that run for long and want to write.
	ReadIfFull bool
	// Scratch is how many bytes of blobs a read-only store takes into memory, so that
	// callers can compare stored content with new content. Beyond it Put fails with
	// blob.ErrReadOnly; Flush and Commit always do. 0 takes none.
	Scratch int
	// ForgetLog opens a database that failed with ErrWrongLog without its log, and
	// loses the commits that are only there. An existing log is kept under another
	// name.
	ForgetLog bool
	// BusyTimeout is how long to wait for another process; 15 s by default.
	BusyTimeout time.Duration
	// ObjectSize is the size from which blobs become files; 128 KiB by default.
	ObjectSize int
	// MaxPending limits the bytes of blobs that are not yet durable; 8 MiB by default.
	// A Put beyond it waits.
	MaxPending int
	// PageCache is how many bytes of the database the writing connection caches; 4 MiB by
	// default, which holds the index of about 75,000 blobs. Ids are spread all over the
	// index, so inserts into a larger store read pages from the file, which the system has
	// in memory. A larger cache costs more than it saves: the library visits each of its
	// pages after a transaction that has split one.
	PageCache int
	// Readers is the number of concurrent reading connections; 8 by default.
	Readers int
	// VFS names a registered file system for the database, for fault injection.
	VFS string

	files       files // for fault injection in tests
	shrinkPages int   // likewise; 0 means the default
	full        bool  // set by Open: the disk has no room
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

// Exists reports whether dir has the database of a store, readable or not.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, databaseName))
	return err == nil
}

// Open opens the store in dir, or creates it in a missing or empty directory. It rejects
// a directory of something else, a damaged or truncated database, and a newer format,
// with an error that says why; it never replaces a store that it cannot read. A store
// without write access, for example on read-only media, is opened as with
// Options.ReadOnly.
func Open(ctx context.Context, dir string, opts *Options) (*DB, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	db, err := openWith(ctx, dir, o)
	full := o.ReadIfFull && errors.Is(err, blob.ErrFull)
	if (full || errors.Is(err, blob.ErrReadOnly)) && !o.ReadOnly {
		o.ReadOnly, o.full = true, full
		if readable, readErr := openWith(ctx, dir, o); readErr == nil {
			return readable, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	return db, nil
}

func openWith(ctx context.Context, dir string, opts Options) (*DB, error) {
	db := &DB{dir: dir, opts: opts}
	db.fillDefaults()
	if err := db.open(ctx); err != nil {
		db.release()
		if db.disk != nil {
			err = db.disk.explain("use the disk", err)
		}
		return nil, err
	}
	return db, nil
}

func (db *DB) fillDefaults() {
	o := &db.opts
	if o.ObjectSize <= 0 {
		o.ObjectSize = 128 << 10
	}
	if o.PageCache <= 0 {
		o.PageCache = 4 << 20
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
	alone, err := db.tryLock()
	if err != nil {
		return err
	}
	if err := db.checkLog(alone); err != nil {
		return err
	}
	if db.opts.ReadOnly {
		db.disk.readOnly, db.disk.frozen = true, db.isFrozen()
	}
	write, err := db.openWriter()
	if err != nil {
		return err
	}
	db.readers = newPool(db.opts.Readers, db.openReader)
	if db.disk.frozen {
		db.readers.stamp = db.stamp
	}
	db.watch = newWatchers()
	db.objects = newObjects(filepath.Join(db.dir, objectsName), db.opts.files)
	db.writer = newWriter(db, write)
	if err := db.shareLock(alone); err != nil {
		return err
	}
	if !db.opts.ReadOnly {
		db.narrow()
	}
	go db.writer.run()
	return nil
}

// openWriter opens the one writing connection and checks that WAL with full sync works
// here.
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

// spillSize is how many bytes of changed pages wait in memory for the end of their
// transaction.
const spillSize = 16 << 20

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
			return fmt.Errorf("%w: this file system does not support the write-ahead log (journal mode %q)", ErrUnsupported, mode)
		}
		if ro, _ := c.ReadOnly("main"); ro {
			return fmt.Errorf("%w: the database file cannot be written", blob.ErrReadOnly)
		}
	}
	if _, err := c.pragma(fmt.Sprintf("cache_size = -%d", db.opts.PageCache>>10)); err != nil {
		return sqlError("set the size of the page cache", err)
	}
	// A large transaction would write its pages to the log early, and again when they change.
	if _, err := c.pragma(fmt.Sprintf("cache_spill = -%d", max(db.opts.PageCache, spillSize)>>10)); err != nil {
		return sqlError("set the size of a transaction in memory", err)
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
	// entry with the first commit but syncs the log itself a second time, so a power
	// loss could remove a new log with everything in it: sync the directory here.
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

// tryLock reports whether no other process has the store open for writing.
func (db *DB) tryLock() (alone bool, err error) {
	if db.opts.ReadOnly {
		return false, nil
	}
	db.lock = flock.New(filepath.Join(db.dir, lockName))
	alone, err = db.lock.TryLock()
	return alone, fileError("lock", err)
}

// checkLog rejects a log that is not the database's own.
func (db *DB) checkLog(alone bool) error {
	err := checkLog(db.path(), alone)
	if !db.opts.ForgetLog || !errors.Is(err, ErrWrongLog) {
		return err
	}
	if !alone {
		return fmt.Errorf("%w: another process uses the store: %w", kv.ErrBusy, err)
	}
	return db.forgetLog()
}

// shareLock marks the store as in use. A process alone with the store may remove what
// killed processes left and change the format.
func (db *DB) shareLock(alone bool) error {
	if db.opts.ReadOnly {
		return nil
	}
	if alone {
		if err := db.upgrade(); err != nil {
			return err
		}
		if err := db.sweepOrphans(); err != nil {
			return err
		}
		if err := db.lock.Unlock(); err != nil {
			return fileError("unlock", err)
		}
	}
	return fileError("lock", db.lock.RLock())
}

// upgrade converts a store of an earlier format: from now on the database names its log.
// A process of an earlier release would not maintain that; none is using the store now,
// and none can open it afterwards.
func (db *DB) upgrade() error {
	version, err := db.writer.conn.pragma("user_version")
	if err != nil || version != "1" {
		return sqlError("read the format", err)
	}
	return db.writer.transact(func(c *conn) error {
		_, err := c.pragma(fmt.Sprintf("user_version = %d", FormatVersion))
		return sqlError("change the format", err)
	})
}

// ID returns the random name that the store got at its creation.
func (db *DB) ID() string { return db.id }

// ReadOnly reports whether the store is open for reading only, by choice or for lack of
// write access or room.
func (db *DB) ReadOnly() bool { return db.opts.ReadOnly }

// Refusal returns the error of writes to a store that is open for reading only, or nil.
func (db *DB) Refusal() error {
	switch {
	case db.opts.full:
		return fmt.Errorf("%w: %w", blob.ErrReadOnly, blob.ErrFull)
	case db.opts.ReadOnly:
		return blob.ErrReadOnly
	}
	return nil
}

// Dir returns the directory of the store.
func (db *DB) Dir() string { return db.dir }

// Close makes all pending data durable and releases the store. Its error reports what did
// not become durable.
func (db *DB) Close() error {
	db.closing.Do(func() {
		db.err = db.writer.stop()
		db.watch.close()
		db.release()
	})
	return db.err
}

// release frees what open acquired, even after a failure.
func (db *DB) release() {
	if db.readers != nil {
		db.readers.close()
	}
	if db.writer != nil {
		db.writer.turn.Lock()
		db.writer.closed = true
		db.writer.conn.close()
		db.writer.turn.Unlock()
	}
	if db.lock != nil {
		db.lock.Close()
	}
	if db.disk != nil {
		db.disk.release()
	}
}
