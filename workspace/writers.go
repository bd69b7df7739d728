package workspace

import (
	"sync"
	"time"
)

// A file is captured with the stat data of the read, and a later scan takes equal
// stat data as proof of equal content. That requires every later change to change a
// stamp. Two kinds of changes do not:
//
//   - a long write() stamps the file when it begins. A scan in the middle of it sees
//     the final stamp but not the final bytes;
//   - a store through a shared memory mapping stamps the file only when it makes a
//     clean page dirty.
//
// In both cases a process has the file open for writing, or mapped, right after the
// read. If the kernel reports no such process, every later change starts after that
// moment and is visible. Otherwise the entry is marked, and later scans read the file
// again until it is quiet.

// racyMargin is how old a stamp must be to count as quiet if the kernel does not
// report writers. It covers the coarsest stamps in use (2 s) and one write() of the
// largest file captured by default, at 32 MB/s.
const racyMargin = int64(10 * time.Second)

// writing is whether a process may change a file without changing its stamps.
type writing uint8

const (
	notKnown writing = iota // unknown
	nobody                  // no process has it open for writing
	somebody                // has
)

// openFiles is a snapshot of the files that other processes have open for writing,
// for file systems that do not report it. It is taken when a scan first needs it.
type openFiles struct {
	once sync.Once
	at   int64 // when it was taken, by the clock that stamps files
	inos map[uint64]struct{}
}

// has reports whether a file is open for writing, or may be by a process that opened
// it after the snapshot: its stamp is then newer, or little older.
func (o *openFiles) has(st fileStat) writing {
	o.once.Do(func() { o.at, o.inos = stampClock(), listWritten() })
	if _, ok := o.inos[st.ino]; ok && st.ino != 0 {
		return somebody
	}
	if st.ctime > o.at-racyMargin {
		return notKnown
	}
	return nobody
}

// writers reports whether a process may change a file that was just read without
// changing its stamps.
func (w *worker) writers(f *openedFile, st fileStat) writing {
	if w.s.trust.local && st.dev == w.s.trust.dev {
		if by := f.writers(); by != notKnown {
			return by
		}
	}
	return w.s.open.has(st)
}
