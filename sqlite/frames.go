package sqlite

import "encoding/binary"

// framesLimit is how many bytes of frames wait in memory before they are written. The
// memory is kept for the next transaction.
const framesLimit = 256 << 10

// frames collects the frames of a transaction, which are then written with one call: the
// library makes two for each page. They wait for the last frame of the commit. Nothing
// else needs them earlier: the library announces them to other connections after the
// commit, and its own reads of the log write them first.
//
// A commit's frames are written while the library writes its last one, not when it
// syncs: a failed write, as on a full disk, undoes the transaction, and a failed sync
// leaves doubt.
type frames struct {
	buf    []byte
	off    int64 // of buf in the log
	commit bool  // the page that follows ends a transaction
}

// add takes one write of the library into the buffer. It reports whether all of the
// buffer must be written now.
func (f *frames) add(p []byte) (due bool) {
	f.buf = append(f.buf, p...)
	if len(p) == frameHeaderSize {
		f.commit = binary.BigEndian.Uint32(p[4:]) != 0
		return false
	}
	return f.commit || len(f.buf) >= framesLimit
}

// follows reports whether a write at off continues the buffer.
func (f *frames) follows(off int64) bool { return len(f.buf) == 0 || off == f.off+int64(len(f.buf)) }

// writeFrames buffers a part of a frame.
func (f *logFile) writeFrames(p []byte, off int64) (int, error) {
	if !f.frames.follows(off) { // a page that has a frame in this transaction changed again
		if err := f.flush(); err != nil {
			return 0, err
		}
	}
	if len(f.frames.buf) == 0 {
		f.frames.off = off
	}
	if f.frames.add(p) {
		if err := f.flush(); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// flush writes the buffered frames. If that fails, they are forgotten: the library undoes
// the transaction, and the next one begins at the same place.
func (f *logFile) flush() error {
	if len(f.frames.buf) == 0 {
		return nil
	}
	_, err := f.diskFile.WriteAt(f.frames.buf, f.frames.off)
	f.frames.buf = f.frames.buf[:0]
	return err
}

// Size implements vfs.File.
func (f *logFile) Size() (int64, error) {
	if err := f.flush(); err != nil {
		return 0, err
	}
	return f.diskFile.Size()
}

// Truncate implements vfs.File.
func (f *logFile) Truncate(size int64) error {
	if err := f.flush(); err != nil {
		return err
	}
	return f.diskFile.Truncate(size)
}

// Close implements vfs.File. Buffered frames belong to a transaction that did not end.
func (f *logFile) Close() error {
	f.frames.buf = nil
	return f.diskFile.Close()
}
