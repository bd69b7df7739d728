package workspace

import (
	"sync"
	"time"
)

// A file is captured with the stat data that it was read under, and a later scan
// takes the same stat data for the same content. That holds only if every later
// change moves a stamp, and two kinds of changes do not:
//
//   - one long write() stamps the file when it begins. A scan in the middle of it
//     sees the last stamp and not the last bytes;
//   - a store through a shared memory mapping stamps the file only when it makes a
//     clean page dirty.
//
// In both cases somebody has the file open for writing, or mapped, at the moment
// after it was read. Where the kernel says that nobody has, every later change
// begins after that moment, and shows. Otherwise the entry is marked, and the next
// scan reads the file again, until a look finds it quiet.

// racyMargin is how much older than a look a stamp must be to count as quiet where
// the kernel does not say who writes. It covers the coarsest stamps in use (2 s)
// and one write() of the largest file that is captured by default, at 32 MB/s.
const racyMargin = int64(10 * time.Second)

// writing says whether somebody may change a file without a trace.
type writing uint8

const (
	notKnown writing = iota // nobody can tell
	nobody                  // has it open for writing
	somebody                // has
)

// openFiles is a look at the files that other processes have open for writing, for
// file systems that do not tell it themselves. It is taken when a scan first needs
// it.
type openFiles struct {
	once sync.Once
	at   int64 // when it was begun, by the clock that stamps files
	inos map[uint64]struct{}
}

// has reports whether a file is open for writing, or may be by somebody who came
// after the look: that one stamped it since, or little before.
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

// writers tells who may change a file that was just read without a trace.
func (w *worker) writers(f *openedFile, st fileStat) writing {
	if w.s.trust.local && st.dev == w.s.trust.dev {
		if by := f.writers(); by != notKnown {
			return by
		}
	}
	return w.s.open.has(st)
}
