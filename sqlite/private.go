package sqlite

import (
	"io/fs"
	"os"
	"path/filepath"
)

// A store is its owner's alone, whatever the umask: the library makes files that
// others may read, and a copy of a store may have come with other permissions.
const (
	privateFile = fs.FileMode(0o600)
	privateDir  = fs.FileMode(0o700)
)

// narrow takes from others what they may do with a file or directory. Who does not
// own it cannot, and some file systems have no permissions; that is no reason not
// to use the store.
func narrow(path string, to fs.FileMode) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type()&^fs.ModeDir == 0 && info.Mode().Perm()&^to != 0 {
		_ = os.Chmod(path, info.Mode().Perm()&to)
	}
}

// narrow does so for all that a store consists of but the objects, which are made
// that way and cannot be reached from outside.
func (db *DB) narrow() {
	objects := filepath.Join(db.dir, objectsName)
	for _, dir := range []string{db.dir, objects} {
		narrow(dir, privateDir)
	}
	for _, file := range []string{db.path(), db.path() + logSuffix, db.path() + indexSuffix, filepath.Join(db.dir, lockName), filepath.Join(objects, storeFileName)} {
		narrow(file, privateFile)
	}
}
