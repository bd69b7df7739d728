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
	// readAttempts is how often a file that keeps changing is read before the
	// scan goes on without it.
	readAttempts = 6
	// settleTries and settlePause bound the wait for a file that is being written
	// to at this very moment, about 60 ms in all.
	settleTries = 200
	settlePause = 300 * time.Microsecond
	// clockSkew is how far in the future a time stamp may lie before the clocks
	// of file system and machine count as different ones.
	clockSkew = int64(time.Second)
	// coarseStamps is the grain of the coarsest time stamps in use (FAT).
	coarseStamps = 2 * int64(time.Second)
)

var errChanging = fault.New(fault.Stale, "file kept changing while it was read")

// settle waits until the file's last change is older than the clock that stamps
// changes, for only then does every later change show: two writes within one
// tick of that clock, some milliseconds, carry the same stamp. It returns the
// stat data to read under. weak says that stamps cannot be relied on here.
// began is a time before: for most files it will do, and they need no look at the
// clock.
func settle(f *openedFile, began int64, clock func() int64) (st fileStat, weak bool, err error) {
	var first int64
	for try := range settleTries {
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
			return st, true, nil // another clock: waiting would not help
		case st.ctime%int64(time.Millisecond) == 0 && st.ctime > now-coarseStamps:
			return st, true, nil
		case st.ctime < now:
			return st, false, nil
		}
		time.Sleep(settlePause)
	}
	// Nobody wrote to it, and yet its last change is still to come: the clock was set
	// back a little, or the file system has one of its own that is ahead.
	if st.ctime == first {
		return st, true, nil
	}
	return st, false, errChanging
}

// sameContent reports whether nothing was written between two looks at a file.
func sameContent(a, b fileStat) bool {
	return a.size == b.size && a.mtime == b.mtime && a.ctime == b.ctime && a.ino == b.ino
}

// stored is the content of a file as a scan keeps it.
type stored struct {
	st    fileStat
	id    blob.ID
	flags entryFlags
}

// readFile reads and stores a file. prev is what the index knows of it, or nil. It
// returns errChanging if no attempt saw the file unchanged from beginning to end.
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
	st, weak, err := settle(f, w.s.trust.began, stampClock)
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
	got := stored{st: st}
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

// errNotReadable says that what was opened is no file to capture; the stat data
// beside it tells why.
var errNotReadable = fault.New(fault.Unsupported, "not a file to capture")

// reading is one attempt to read a file.
type reading struct {
	w    *worker
	f    *openedFile
	st   fileStat    // before
	weak bool        // stamps prove nothing about the file
	prev *indexEntry // or nil
	like blob.ID     // what prev had
}

// stored reports whether the store has the content since the index says so. Where
// that knows no more than a tree, the blobs of the tree may be lost.
func (r *reading) stored(id blob.ID) bool {
	return r.prev != nil && r.prev.flags&flagBare == 0 && r.prev.id == id
}

// check is called once the file has been read. It finds out whether the reading
// counts, and whether a second one has to confirm it: because there are no stamps to
// rely on, or because somebody may be in the middle of writing. Two scans that read
// the same are two readings.
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
	buf := w.room(int(r.st.size) + 1) // one more, to notice growth
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
	if r.stored(b.ID) {
		return b.ID, nil
	}
	b.Like = r.like
	w.taken(len(data))
	return b.ID, w.put(b)
}

// readAll fills buf, which is one byte longer than the file should be: to read all
// but that byte is to have seen the end. Who calls it looks at the size again.
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

// large stores a file as chunks. Chunks of an attempt that failed are in the store
// by then, but no tree names them.
func (r *reading) large() (blob.ID, error) {
	w := r.w
	had := r.chunks()
	e, err := putChunks(r.content(), r.like, func(b blob.Blob) error {
		if had[b.ID] {
			return nil
		}
		return w.s.store.Put(w.s.ctx, b)
	})
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

// chunks returns the blobs of a large file that are stored already, as the index
// says. A list that cannot be read is none: then all chunks are stored again.
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
