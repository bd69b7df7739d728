package workspace

import (
	"context"
	"sync/atomic"

	"github.com/stet-dev/stet/blob"
)

// Index remembers what a scan saw: for every directory its node, for every entry the
// stat data and the content, so that the next scan reads only what has changed.
//
// An Index is immutable: scans make new ones, which share unchanged parts with the
// old. It is loaded directory by directory on demand, from its file or from the nodes
// of its tree. It is safe for concurrent use.
//
// An index is useful only while its tree is in the store. Save it after the commit that
// names the tree, and drop it with the tree; Scan checks that the root node exists and
// otherwise starts over.
type Index struct {
	root *dirRef
	era  era // of the stamps of its directories
}

// NewIndex returns an index of a stored tree without stat data: a scan reads every
// file it examines. It is for ScanPaths after the saved index was lost; the cost
// depends on the given paths.
func NewIndex(tree blob.ID) *Index { return &Index{root: &dirRef{node: tree}} }

// Tree returns the tree that the index describes.
func (x *Index) Tree() blob.ID { return x.root.node }

// dirRef refers to a directory of an index that may not be loaded yet.
type dirRef struct {
	node blob.ID
	at   atomic.Pointer[location] // place of the record, or nil
	rec  atomic.Pointer[indexDir] // the record, once loaded
}

func newRef(d *indexDir) *dirRef {
	r := &dirRef{node: d.node}
	r.rec.Store(d)
	return r
}

// indexDir is one directory of an index. It never changes once it is reachable from
// an Index.
type indexDir struct {
	node    blob.ID
	rules   ruleSum  // the ignore rules applied to entries
	listed  dirStamp // stamp of the directory when entries were all its names except skipped ones
	entries []indexEntry
	subs    []*dirRef // subdirectories, by indexEntry.sub
}

// indexEntry is an Entry with the stat data that it was read under.
type indexEntry struct {
	name  string
	kind  Kind // of an ignored entry: Dir, or File for anything else
	flags entryFlags
	mode  uint32
	size  int64
	mtime int64 // nanoseconds
	ctime int64
	ino   uint64
	id    blob.ID
	sub   int32 // place in subs, or -1
}

type entryFlags uint8

const (
	// flagIgnored: an ignore rule matches. Alone it means that the entry is not
	// captured, because of the rule or because it is git's; only its name and kind are
	// kept.
	flagIgnored entryFlags = 1 << iota
	// flagTouched: captured although ignored, because an agent touched it or the tree
	// had it before the rule. It outlives the rule.
	flagTouched
	// flagPartial: an ignored directory of which only touched entries are captured.
	// It outlives the rule and has no effect until the rule is back.
	flagPartial
	// flagChunked: the content is a chunk list.
	flagChunked
	// flagUnsure: the stat data proves nothing; the next scan reads the entry.
	flagUnsure
	// flagBare: known only from the tree's node, without stat data; whether a rule
	// ignored the entry is unknown.
	flagBare
)

// partial reports whether a directory is ignored except for touched entries.
func (f entryFlags) partial() bool { return f&flagIgnored != 0 && f&flagPartial != 0 }

// captured reports whether the entry is part of the tree.
func (e *indexEntry) captured() bool {
	return e.flags&flagIgnored == 0 || e.flags&(flagTouched|flagPartial) != 0
}

func (e *indexEntry) entry() Entry {
	return Entry{Name: e.name, Kind: e.kind, Mode: e.mode, Size: e.size, ID: e.id, Chunked: e.flags&flagChunked != 0}
}

// find returns the index of a name among the entries.
func (d *indexDir) find(name string) (int, bool) {
	lo, hi := 0, len(d.entries)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if d.entries[mid].name < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(d.entries) && d.entries[lo].name == name
}

// load returns the directory from memory, from the index file or, if that fails, from
// the node in the store.
func (r *dirRef) load(ctx context.Context, store blob.Store) (*indexDir, error) {
	if d := r.rec.Load(); d != nil {
		return d, nil
	}
	if at := r.at.Load(); at != nil {
		if d := at.dir(r.node); d != nil {
			r.rec.Store(d)
			return d, nil
		}
	}
	entries, err := Load(ctx, store, r.node)
	if err != nil {
		return nil, err
	}
	d := dirOfNode(r.node, entries)
	r.rec.Store(d)
	return d, nil
}

// loadInto is load without caching: a directory that is not in memory is read into
// scratch, if its whole file is in memory, and scratch is returned.
func (r *dirRef) loadInto(ctx context.Context, store blob.Store, scratch *indexDir) (*indexDir, error) {
	at := r.at.Load()
	if r.rec.Load() == nil && at != nil && at.src.start.Load() != nil && at.readInto(scratch, r.node) {
		return scratch, nil
	}
	return r.load(ctx, store)
}

// readWhole prepares loading everything below, unless it is in memory.
func (r *dirRef) readWhole() {
	if at := r.at.Load(); at != nil && r.rec.Load() == nil {
		at.src.readWhole()
	}
}

// dirOfNode makes an index directory without stat data from a node.
func dirOfNode(node blob.ID, entries []Entry) *indexDir {
	d := &indexDir{node: node, entries: make([]indexEntry, len(entries))}
	for i, e := range entries {
		x := indexEntry{name: e.Name, kind: e.Kind, mode: e.Mode, size: e.Size, id: e.ID, flags: flagUnsure | flagBare, sub: -1}
		if e.Chunked {
			x.flags |= flagChunked
		}
		if e.Kind == Dir {
			x.sub = int32(len(d.subs))
			d.subs = append(d.subs, &dirRef{node: e.ID})
		}
		d.entries[i] = x
	}
	return d
}
