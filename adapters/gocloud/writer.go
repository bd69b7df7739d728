package stetblob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"
	"time"

	"gocloud.dev/blob/driver"

	stetblobs "github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/document"
	"github.com/stet-dev/stet/kv"
)

// maxMemory is how much of an object is kept in memory while it is written. A blob is
// named by its content, so storing begins when all of it is known.
const maxMemory = 1 << 20

func (b *bucket) NewTypedWriter(ctx context.Context, key, contentType string, opts *driver.WriterOptions) (driver.Writer, error) {
	w := &writer{
		b: b, ctx: ctx, key: key, contentType: contentType, wantMD5: opts.ContentMD5,
		attrs: attributes{
			CacheControl: opts.CacheControl, ContentDisposition: opts.ContentDisposition,
			ContentEncoding: opts.ContentEncoding, ContentLanguage: opts.ContentLanguage, Metadata: opts.Metadata,
		},
		sha: sha256.New(), md5: newMD5(),
	}
	if opts.IfNotExist {
		w.expect = document.Absent
	}
	if opts.BeforeWrite != nil {
		if err := opts.BeforeWrite(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// writer keeps an object until it is complete.
type writer struct {
	b           *bucket
	ctx         context.Context
	key         string
	contentType string
	wantMD5     []byte
	attrs       attributes
	expect      document.Expectation

	sha, md5 hash.Hash
	size     int64
	memory   bytes.Buffer
	file     *os.File // nil while the object is in memory
	failed   error    // of the first write that failed: Close must not store what is there
}

func (w *writer) Write(p []byte) (n int, err error) {
	defer func() {
		if err != nil && w.failed == nil {
			w.failed = err
		}
	}()
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	if w.file == nil && w.memory.Len()+len(p) > maxMemory {
		if err := w.spill(); err != nil {
			return 0, err
		}
	}
	w.sha.Write(p)
	w.md5.Write(p)
	w.size += int64(len(p))
	if w.file != nil {
		return w.file.Write(p)
	}
	return w.memory.Write(p)
}

// spill moves what is in memory to a file that only this process sees.
func (w *writer) spill() error {
	f, err := os.CreateTemp(w.b.tempDir, "stet-object-")
	if err != nil {
		return err
	}
	if err := os.Remove(f.Name()); err != nil {
		return errors.Join(err, f.Close())
	}
	if _, err := f.Write(w.memory.Bytes()); err != nil {
		return errors.Join(err, f.Close())
	}
	w.file, w.memory = f, bytes.Buffer{}
	return nil
}

func (w *writer) Close() (err error) {
	if w.file != nil {
		defer func() { err = errors.Join(err, w.file.Close()) }()
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if w.failed != nil {
		return w.failed
	}
	w.attrs.MD5 = w.md5.Sum(nil)
	if err := checkMD5(w.wantMD5, w.attrs.MD5); err != nil {
		return err
	}
	w.attrs.CreatedMs = time.Now().UnixMilli()
	if w.file == nil {
		data := append([]byte{}, w.memory.Bytes()...)
		return w.b.set(w.ctx, w.key, w.attrs, document.New{Type: w.contentType, Data: data}, w.expect)
	}
	for { // until no collector removes the content before the document names it
		var missing *kv.MissingBlobsError
		if err = w.store(); !errors.As(err, &missing) {
			return err
		}
	}
}

// store puts the content of the file and sets the document.
func (w *writer) store() error {
	id := stetblobs.ID(w.sha.Sum(nil))
	if _, err := w.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := stetblobs.PutFrom(w.ctx, w.b.blobs, id, w.file, w.size); err != nil {
		return err
	}
	return w.b.set(w.ctx, w.key, w.attrs, document.New{Type: w.contentType, Blob: id, Size: w.size}, w.expect)
}

// inRow reads a content that the row has.
func inRow(data []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(data)) }
