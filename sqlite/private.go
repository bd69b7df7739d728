package sqlite

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Only its owner can read a store, whatever the umask. The library creates files that
// others may read, and a copied store may have other permissions.
const (
	privateFile = fs.FileMode(0o600)
	privateDir  = fs.FileMode(0o700)
)

// narrow removes the permissions of others on a file or directory. It ignores errors:
// the caller may not own the file, and some file systems have no permissions.
func narrow(path string, to fs.FileMode) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type()&^fs.ModeDir == 0 && info.Mode().Perm()&^to != 0 {
		_ = os.Chmod(path, info.Mode().Perm()&to)
	}
}

// narrow removes the permissions of others on all files of a store except the objects,
// which are created private and cannot be reached from outside.
func (db *DB) narrow() {
	objects := filepath.Join(db.dir, objectsName)
	for _, dir := range []string{db.dir, objects} {
		narrow(dir, privateDir)
	}
	for _, file := range []string{db.path(), db.path() + logSuffix, db.path() + indexSuffix, filepath.Join(db.dir, lockName), filepath.Join(objects, storeFileName)} {
		narrow(file, privateFile)
	}
}
