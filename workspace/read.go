package workspace

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
)

const (
	// readAttempts is how often a changing file is read before the scan skips it.
	readAttempts = 6
	// stableTries and stablePause limit the wait for a file that is being written,
	// about 60 ms in all.
	stableTries = 200
	stablePause = 300 * time.Microsecond
	// clockSkew is how far in the future a time stamp may be before file system and
	// machine count as having different clocks.
	clockSkew = int64(time.Second)
	// coarseStamps is the resolution of the coarsest time stamps in use (FAT).
	coarseStamps = 2 * int64(time.Second)
)

var errChanging = fault.New(fault.Stale, "file kept changing while it was read")

// awaitStable waits until the file's last change is older than the clock that stamps
// changes. Only then is every later change visible: two writes within one tick of
// that clock, some milliseconds, get the same stamp. It returns the stat data for the
// read. weak means that stamps are unreliable here. began is an earlier time, which
// is enough for most files and saves reading the clock.
func awaitStable(f *openedFile, began int64, clock func() int64) (st fileStat, weak bool, err error) {
	var first int64
	for try := range stableTries {
		if st, err = f.stat(); err != nil {
			return st, false, err
		}
		if st.ctime < began-coarseStamps {
			return st, false, nil
		}
		if try == 0 {
			first = st.ctime
		}
		now := clock()
		switch {
		case st.ctime > now+clockSkew:
			return st, true, nil // a different clock: waiting would not help
		case st.ctime%int64(time.Millisecond) == 0 && st.ctime > now-coarseStamps:
			return st, true, nil
		case st.ctime < now:
			return st, false, nil
		}
		time.Sleep(stablePause)
	}
	// The file is unchanged, but its last change is in the future: the clock was set
	// back a little, or the file system has its own clock, which is ahead.
	if st.ctime == first {
		return st, true, nil
	}
	return st, false, errChanging
}

// sameContent reports whether a file was not written between two stat calls.
func sameContent(a, b fileStat) bool {
	return a.size == b.size && a.mtime == b.mtime && a.ctime == b.ctime && a.ino == b.ino
}

// stored is the content of a file as a scan keeps it.
type stored struct {
	st    fileStat
	id    blob.ID
	flags entryFlags

	attributes bool // it has extended attributes
}

// readFile reads and stores a file. prev is its index entry, or nil. It returns
// errChanging if the file changed during every attempt.
func (w *worker) readFile(d dirFD, name string, prev *indexEntry) (stored, error) {
	for range readAttempts {
		got, err := w.readOnce(d, name, prev)
		if !errors.Is(err, errChanging) {
			return got, err
		}
		w.stats.Reread++
		if err := w.s.ctx.Err(); err != nil {
			return stored{}, err
		}
	}
	return stored{}, errChanging
}

func (w *worker) readOnce(d dirFD, name string, prev *indexEntry) (stored, error) {
	f, err := d.openFile(name)
	if err != nil {
		return stored{}, err
	}
	defer f.close()
	st, weak, err := awaitStable(f, w.s.trust.began, stampClock)
	if err != nil {
		return stored{}, err
	}
	if st.kind != isFile || st.size > w.s.maxFile {
		return stored{st: st}, errNotReadable
	}
	r := reading{w: w, f: f, st: st, weak: weak, prev: prev}
	if prev != nil {
		r.like = prev.id
	}
	got := stored{st: st, attributes: f.attributes()}
	if st.size >= ChunkedFrom {
		got.id, err = r.large()
		got.flags |= flagChunked
	} else {
		got.id, err = r.small()
	}
	if r.weak {
		got.flags |= flagUnsure
	}
	return got, err
}

// errNotReadable means that the opened name is not a file to capture; the stat data
// shows why.
var errNotReadable = fault.New(fault.Unsupported, "not a file to capture")

// reading is one attempt to read a file.
type reading struct {
	w    *worker
	f    *openedFile
	st   fileStat    // before
	weak bool        // stamps are unreliable for the file
	prev *indexEntry // or nil
	like blob.ID     // content of prev
}

// stored reports whether the store has the content according to the index. If the
// index has only a tree, the blobs of the tree may be lost.
func (r *reading) stored(id blob.ID) bool {
	return r.prev != nil && r.prev.flags&flagBare == 0 && r.prev.id == id
}

// check is called once the file has been read. It decides whether the read is valid,
// and whether a second one must confirm it: because stamps are unreliable, or because
// a write may be in progress. Two scans that read the same count as two reads.
func (r *reading) check(read int64, id blob.ID) (again bool, err error) {
	if err := unchanged(r.f, r.st, read); err != nil {
		return false, err
	}
	if r.weak {
		return true, nil
	}
	by := r.w.writers(r.f, r.st)
	if by != nobody {
		r.weak = true
		r.w.stats.Racy++
	}
	return by == somebody && (r.prev == nil || r.prev.id != id), nil
}

func (r *reading) small() (blob.ID, error) {
	w := r.w
	buf := w.room(int(r.st.size) + 1) // one more, to detect growth
	data, err := readAll(r.f, buf)
	if err != nil {
		return blob.ID{}, err
	}
	b := blob.New(data)
	again, err := r.check(int64(len(data)), b.ID)
	if err != nil {
		return blob.ID{}, err
	}
	if again {
		if err := r.f.rewind(); err != nil {
			return blob.ID{}, err
		}
		second, err := readAll(r.f, make([]byte, len(data)+1))
		if err != nil {
			return blob.ID{}, err
		}
		if !bytes.Equal(data, second) {
			return blob.ID{}, errChanging
		}
	}
	w.stats.Read++
	w.stats.Bytes += int64(len(data))
	if w.s.opts.NoContents || r.stored(b.ID) {
		return b.ID, nil
	}
	b.Like = r.like
	w.taken(len(data))
	return b.ID, w.put(b)
}

// readAll fills buf, which is one byte longer than the expected size: if the last
// byte stays unread, the end was reached. The caller checks the size again.
func readAll(r io.Reader, buf []byte) ([]byte, error) {
	n := 0
	for n < len(buf)-1 || n == 0 {
		m, err := r.Read(buf[n:])
		n += m
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return buf[:n:n], nil
}

func unchanged(f *openedFile, before fileStat, read int64) error {
	after, err := f.stat()
	if err != nil {
		return err
	}
	if read != before.size || !sameContent(before, after) {
		return errChanging
	}
	return nil
}

// large stores a file as chunks. Chunks of a failed attempt stay in the store, but no
// tree names them.
func (r *reading) large() (blob.ID, error) {
	w := r.w
	had := r.chunks()
	var last blob.Blob // in the end the list
	e, err := putChunks(r.content(), r.like, func(b blob.Blob) error {
		last = b
		if had[b.ID] || w.s.opts.NoContents {
			return nil
		}
		return w.s.store.Put(w.s.ctx, b)
	})
	if err == nil && w.s.opts.NoContents {
		err = w.put(last)
	}
	if err != nil {
		return blob.ID{}, err
	}
	again, err := r.check(e.Size, e.ID)
	if err != nil {
		return blob.ID{}, err
	}
	if again {
		if err := r.f.rewind(); err != nil {
			return blob.ID{}, err
		}
		second, err := putChunks(r.content(), blob.ID{}, func(blob.Blob) error { return nil })
		if err != nil {
			return blob.ID{}, err
		}
		if second.ID != e.ID {
			return blob.ID{}, errChanging
		}
	}
	w.stats.Read++
	w.stats.Bytes += e.Size
	return e.ID, nil
}

// content reads the file, and a byte beyond its end if it grew.
func (r *reading) content() io.Reader { return io.LimitReader(r.f, r.st.size+1) }

// chunks returns the blobs of a large file that are stored according to the index. If
// the list cannot be read, all chunks are stored again.
func (r *reading) chunks() map[blob.ID]bool {
	if r.prev == nil || r.prev.flags&(flagChunked|flagBare) != flagChunked {
		return nil
	}
	data, err := r.w.s.store.Get(r.w.s.ctx, r.prev.id)
	if err != nil {
		return nil
	}
	chunks, err := DecodeChunks(data)
	if err != nil {
		return nil
	}
	had := make(map[blob.ID]bool, len(chunks)+1)
	had[r.prev.id] = true
	for _, c := range chunks {
		had[c.ID] = true
	}
	return had
}
