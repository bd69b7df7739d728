package workspace

import (
	"context"
	"time"

	"github.com/stet-dev/stet/blob"
)

// DefaultMaxFile is the size above which a file is not captured, unless Options
// say otherwise.
const DefaultMaxFile = 256 << 20

// Options say how to scan. The zero value, and nil, work.
type Options struct {
	// MaxFile is the size of the largest file that is captured, DefaultMaxFile if
	// 0, without limit if negative.
	MaxFile int64
	// Touched lists paths, relative to the root, that are captured although an
	// ignore file excludes them; a directory is captured with all it holds. The
	// index remembers them for later scans.
	Touched []string
	// Written lists files, by path relative to the root, that need not be read if
	// they are still as the caller left them.
	Written map[string]Written
	// Full reads every file, whatever its stamps say. What the index has already is
	// not stored again.
	Full bool
	// Share is read whatever its stamps say. A caller that gives each scan the next
	// share has every file read now and then, without a scan that takes long.
	Share Share
	// Reread lists files, by path relative to the root, that are read whatever their
	// stamps say.
	Reread map[string]bool
	// NoIgnore captures everything: no ignore file is obeyed. The index of such a
	// scan does not know which paths were touched.
	NoIgnore bool
	// Force accepts a root that RootAllowed refuses.
	Force bool
	// Workers is the number of directories that are looked at side by side. 0
	// means one per processor, at least 2.
	Workers int
	// Progress is called now and then, from one goroutine at a time, with what has
	// been done so far, and never after the scan returned.
	Progress func(Stats)
	// ProgressEvery is the time between two calls of Progress, 200 ms if 0.
	ProgressEvery time.Duration
}

// Stats count what a scan did.
type Stats struct {
	Dirs   int64 // directories looked at
	Files  int64 // files and links looked at
	Read   int64 // files that were read, because they are new or changed
	Bytes  int64 // bytes of content read
	Size   int64 // bytes of the files looked at
	Stored int64 // blobs given to the store
	Reread int64 // attempts that were thrown away since the file was changing
	Racy   int64 // files read that somebody may be writing to, to be read again by the next scan

	listed int64 // directories whose names were not known from the index
}

// Result is what a scan found.
type Result struct {
	// Tree names the captured tree. All its blobs are in the store, though not
	// flushed.
	Tree blob.ID
	// Index makes the next scan fast.
	Index *Index
	// NotCaptured lists, sorted by path, what was seen and left out. ScanPaths
	// lists what it saw at the given paths only.
	NotCaptured []Skipped
	// Base is the tree of the previous index, zero if there was none of use. What
	// follows compares with it.
	Base blob.ID
	// Changed lists, in the order of a walk, how Tree differs from Base. It is nil
	// without one.
	Changed []Change
	// Added lists the blobs of Tree that Base does not have at the same place, those
	// of directories and chunks too. A commit that names Tree and knows that Base is
	// kept refers to these.
	Added []blob.ID
	// AddedFiles is the number of files and links that Base does not have as they are.
	AddedFiles int64
	Stats      Stats
}

// Scan captures the directory root. With the index of an earlier scan it reads
// only files whose stat data changed since, or proves nothing; with a nil index, or one whose tree
// the store does not have, it reads everything.
//
// Files and directories that vanish meanwhile are treated as absent. A file that
// cannot be read does not fail the scan, it is listed in NotCaptured; errors of
// the root directory, the store and the context do.
func Scan(ctx context.Context, store blob.Store, root string, prev *Index, opts *Options) (*Result, error) {
	return scan(ctx, store, root, prev, nil, opts)
}

// ScanPaths captures what is at the given paths, relative to the root, and takes
// everything else from the previous index: its cost follows the paths and the
// directories above them, not the size of the tree. A path that no longer exists
// is removed from the tree, a directory is looked at with all it holds, and so
// is the directory of an ignore file. A nil index makes it a Scan.
//
// Being named does not exempt a path from the ignore rules; Options.Touched does.
func ScanPaths(ctx context.Context, store blob.Store, root string, prev *Index, paths []string, opts *Options) (*Result, error) {
	if paths == nil {
		paths = []string{}
	}
	return scan(ctx, store, root, prev, paths, opts)
}
