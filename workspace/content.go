package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
)

// OpenFile returns the content of a file entry. A chunked file is read chunk by
// chunk; missing content, or content of the wrong length, is an error where it is
// detected.
func OpenFile(ctx context.Context, store blob.Store, e Entry) (io.ReadCloser, error) {
	if e.Kind != File {
		return nil, fmt.Errorf("open %q: is a %s, not a file", e.Name, e.Kind)
	}
	if !e.Chunked {
		r, err := blob.Open(ctx, store, e.ID)
		if err != nil {
			return nil, fmt.Errorf("open %q: %w", e.Name, err)
		}
		return &sizedReader{ReadCloser: r, left: e.Size, id: e.ID}, nil
	}
	chunks, err := loadChunks(ctx, store, e)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", e.Name, err)
	}
	return &chunkReader{ctx: ctx, store: store, chunks: chunks}, nil
}

// ReadFile returns the whole content of a file entry.
func ReadFile(ctx context.Context, store blob.Store, e Entry) ([]byte, error) {
	if e.Kind == File && !e.Chunked {
		data, err := store.Get(ctx, e.ID)
		if err == nil && int64(len(data)) != e.Size {
			err = wrongSize(e.ID, e.Size)
		}
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", e.Name, err)
		}
		return data, nil
	}
	r, err := OpenFile(ctx, store, e)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", e.Name, err)
	}
	return data, nil
}

// ReadLink returns the target of a symbolic link.
func ReadLink(ctx context.Context, store blob.Store, e Entry) (string, error) {
	if e.Kind != Symlink {
		return "", fmt.Errorf("read link %q: is a %s", e.Name, e.Kind)
	}
	target, err := store.Get(ctx, e.ID)
	if err != nil {
		return "", fmt.Errorf("read link %q: %w", e.Name, err)
	}
	if int64(len(target)) != e.Size {
		return "", fmt.Errorf("read link %q: %w", e.Name, wrongSize(e.ID, e.Size))
	}
	return string(target), nil
}

func wrongSize(id blob.ID, want int64) error {
	return blob.Corrupt(id, "its entry says %d bytes, the content has a different length", want)
}

// sizedReader returns an error for content of the wrong length.
type sizedReader struct {
	io.ReadCloser
	left int64
	id   blob.ID
}

func (r *sizedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.left -= int64(n)
	if r.left < 0 || err == io.EOF && r.left > 0 {
		return n, blob.Corrupt(r.id, "the content has a different length than its entry says")
	}
	return n, err
}

// chunkReader reads chunks one after the other. It keeps the context of OpenFile,
// because io.Reader takes none.
type chunkReader struct {
	ctx    context.Context
	store  blob.Store
	chunks []Chunk
	cur    []byte
}

func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.cur) == 0 {
		if len(r.chunks) == 0 {
			return 0, io.EOF
		}
		c := r.chunks[0]
		data, err := r.store.Get(r.ctx, c.ID)
		if err != nil {
			return 0, fmt.Errorf("read chunk: %w", err)
		}
		if int64(len(data)) != c.Size {
			return 0, wrongSize(c.ID, c.Size)
		}
		r.cur, r.chunks = data, r.chunks[1:]
	}
	n := copy(p, r.cur)
	r.cur = r.cur[n:]
	return n, nil
}

func (r *chunkReader) Close() error {
	r.chunks, r.cur = nil, nil
	return nil
}

// PutFile stores content of any length and returns an entry for it without name and mode.
// It holds at most a few MiB in memory at a time.
func PutFile(ctx context.Context, store blob.Store, content io.Reader) (Entry, error) {
	return putFile(content, func(b blob.Blob) error { return store.Put(ctx, b) })
}

// HashFile returns the same entry as PutFile without storing anything.
func HashFile(content io.Reader) (Entry, error) {
	return putFile(content, func(blob.Blob) error { return nil })
}

func putFile(content io.Reader, put func(blob.Blob) error) (Entry, error) {
	head, err := io.ReadAll(io.LimitReader(content, ChunkedFrom))
	if err != nil {
		return Entry{}, fmt.Errorf("store file: %w", err)
	}
	if len(head) < ChunkedFrom {
		b := blob.New(head)
		if err := put(b); err != nil {
			return Entry{}, fmt.Errorf("store file: %w", err)
		}
		return Entry{Kind: File, Size: int64(len(head)), ID: b.ID}, nil
	}
	return putChunks(io.MultiReader(bytes.NewReader(head), content), blob.ID{}, put)
}

// PutLink stores the target of a symbolic link and returns an entry for it
// without name.
func PutLink(ctx context.Context, store blob.Store, target string) (Entry, error) {
	b := blob.New([]byte(target))
	if err := store.Put(ctx, b); err != nil {
		return Entry{}, fmt.Errorf("store link: %w", err)
	}
	return Entry{Kind: Symlink, Size: int64(len(target)), ID: b.ID}, nil
}

// putChunks passes content as chunks, and then their list, to put. Chunks stored
// before an error are garbage for a collector.
func putChunks(content io.Reader, like blob.ID, put func(blob.Blob) error) (Entry, error) {
	w := window{r: content, buf: make([]byte, 2*maxChunk)}
	var chunks []Chunk
	e := Entry{Kind: File, Chunked: true}
	for {
		data, err := w.ahead(maxChunk)
		if err != nil {
			return Entry{}, fmt.Errorf("store file: %w", err)
		}
		if len(data) == 0 {
			break
		}
		n := cut(data)
		b := blob.New(data[:n])
		if err := put(b); err != nil {
			return Entry{}, &storeError{fmt.Errorf("store chunk: %w", err)}
		}
		chunks = append(chunks, Chunk{Size: int64(n), ID: b.ID})
		e.Size += int64(n)
		w.lo += n
	}
	list, err := encodeChunks(chunks)
	if err != nil {
		return Entry{}, err
	}
	b := blob.New(list)
	b.Like = like
	if err := put(b); err != nil {
		return Entry{}, &storeError{fmt.Errorf("store chunk list: %w", err)}
	}
	e.ID = b.ID
	return e, nil
}

// storeError marks an error of the store, which ends a scan; an error of a file only
// skips the file.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// window looks ahead in a reader.
type window struct {
	r      io.Reader
	buf    []byte
	lo, hi int // read and not consumed
	ended  bool
}

// ahead returns at least n bytes, or all that are left.
func (w *window) ahead(n int) ([]byte, error) {
	if w.hi-w.lo < n && !w.ended {
		w.hi = copy(w.buf, w.buf[w.lo:w.hi])
		w.lo = 0
	}
	for !w.ended && w.hi-w.lo < n {
		got, err := w.r.Read(w.buf[w.hi:])
		w.hi += got
		if errors.Is(err, io.EOF) {
			w.ended = true
		} else if err != nil {
			return nil, err
		}
	}
	return w.buf[w.lo:w.hi], nil
}
