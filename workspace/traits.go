package workspace

import (
	"crypto/rand"
	"fmt"
	"sync"

	"github.com/stet-dev/stet/internal/swapdir"
)

// Traits is what the file system of a directory can do. What it cannot do is lost in a
// rewind, or must be said before one.
type Traits = swapdir.Traits

// probed has the traits of directories that were tried out, by path and file system.
var probed sync.Map

// TraitsOf returns the traits of the file system that a directory is on. Those of common
// file systems are known. Others are tried out once in a process, as Probe does; where
// that fails, as in a directory that cannot be written to, the traits are those that the
// system usually has.
func TraitsOf(dir string) Traits {
	t, known := knownTraits(dir)
	if known {
		return t
	}
	key := dir + "\x00" + volumeOf(dir)
	if found, ok := probed.Load(key); ok {
		return found.(Traits)
	}
	if found, err := Probe(dir); err == nil {
		probed.Store(key, found)
		return found
	}
	return t
}

// Probe tries out what the file system of a directory can do. It makes a few files in a
// directory whose name begins with StagePrefix, and removes them.
func Probe(dir string) (Traits, error) {
	t, err := swapdir.Probe(dir, ProbeName())
	if err != nil {
		return Traits{}, fmt.Errorf("try out the file system of %s: %w", dir, err)
	}
	return t, nil
}

// ProbeName returns a name for a directory in which a file system is tried out. Nobody
// else uses it, and scans skip it.
func ProbeName() string { return StagePrefix + "probe-" + rand.Text() }

// hasModes reports whether permission bits are stored at a directory.
func hasModes(dir string) bool {
	if modes, known := knownModes(dir); known {
		return modes
	}
	return TraitsOf(dir).Modes
}
