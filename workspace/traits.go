package workspace

import (
	"crypto/rand"
	"fmt"
	"sync"

	"github.com/stet-dev/stet/internal/swapdir"
)

// Traits describes what the file system of a directory can do. Whatever it cannot do is
// lost in a rewind, or must be reported before one.
type Traits = swapdir.Traits

// probed caches the traits of probed directories, by path and file system.
var probed sync.Map

// TraitsOf returns the traits of the file system that a directory is on. Those of common
// file systems are known. Others are probed once in a process, as Probe does; if that
// fails, as in a directory that is not writable, TraitsOf returns the traits that are
// usual on the system.
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

// Probe finds out what the file system of a directory can do. It makes a few files in a
// directory whose name begins with StagePrefix, and removes them.
func Probe(dir string) (Traits, error) {
	t, err := swapdir.Probe(dir, ProbeName())
	if err != nil {
		return Traits{}, fmt.Errorf("try out the file system of %s: %w", dir, err)
	}
	return t, nil
}

// ProbeName returns a unique name for a directory in which a file system is probed. Scans
// skip it.
func ProbeName() string { return StagePrefix + "probe-" + rand.Text() }

// hasModes reports whether permission bits are stored at a directory.
func hasModes(dir string) bool {
	if modes, known := knownModes(dir); known {
		return modes
	}
	return TraitsOf(dir).Modes
}
