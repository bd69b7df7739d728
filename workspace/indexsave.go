package workspace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// MarshalBinary returns the whole index as bytes for ParseIndex.
func (x *Index) MarshalBinary() ([]byte, error) {
	w := newIndexWriter(nil, 0)
	root, err := w.dir(x.root)
	if err != nil {
		return nil, err
	}
	return w.finish(root, 0, x), nil
}

// ParseIndex reads an index from bytes, which it keeps: the caller must not
// change them. The error wraps ErrBadIndex.
func ParseIndex(data []byte) (*Index, error) {
	src, err := openSource(bytes.NewReader(data), int64(len(data)))
	if err == nil {
		src.start.Store(&data)
	}
	return indexFrom(src, err)
}

func indexFrom(src *indexSource, err error) (*Index, error) {
	if err != nil {
		return nil, err
	}
	x := NewIndex(src.node)
	x.era = src.era
	x.root.at.Store(&location{src, src.root})
	return x, nil
}

// OpenIndex opens the index in a file that Save wrote. It reads only the end of
// the file; directories follow as scans need them. A file that is missing gives
// fs.ErrNotExist, one that is no good ErrBadIndex: in both cases scan without it.
// Close the index when neither it nor one that a scan derived from it is needed.
func OpenIndex(path string) (*Index, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	x, err := indexOfFile(f, path)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open index %s: %w", path, err)
	}
	return x, nil
}

func indexOfFile(f *os.File, path string) (*Index, error) {
	if err := lockFile(f); err != nil { // or we might see half of what another appends
		return nil, err
	}
	defer unlockFile(f)
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	src, err := openSource(f, info.Size())
	if err != nil {
		return nil, err
	}
	src.path = path
	return indexFrom(src, nil)
}

// Close releases the file of an index that OpenIndex opened.
func (x *Index) Close() error {
	if at := x.root.at.Load(); at != nil {
		if f, ok := at.src.r.(*os.File); ok {
			return f.Close()
		}
	}
	return nil
}

// Save writes the index to a file. If the file holds the index that this one was
// derived from, only the directories that differ are appended; else, or when
// half of the file has become useless, it is replaced as a whole. A crash leaves
// the old index, the new one, or one that OpenIndex refuses.
func (x *Index) Save(path string) error {
	done, err := x.appendTo(path)
	if err == nil && !done {
		err = x.replace(path)
	}
	if err != nil {
		return fmt.Errorf("save index %s: %w", path, err)
	}
	return nil
}

// appendTo adds what is new to the file, if the file is still what the index
// was read from.
func (x *Index) appendTo(path string) (done bool, err error) {
	src := x.oldSource(path)
	if src == nil || !canLock {
		return false, nil
	}
	src.mu.Lock()
	defer src.mu.Unlock()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false, nil // replaced as a whole instead, which tells what is wrong
	}
	defer func() { err = errors.Join(err, f.Close()) }() // and unlocks it
	if lockFile(f) != nil || !src.isStill(f) {
		return false, nil
	}
	w := newIndexWriter(src, src.end.Load())
	root, err := w.dir(x.root)
	if err != nil || root == 0 {
		return false, err
	}
	if root == src.root && x.era == src.era {
		return true, nil
	}
	data := w.finish(root, src.base, x)
	if w.start+int64(len(data)) > 2*src.base+(1<<16) {
		return false, nil
	}
	if _, err := f.WriteAt(data, w.start); err != nil {
		return false, err
	}
	w.moved(src, root, x)
	return true, nil
}

// isStill reports whether nobody else changed the file since we did.
func (s *indexSource) isStill(f *os.File) bool {
	ours, ok := s.r.(*os.File)
	if !ok {
		return false
	}
	was, err := ours.Stat()
	if err != nil {
		return false
	}
	is, err := f.Stat()
	return err == nil && os.SameFile(was, is) && is.Size() == s.end.Load()
}

// oldSource finds the file that parts of the index lie in.
func (x *Index) oldSource(path string) *indexSource {
	var found *indexSource
	look := func(r *dirRef) {
		if at := r.at.Load(); at != nil && at.src.path == path {
			found = at.src
		}
	}
	for r := x.root; r != nil && found == nil; {
		look(r)
		d := r.rec.Load()
		if d == nil {
			break
		}
		r = nil
		for _, sub := range d.subs {
			look(sub)
			if sub.at.Load() == nil {
				r = sub // on the way to what a scan changed
			}
		}
	}
	return found
}

// replace writes the whole index beside the file and renames it into place.
func (x *Index) replace(path string) error {
	w := newIndexWriter(nil, 0)
	root, err := w.dir(x.root)
	if err != nil {
		return err
	}
	data := w.finish(root, 0, x)
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	w.moved(&indexSource{r: f, path: path, base: int64(len(data))}, root, x)
	return nil
}

// indexWriter encodes directories, those below before those above.
type indexWriter struct {
	keep  *indexSource // records that are there already
	start int64        // where buf will be written
	buf   []byte
	put   []placed
}

type placed struct {
	ref *dirRef
	off int64
}

func newIndexWriter(keep *indexSource, start int64) *indexWriter {
	w := &indexWriter{keep: keep, start: start}
	if start == 0 {
		h := indexHeader()
		w.buf = append(w.buf, h[:]...)
	}
	return w
}

// dir writes a directory unless the file has it, and returns its place. A
// directory that is neither in memory nor in a readable file has place 0: a
// later scan loads its node instead.
func (w *indexWriter) dir(r *dirRef) (int64, error) {
	at := r.at.Load()
	if w.keep != nil && at != nil && at.src == w.keep {
		return at.off, nil
	}
	d := r.rec.Load()
	if d == nil && at != nil {
		d = at.dir(r.node)
	}
	if d == nil {
		return 0, nil
	}
	places := make([]int64, len(d.subs))
	for i, sub := range d.subs {
		place, err := w.dir(sub)
		if err != nil {
			return 0, err
		}
		places[i] = place
	}
	off := w.start + int64(len(w.buf))
	w.buf = append(w.buf, make([]byte, recordHeadLen)...)
	begin := len(w.buf)
	w.buf = appendDir(w.buf, d, places)
	payload := w.buf[begin:]
	if int64(len(payload)) > 1<<32-1 {
		return 0, fmt.Errorf("directory record of %d bytes is too large", len(payload))
	}
	binary.LittleEndian.PutUint32(w.buf[begin-8:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(w.buf[begin-4:], recordSum(off, payload))
	w.put = append(w.put, placed{r, off})
	return off, nil
}

func (w *indexWriter) finish(root, base int64, x *Index) []byte {
	off := w.start + int64(len(w.buf))
	if base == 0 {
		base = off + trailerLen
	}
	w.buf = appendTrailer(w.buf, off, root, base, x.Tree(), x.era)
	return w.buf
}

// moved tells the directories where they now lie.
func (w *indexWriter) moved(src *indexSource, root int64, x *Index) {
	src.root, src.node, src.era = root, x.Tree(), x.era
	src.end.Store(w.start + int64(len(w.buf)))
	for _, p := range w.put {
		p.ref.at.Store(&location{src, p.off})
	}
}
