package workspace

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/stet-dev/stet/blob"
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

var errChanging = errors.New("file kept changing while it was read")

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

// readFile reads and stores a file. It returns errChanging if no attempt saw the
// file unchanged from beginning to end.
func (w *worker) readFile(d dirFD, name string, like blob.ID) (stored, error) {
	for range readAttempts {
		got, err := w.readOnce(d, name, like)
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

func (w *worker) readOnce(d dirFD, name string, like blob.ID) (stored, error) {
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
	got := stored{st: st}
	if weak {
		got.flags |= flagUnsure
	}
	if st.size >= ChunkedFrom {
		err = w.readLarge(f, &got, weak, like)
	} else {
		err = w.readSmall(f, &got, weak, like)
	}
	return got, err
}

// errNotReadable says that what was opened is no file to capture; the stat data
// beside it tells why.
var errNotReadable = errors.New("not a file to capture")

func (w *worker) readSmall(f *openedFile, got *stored, weak bool, like blob.ID) error {
	buf := w.room(int(got.st.size) + 1) // one more, to notice growth
	data, err := readAll(f, buf)
	if err != nil {
		return err
	}
	if err := unchanged(f, got.st, int64(len(data))); err != nil {
		return err
	}
	b := blob.New(data)
	b.Like, got.id = like, b.ID
	if weak {
		// Without stamps to rely on, two equal readings have to do.
		if err := f.rewind(); err != nil {
			return err
		}
		again, err := readAll(f, make([]byte, len(data)+1))
		if err != nil {
			return err
		}
		if !bytes.Equal(data, again) {
			return errChanging
		}
	}
	w.taken(len(data))
	w.stats.Read++
	w.stats.Bytes += int64(len(data))
	return w.put(b)
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

// readLarge stores a file as chunks. Chunks of an attempt that failed are in the
// store by then, but no tree names them.
func (w *worker) readLarge(f *openedFile, got *stored, weak bool, like blob.ID) error {
	limit := io.LimitReader(f, got.st.size+1)
	e, err := putChunks(w.s.ctx, w.s.store, limit, like)
	if err != nil {
		return err
	}
	if err := unchanged(f, got.st, e.Size); err != nil {
		return err
	}
	if weak {
		if err := f.rewind(); err != nil {
			return err
		}
		again, err := putChunks(w.s.ctx, w.s.store, io.LimitReader(f, got.st.size+1), blob.ID{})
		if err != nil {
			return err
		}
		if again.ID != e.ID {
			return errChanging
		}
	}
	got.id = e.ID
	got.flags |= flagChunked
	w.stats.Read++
	w.stats.Bytes += e.Size
	return nil
}
