package workspace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/stet-dev/stet/internal/osfile"
)

// MarshalBinary returns the whole index as bytes for ParseIndex.
func (x *Index) MarshalBinary() ([]byte, error) {
	w := newIndexWriter(nil, 0, nil)
	root, err := w.dir(x.root)
	if err != nil {
		return nil, err
	}
	return w.finish(root, 0, x), nil
}

// ParseIndex reads an index from bytes, which it keeps: the caller must not
// change them. The error wraps ErrBadIndex.
func ParseIndex(data []byte) (*Index, error) {
	src, err := openSource(bytes.NewReader(data), int64(len(data)), nil)
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

// OpenIndex opens the index in a file that Save wrote. It reads only the end of the file;
// directories are read as scans need them. For a missing file the error is
// fs.ErrNotExist, for an unusable one ErrBadIndex: in both cases scan without it. Close
// the index when neither it nor an index derived from it is needed any longer.
func OpenIndex(path string) (*Index, error) { return OpenSealedIndex(path, nil) }

// OpenSealedIndex is OpenIndex for a file that SaveSealed wrote with keys of the same
// sealer. A file that is not sealed reveals what the store hides, so it is removed.
// Without a sealer it is OpenIndex.
func OpenSealedIndex(path string, seal Sealer) (*Index, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	x, err := indexOfFile(f, path, seal)
	if err != nil || !holdsIndex {
		f.Close()
	}
	if err != nil {
		if seal != nil {
			err = errors.Join(err, removePlain(path))
		}
		return nil, fmt.Errorf("open index %s: %w", path, err)
	}
	return x, nil
}

// removePlain removes an index that is not sealed. If another process has replaced it
// by a sealed one meanwhile, that is lost too, which only makes the next scan longer.
func removePlain(path string) error {
	if is, err := describeIndex(path); err != nil || is.Sealed {
		return nil // gone, or the next Save replaces it
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func indexOfFile(f *os.File, path string, seal Sealer) (*Index, error) {
	if err := osfile.Lock(f); err != nil { // or we might see a partial append
		return nil, err
	}
	defer osfile.Unlock(f)
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var r io.ReaderAt = f
	if !holdsIndex {
		data, err := io.ReadAll(f)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(data)
	}
	src, err := openSource(r, info.Size(), seal)
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
// derived from, Save appends only the directories that differ; otherwise, or when
// half of the file is obsolete, it replaces the file. A crash leaves the old index,
// the new one, or one that OpenIndex rejects.
func (x *Index) Save(path string) error { return x.SaveSealed(path, nil) }

// SaveSealed is Save for a store whose index files are sealed. A file sealed with
// another key than the active one is replaced as a whole. Without a sealer it is
// Save.
func (x *Index) SaveSealed(path string, seal Sealer) error {
	done, err := x.appendTo(path, seal)
	if err == nil && !done {
		err = x.replace(path, seal)
	}
	if err != nil {
		return fmt.Errorf("save index %s: %w", path, err)
	}
	return nil
}

// appendTo appends new records to the file, if the file is still the one the index
// was read from.
func (x *Index) appendTo(path string, seal Sealer) (done bool, err error) {
	src := x.oldSource(path)
	if src == nil || !holdsIndex {
		return false, nil
	}
	if fits, err := src.fits(seal); err != nil || !fits {
		return false, err
	}
	src.mu.Lock()
	defer src.mu.Unlock()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false, nil // replace it instead, which reports the error
	}
	defer func() { err = errors.Join(err, f.Close()) }() // and unlocks it
	if osfile.Lock(f) != nil || !src.isStill(f) {
		return false, nil
	}
	w := newIndexWriter(src, src.end.Load(), src.box)
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

// fits reports whether a sealer would seal a new file like this one.
func (s *indexSource) fits(seal Sealer) (bool, error) {
	if seal == nil || s.box == nil {
		return (seal == nil) == (s.box == nil), nil
	}
	id, err := seal.Active()
	return id == s.box.key(), err
}

// isStill reports whether the file is unchanged since our last write.
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

// oldSource finds the file that holds parts of the index.
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
				r = sub // on the path to a change
			}
		}
	}
	return found
}

// replace writes the whole index to a temporary file and renames it.
func (x *Index) replace(path string, seal Sealer) error {
	var box *indexBox
	if seal != nil {
		var err error
		if box, err = newBox(seal); err != nil {
			return err
		}
	}
	w := newIndexWriter(nil, 0, box)
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
	var r io.ReaderAt = f
	if !holdsIndex {
		r, err = bytes.NewReader(data), errors.Join(err, f.Close())
	}
	if err == nil {
		err = osfile.Rename(f.Name(), path)
	}
	if err != nil {
		f.Close()
		return errors.Join(err, os.Remove(f.Name()))
	}
	w.moved(&indexSource{r: r, path: path, box: box, base: int64(len(data))}, root, x)
	return nil
}

// indexWriter encodes directories, children before parents.
type indexWriter struct {
	keep  *indexSource // holds existing records
	start int64        // where buf will be written
	box   *indexBox    // seals the records, or nil
	nonce *nonces
	buf   []byte
	put   []placed
}

type placed struct {
	ref *dirRef
	off int64
}

func newIndexWriter(keep *indexSource, start int64, box *indexBox) *indexWriter {
	w := &indexWriter{keep: keep, start: start, box: box}
	if box != nil {
		w.nonce = newNonces()
	}
	switch h := indexHeader(); {
	case start > 0:
	case box != nil:
		w.buf = append(w.buf, box.header[:]...)
	default:
		w.buf = append(w.buf, h[:]...)
	}
	return w
}

// dir writes a directory unless the file has it, and returns its place. If it is
// neither in memory nor readable from a file, the place is 0: a later scan loads its
// node instead.
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
	head := len(w.buf)
	w.buf = append(w.buf, make([]byte, layoutOf(w.box).head)...)
	begin := len(w.buf)
	w.buf = appendDir(w.buf, d, places)
	size := len(w.buf) - begin
	if int64(size) > 1<<32-1 {
		return 0, fmt.Errorf("directory record of %d bytes is too large", size)
	}
	binary.LittleEndian.PutUint32(w.buf[head:], uint32(size))
	if w.box != nil {
		w.buf = w.box.sealTail(w.buf, begin, w.nonce.take(), partRecord, off)
	} else {
		binary.LittleEndian.PutUint32(w.buf[head+4:], recordSum(off, w.buf[begin:]))
	}
	w.put = append(w.put, placed{r, off})
	return off, nil
}

func (w *indexWriter) finish(root, base int64, x *Index) []byte {
	off := w.start + int64(len(w.buf))
	if base == 0 {
		base = off + layoutOf(w.box).trailer
	}
	head := len(w.buf)
	w.buf = append(w.buf, endMagic...)
	if w.box != nil {
		w.buf = append(w.buf, make([]byte, nonceLen)...)
		w.buf = appendEnd(w.buf, root, base, x.Tree(), x.era)
		w.buf = w.box.sealTail(w.buf, head+4+nonceLen, w.nonce.take(), partEnd, off)
		return w.buf
	}
	w.buf = append(w.buf, 0, 0, 0, 0)
	w.buf = appendEnd(w.buf, root, base, x.Tree(), x.era)
	binary.LittleEndian.PutUint32(w.buf[head+4:], recordSum(off, w.buf[head+8:]))
	return w.buf
}

// moved updates the places of the directories.
func (w *indexWriter) moved(src *indexSource, root int64, x *Index) {
	src.root, src.node, src.era = root, x.Tree(), x.era
	src.end.Store(w.start + int64(len(w.buf)))
	for _, p := range w.put {
		p.ref.at.Store(&location{src, p.off})
	}
}
