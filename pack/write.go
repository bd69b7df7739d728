package pack

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"sync/atomic"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// newPrefix returns the prefix of the keys of one pack. It is random: keys are never
// reused, do not reveal the content, and spread over a bucket.
func (s *Store) newPrefix() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	name := hex.EncodeToString(b[:])
	return s.opts.Prefix + name[:2] + "/" + name
}

// writer fills objects.
type writer struct {
	s       *Store
	prefix  string
	taken   *taken // what was read before
	begun   int    // objects that may be in the bucket
	objects []object
	indexes []*index

	buf   bytes.Buffer
	index *index
}

// keys returns the keys of all objects that may have been stored.
func (w *writer) keys() []string {
	keys := make([]string, w.begun)
	for i := range keys {
		keys[i] = w.key(i)
	}
	return keys
}

func (w *writer) key(n int) string { return fmt.Sprintf("%s-%d", w.prefix, n) }

// write stores sorted rows and blobs.
func (w *writer) write(ctx context.Context, rows []kv.Row, blobs []blob.Info) ([]object, error) {
	w.reset()
	for _, row := range rows {
		if err := w.room(ctx, len(row.Value)); err != nil {
			return nil, err
		}
		w.index.rows = append(w.index.rows, rowItem{key: row.Key, version: row.Version, extent: w.record(row.Value)})
	}
	for len(blobs) > 0 {
		n := w.some(blobs)
		if err := w.blobs(ctx, blobs[:n]); err != nil {
			return nil, err
		}
		blobs = blobs[n:]
	}
	err := w.close(ctx)
	return w.objects, err
}

func (w *writer) reset() {
	w.buf.Reset()
	w.buf.Write(head())
	w.index = &index{}
}

// record appends bytes to the current object.
func (w *writer) record(data []byte) extent {
	at := extent{offset: int64(w.buf.Len()), length: int64(len(data)), sum: sumOf(data)}
	w.buf.Write(data)
	return at
}

// room closes the current object if a record does not fit.
func (w *writer) room(ctx context.Context, length int) error {
	if w.buf.Len() > headSize && int64(w.buf.Len())+int64(length) > w.s.opts.ObjectBytes {
		return w.close(ctx)
	}
	return nil
}

// How many blobs, and how many of their bytes, are read at once.
const (
	readers   = 8
	readBlobs = 128
	readBytes = 8 << 20
)

// some returns how many of the blobs are read at once; a large one is read alone.
func (w *writer) some(blobs []blob.Info) (n int) {
	if w.isLarge(blobs[0]) {
		return 1
	}
	for size := int64(0); n < min(len(blobs), readBlobs); n++ {
		size += blobs[n].Stored
		if n > 0 && (size > readBytes || w.isLarge(blobs[n])) {
			break
		}
	}
	return n
}

func (w *writer) isLarge(info blob.Info) bool { return info.Stored > w.s.opts.ObjectBytes/2 }

// blobs appends blobs. Several goroutines read them, because a remote driver takes
// long for each.
func (w *writer) blobs(ctx context.Context, infos []blob.Info) error {
	if w.isLarge(infos[0]) {
		return w.large(ctx, infos[0])
	}
	data, errs := make([][]byte, len(infos)), make([]error, len(infos))
	var next atomic.Int64
	var work sync.WaitGroup
	for range min(readers, len(infos)) {
		work.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(infos)); i = next.Add(1) - 1 {
				data[i], errs[i] = w.read(ctx, infos[i])
			}
		})
	}
	work.Wait()
	for i, info := range infos {
		if errs[i] != nil {
			return fmt.Errorf("pack blob %s: %w", info.ID, errs[i])
		}
		if err := w.room(ctx, len(data[i])); err != nil {
			return err
		}
		w.index.blobs = append(w.index.blobs, blobItem{name: info.ID, base: info.Base, extent: w.record(data[i])})
	}
	return nil
}

// read returns the bytes of a blob. It fails if the base has changed since the blob
// was described, because the pack would lack the new one.
func (w *writer) read(ctx context.Context, info blob.Info) ([]byte, error) {
	if one, ok := w.taken.get(info.ID); ok {
		return one.Data, nil
	}
	if w.s.driver.Rewriter == nil {
		return w.s.blobs.Get(ctx, info.ID)
	}
	one, err := w.s.driver.Rewriter.Kept(ctx, info.ID)
	if err == nil && one.Base != info.Base {
		err = fmt.Errorf("%w: its base has changed", ErrChanged)
	}
	return one.Data, err
}

// close stores the current object and starts another one.
func (w *writer) close(ctx context.Context) error {
	if w.buf.Len() == headSize && len(w.index.rows)+len(w.index.blobs) == 0 {
		return nil
	}
	w.buf.Write(w.index.end())
	err := w.put(ctx, bytes.NewReader(w.buf.Bytes()), int64(w.buf.Len()))
	w.reset()
	return err
}

// put stores an object whose index is complete.
func (w *writer) put(ctx context.Context, r io.Reader, size int64) error {
	key := w.key(w.begun)
	w.begun++ // before the call: a failed put may have stored it
	if err := w.s.objects.PutObject(ctx, key, r, size); err != nil {
		return fmt.Errorf("store object %s: %w", key, err)
	}
	w.objects = append(w.objects, object{key: key, size: size, end: int64(len(w.index.end()))})
	w.indexes = append(w.indexes, w.index)
	return nil
}

// large writes a blob to its own object. It reads the blob twice instead of holding
// it, because the size that a store reports may differ from that of the content.
func (w *writer) large(ctx context.Context, info blob.Info) error {
	if err := w.close(ctx); err != nil {
		return fmt.Errorf("pack blob %s: %w", info.ID, err)
	}
	at := extent{offset: int64(headSize)}
	err := w.stream(ctx, info.ID, func(r io.Reader) error {
		h := sha256.New()
		n, err := io.Copy(h, r)
		at.length = n
		copy(at.sum[:], h.Sum(nil))
		return err
	})
	if err != nil {
		return err
	}
	w.index.blobs = []blobItem{{name: info.ID, base: info.Base, extent: at}}
	end := w.index.end()
	err = w.stream(ctx, info.ID, func(r io.Reader) error {
		v := &verifier{r: r, want: at.sum, object: info.ID.String()}
		all := io.MultiReader(bytes.NewReader(head()), v, bytes.NewReader(end))
		return w.put(ctx, all, int64(headSize)+at.length+int64(len(end)))
	})
	w.reset()
	if errors.Is(err, ErrDamaged) || errors.Is(err, blob.ErrMismatch) {
		return fmt.Errorf("pack blob %s: %w: it was replaced while it was read: %w", info.ID, ErrChanged, err)
	}
	if err != nil {
		return err
	}
	return w.unchanged(ctx, info)
}

// unchanged fails if the base of a blob has changed since it was described: the
// streamed bytes may then need the new base, which the pack would lack.
func (w *writer) unchanged(ctx context.Context, info blob.Info) error {
	known := make(map[blob.ID]blob.Info)
	if err := w.s.lookUp(ctx, []blob.ID{info.ID}, known); err != nil {
		return fmt.Errorf("pack blob %s: %w", info.ID, err)
	}
	if now, stored := known[info.ID]; !stored || now.Base != info.Base {
		return fmt.Errorf("pack blob %s: %w: its base has changed", info.ID, ErrChanged)
	}
	return nil
}

func (w *writer) stream(ctx context.Context, id blob.ID, fn func(io.Reader) error) error {
	r, err := blob.Open(ctx, w.s.blobs, id)
	if err != nil {
		return err
	}
	return errors.Join(fn(r), r.Close())
}

// verifier ends with an error instead of io.EOF if the bytes read have a wrong
// checksum.
type verifier struct {
	r      io.Reader
	hash   hash.Hash
	want   sum
	object string
}

func (v *verifier) Read(p []byte) (int, error) {
	if v.hash == nil {
		v.hash = sha256.New()
	}
	n, err := v.r.Read(p)
	v.hash.Write(p[:n])
	if errors.Is(err, io.EOF) && sum(v.hash.Sum(nil)[:sumSize]) != v.want {
		return n, fmt.Errorf("object %s: %w", v.object, damaged("a record has a wrong checksum"))
	}
	return n, err
}
