package workspace

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/stet-dev/stet/blob"
)

const (
	// batchBytes and batchBlobs limit one Put of a worker: enough to share the cost
	// of a transaction, little enough for memory.
	batchBytes = 2 << 20
	batchBlobs = 512
	// direntBuf holds about 2,000 names.
	direntBuf = 64 << 10
	// maxSpare limits how many spare parts a worker keeps.
	maxSpare = 64
)

// worker takes tasks until there are none left. Its fields belong to one
// goroutine.
type worker struct {
	s      *scanner
	batch  []blob.Blob
	slab   []byte // memory of the contents in batch
	used   int    // of slab
	size   int    // bytes in batch
	dirBuf []byte
	spare  spares

	stats   Stats // since the last report
	skipped []Skipped
	notKept NotKept
}

func newWorker(s *scanner) *worker {
	return &worker{s: s, dirBuf: make([]byte, direntBuf)}
}

func (w *worker) loop() error {
	for t, ok := w.s.queue.next(false); ok; t, ok = w.s.queue.next(true) {
		if err := w.do(t); err != nil {
			return err
		}
		if w.s.opts.Progress != nil {
			w.report()
		}
	}
	w.report()
	return w.flush()
}

func (w *worker) do(t task) error {
	if err := w.s.ctx.Err(); err != nil {
		if t.hi > 0 {
			t.job.rangeDone() // closes the directory after the last range
		}
		return err
	}
	if t.hi == 0 {
		return w.runDir(t.job)
	}
	return w.runRange(t.job, t.lo, t.hi)
}

// report adds the counts since the last report to the scan's.
func (w *worker) report() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	sum, add := &w.s.stats, &w.stats
	sum.Dirs += add.Dirs
	sum.Files += add.Files
	sum.Read += add.Read
	sum.Bytes += add.Bytes
	sum.Size += add.Size
	sum.Stored += add.Stored
	sum.Reread += add.Reread
	sum.Racy += add.Racy
	sum.listed += add.listed
	w.stats = Stats{}
	w.s.skipped = append(w.s.skipped, w.skipped...)
	w.skipped = nil
	w.s.notKept.merge(&w.notKept)
	w.notKept = NotKept{}
}

// spares are parts of finished directories for reuse: otherwise a walk would create
// as much garbage as the size of the index.
type spares struct {
	slots [][]slot
	names [][]dirent
	dirs  []*indexDir
}

// take takes the parts of a finished directory.
func (s *spares) take(j *dirJob) {
	if len(s.slots) < maxSpare {
		s.slots = append(s.slots, j.slots)
		s.names = append(s.names, j.names)
		if j.borrowed {
			s.dirs = append(s.dirs, j.prev)
		}
	}
	j.slots, j.names, j.prev = nil, nil, nil
}

// slotsFor returns n empty slots.
func (w *worker) slotsFor(n int) []slot {
	slots := reused(&w.spare.slots, n)
	clear(slots)
	return slots
}

// namesFor returns room for n names.
func (w *worker) namesFor(n int) []dirent { return reused(&w.spare.names, n) }

// scratchDir returns a directory to read into.
func (w *worker) scratchDir() *indexDir {
	dirs := w.spare.dirs
	if len(dirs) == 0 {
		return &indexDir{}
	}
	w.spare.dirs = dirs[:len(dirs)-1]
	return dirs[len(dirs)-1]
}

// reused returns n elements of a spare slice if one is long enough.
func reused[T any](spare *[][]T, n int) []T {
	for len(*spare) > 0 {
		last := (*spare)[len(*spare)-1]
		*spare = (*spare)[:len(*spare)-1]
		if cap(last) >= n {
			return last[:n]
		}
	}
	return make([]T, n)
}

// room returns n bytes of scratch memory that stay valid until the next flush if
// taken is called, and are reused if not.
func (w *worker) room(n int) []byte {
	if n > batchBytes/4 {
		return make([]byte, n)
	}
	if len(w.slab)-w.used < n {
		w.slab, w.used = make([]byte, batchBytes), 0
	}
	return w.slab[w.used : w.used+n : w.used+n]
}

// taken keeps the first n bytes of the last room.
func (w *worker) taken(n int) {
	if n <= batchBytes/4-1 {
		w.used += n
	}
}

// put adds a blob to the batch.
func (w *worker) put(b blob.Blob) error {
	w.batch = append(w.batch, b)
	w.size += len(b.Data)
	if len(w.batch) >= batchBlobs || w.size >= batchBytes {
		return w.flush()
	}
	return nil
}

// flush puts the batch into the store, which does not keep the memory.
func (w *worker) flush() error {
	if len(w.batch) == 0 {
		return nil
	}
	if err := w.s.store.Put(w.s.ctx, w.batch...); err != nil {
		what := "1 blob"
		if n := len(w.batch); n > 1 {
			what = fmt.Sprintf("%d blobs", n)
		}
		return &storeError{fmt.Errorf("store %s: %w", what, err)}
	}
	w.stats.Stored += int64(len(w.batch))
	clear(w.batch)
	w.batch, w.used, w.size = w.batch[:0], 0, 0
	return nil
}

func (w *worker) skip(j *dirJob, name string, s Skipped) {
	s.Path = join(j.path, name)
	w.skipped = append(w.skipped, s)
}

// leaveOut lists a path that could not be read, or returns the error if it is not the
// file's. It ignores a path that is gone.
func (w *worker) leaveOut(j *dirJob, name string, dir bool, err error) error {
	var failed *storeError
	switch {
	case errors.As(err, &failed) || w.s.ctx.Err() != nil:
		return err
	case isGone(err):
		return nil
	case errors.Is(err, fs.ErrPermission):
		w.skip(j, name, Skipped{Reason: ReasonPermission, Dir: dir, Err: err})
	case errors.Is(err, errChanging) || isSwapped(err):
		w.skip(j, name, Skipped{Reason: ReasonChanging, Dir: dir, Err: err})
	default:
		w.skip(j, name, Skipped{Reason: ReasonIO, Dir: dir, Err: err})
	}
	return nil
}
