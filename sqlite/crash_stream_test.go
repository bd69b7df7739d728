package sqlite

import (
	"crypto/sha256"
	"io"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
)

// generator gives size bytes that nobody has to keep, and looks at the memory in
// use now and then.
type generator struct {
	size, at int64
	peak     *atomic.Uint64
}

func (g *generator) Read(p []byte) (int, error) {
	if g.at == g.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), g.size-g.at))
	for i := range p[:n] {
		at := g.at + int64(i)
		p[i] = byte(at ^ at>>8 ^ at>>16)
	}
	if g.at>>24 != (g.at+int64(n))>>24 {
		notePeak(g.peak)
	}
	g.at += int64(n)
	return n, nil
}

func notePeak(peak *atomic.Uint64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	peak.Store(max(peak.Load(), m.HeapAlloc))
}

// TestLargeBlob streams a blob that would not fit into the memory that the store
// may take.
func TestLargeBlob(t *testing.T) {
	const allowed = 64 << 20
	size := int64(testenv.Scale(256<<20, 1<<30))
	db := openTest(t, nil)
	var peak, before atomic.Uint64
	sum := sha256.New()
	if _, err := io.Copy(sum, &generator{size: size, peak: new(atomic.Uint64)}); err != nil {
		t.Fatal(err)
	}
	id := blob.ID(sum.Sum(nil))
	runtime.GC()
	notePeak(&before)
	store := blob.Checked(db.Blobs())
	if err := blob.PutFrom(t.Context(), store, id, &generator{size: size, peak: &peak}, size); err != nil {
		t.Fatal(err)
	}
	if err := store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := blob.Open(t.Context(), store, id)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n, err := io.Copy(struct{ io.Writer }{io.Discard}, r)
	if err != nil || n != size {
		t.Errorf("read %d bytes, %v; want %d", n, err, size)
	}
	notePeak(&peak)
	growth := int64(peak.Load()) - int64(before.Load())
	if growth > allowed {
		t.Errorf("memory grew by %d MiB for a blob of %d MiB", growth>>20, size>>20)
	}
	t.Logf("%d MiB streamed in and out, memory grew by %d KiB", size>>20, growth>>10)
}
