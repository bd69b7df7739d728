package workspace

import (
	"time"

	"github.com/stet-dev/stet/blob"
)

// Written describes a file that the caller wrote itself, with content from the store.
// See Options.Written.
type Written struct {
	// ID, Chunked and Size are those of the file's entry.
	ID      blob.ID
	Chunked bool
	Size    int64
	// Inode and Mtime (in nanoseconds) are those of the file after the last write.
	// Mtime must have been in the past, by the clock that stamps files, before any
	// other process could reach the file: only then is every later write visible.
	Inode uint64
	Mtime int64
}

// is reports whether a file is still the one that was written.
func (k *Written) is(st fileStat) bool {
	return st.kind == isFile && st.ino == k.Inode && st.size == k.Size && st.mtime == k.Mtime
}

// written captures a file without reading it, if the caller wrote it. It waits as
// awaitStable does, so that the next scan can rely on the stat data.
func (w *worker) written(j *dirJob, i int, st fileStat, flags entryFlags) bool {
	if w.s.opts.Written == nil {
		return false
	}
	name := j.names[i].name
	k, ok := w.s.opts.Written[join(j.path, name)]
	if !ok {
		return false
	}
	for range stableTries {
		now := stampClock()
		switch {
		case !k.is(st) || st.ctime > now+clockSkew || st.ctime%int64(time.Millisecond) == 0:
			return false // a different file, or unreliable stamps
		case st.ctime < now:
			if k.Chunked {
				flags |= flagChunked
			}
			j.slots[i].found = true
			j.slots[i].e = newEntry(name, File, st, flags, k.ID)
			return true
		}
		time.Sleep(stablePause)
		var err error
		if st, err = j.fd.lstat(name); err != nil {
			return false
		}
		w.setMode(j, name, &st, nil) // the caller's modes have it
	}
	return false
}
