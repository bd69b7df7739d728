package workspace

import (
	"context"
	"time"

	"github.com/stet-dev/stet/blob"
)

// DefaultMaxFile is the size above which a file is not captured by default.
const DefaultMaxFile = 256 << 20

// Options configure a scan. The zero value, and nil, work.
type Options struct {
	// MaxFile is the size limit of captured files: DefaultMaxFile if 0, no limit if
	// negative.
	MaxFile int64
	// Touched lists paths, relative to the root, that are captured although an ignore
	// file excludes them; a directory is captured with everything in it. The index
	// remembers them for later scans.
	Touched []string
	// Written lists files, by path relative to the root, that are not read if they
	// are unchanged since the caller wrote them.
	Written map[string]Written
	// Full reads every file, regardless of stamps. Known content is not stored again.
	Full bool
	// Share selects files that are read regardless of stamps. A caller that passes the
	// next share to each scan has every file read from time to time, without a long scan.
	Share Share
	// Reread lists files, by path relative to the root, that are read regardless of
	// stamps.
	Reread map[string]bool
	// NoContents hashes files without passing their contents to the store: the tree can be
	// compared with others, but its files cannot be read. The result has no index.
	NoContents bool
	// Modes holds permission bits, by path relative to the root, for a file system that
	// stores none. Other files keep those that the previous tree has.
	Modes map[string]uint32
	// NoIgnore captures everything and disables ignore files. The index of such a
	// scan does not record which paths were touched.
	NoIgnore bool
	// Exclude lists patterns, in the form of lines of an ignore file, of paths that are not
	// captured, even if they are Touched or in the previous tree. They apply with NoIgnore,
	// too.
	Exclude []string
	// Secrets lists patterns of files that usually hold secrets, such as SecretFiles. They
	// are captured only if they are Touched or in the previous tree. A line "!name" of a
	// .stetignore file overrides a pattern.
	Secrets []string
	// Reveal lets Touched and the previous tree override Exclude, as they override ignore
	// files: a rewind must read what it replaces.
	Reveal bool
	// Force accepts a root that RootAllowed refuses.
	Force bool
	// Workers is the number of directories that are scanned in parallel. 0 means one
	// per processor, at least 2.
	Workers int
	// Progress is called from time to time, from one goroutine at a time, with the
	// counts so far, and never after the scan has returned.
	Progress func(Stats)
	// ProgressEvery is the time between two calls of Progress, 200 ms if 0.
	ProgressEvery time.Duration
}

// Stats count what a scan did.
type Stats struct {
	Dirs   int64 // directories examined
	Files  int64 // files and links examined
	Read   int64 // files that were read, because they are new or changed
	Bytes  int64 // bytes of content read
	Size   int64 // bytes of the files examined
	Stored int64 // blobs passed to the store
	Reread int64 // attempts discarded because the file changed
	Racy   int64 // files that may be being written; the next scan reads them again

	listed int64 // directories that had to be listed
}

// Result is the result of a scan.
type Result struct {
	// Tree names the captured tree. All its blobs are in the store, though not
	// flushed; with NoContents, only directories, links and lists of chunks are.
	Tree blob.ID
	// Index makes the next scan fast.
	Index *Index
	// NotCaptured lists, sorted by path, what was seen and not captured. ScanPaths
	// lists only what it saw at the given paths.
	NotCaptured []Skipped
	// NotKept counts the files with properties that the tree does not hold.
	NotKept NotKept
	// Base is the tree of the previous index, zero if there was no usable one. The
	// fields below compare with it.
	Base blob.ID
	// Changed lists, in the order of a walk, how Tree differs from Base. It is nil
	// without a base.
	Changed []Change
	// Added lists the blobs of Tree that Base does not have at the same place,
	// including directories and chunks. A commit that names Tree must refer to these
	// if Base is kept.
	Added []blob.ID
	// AddedFiles is the number of files and links that are new or changed since Base.
	AddedFiles int64
	Stats      Stats
}

// Scan captures the directory root. With the index of an earlier scan it reads only
// files whose stat data has changed or is unreliable; with a nil index, or one whose
// tree is not in the store, it reads everything.
//
// Files and directories that vanish meanwhile count as absent. An unreadable file
// does not fail the scan but is listed in NotCaptured; errors of the root directory,
// the store and the context do.
func Scan(ctx context.Context, store blob.Store, root string, prev *Index, opts *Options) (*Result, error) {
	return scan(ctx, store, root, prev, nil, opts)
}

// ScanPaths captures the given paths, relative to the root, and takes everything else
// from the previous index: its cost depends on the paths and the directories above
// them, not on the size of the tree. A path that no longer exists is removed from the
// tree. A directory is scanned with everything in it, and so is the directory of an
// ignore file. With a nil index it is a Scan.
//
// Ignore rules apply to the given paths; Options.Touched overrides them.
func ScanPaths(ctx context.Context, store blob.Store, root string, prev *Index, paths []string, opts *Options) (*Result, error) {
	if paths == nil {
		paths = []string{}
	}
	return scan(ctx, store, root, prev, paths, opts)
}
