package writethrough_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"go.uber.org/goleak"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/blob/writethrough"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	for name, opts := range map[string]*writethrough.Options{
		"default":    nil,
		"tiny queue": {MaxItems: 1, MaxBytes: 1, Verify: writethrough.VerifySum},
	} {
		t.Run(name, func(t *testing.T) {
			open := func(t *testing.T) blob.Store { return open(t, memblob.New(), memblob.New(), opts) }
			blobtest.RunWith(t, open, &blobtest.Options{MaxBytes: 2 << 20})
			blobtest.RunModel(t, open)
		})
	}
	blobtest.Run(t, func(t *testing.T) blob.Store { return open(t, memblob.New(), memblob.New(), nil) })
}

func open(t *testing.T, local, remote blob.Store, opts *writethrough.Options) *writethrough.Store {
	s := writethrough.New(local, remote, opts)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// pair is a store between two that can be watched and broken.
type pair struct {
	*writethrough.Store
	local, remote *blobtest.Faulty
}

func openPair(t *testing.T, opts *writethrough.Options) pair {
	local, remote := blobtest.NewFaulty(memblob.New()), blobtest.NewFaulty(memblob.New())
	return pair{open(t, local, remote, opts), local, remote}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// number returns the i-th of some distinct blobs.
func number(i int) blob.Blob { return blob.New(fmt.Appendf(nil, "blob number %d", i)) }

func numbers(n int) []blob.Blob {
	blobs := make([]blob.Blob, n)
	for i := range blobs {
		blobs[i] = number(i)
	}
	return blobs
}

func wantHas(t *testing.T, name string, s blob.Store, want bool, blobs ...blob.Blob) {
	t.Helper()
	for _, b := range blobs {
		has, err := s.Has(context.Background(), b.ID)
		if err != nil || has[0] != want {
			t.Errorf("%s has %q: got %v, %v, want %t", name, b.Data[:min(20, len(b.Data))], has, err, want)
		}
	}
}

func TestFlushBringsBlobsToBothSides(t *testing.T) {
	p := openPair(t, nil)
	large := blob.New(bytes.Repeat([]byte("large "), 1<<20))
	streamed := blob.New(bytes.Repeat([]byte("streamed "), 1<<18))
	blobs := append(numbers(200), large)
	must(t, p.Put(t.Context(), blobs...))
	must(t, p.PutFrom(t.Context(), streamed.ID, bytes.NewReader(streamed.Data), int64(len(streamed.Data))))
	must(t, p.Flush(t.Context()))
	for _, side := range []blob.Store{p.local, p.remote} {
		for _, b := range append(blobs, streamed) {
			got, err := side.Get(t.Context(), b.ID)
			if err != nil || !bytes.Equal(got, b.Data) {
				t.Fatalf("one side: got %d bytes, %v, want %d", len(got), err, len(b.Data))
			}
		}
		if flushes := side.(*blobtest.Faulty).Calls(blobtest.OpFlush); flushes != 1 {
			t.Errorf("flushes of one side: got %d, want 1", flushes)
		}
	}
	if got := p.remote.Calls(blobtest.OpPutFrom); got != 2 {
		t.Errorf("streams into the remote: got %d, want 2", got)
	}
	if got := p.remote.Calls(blobtest.OpPut); got > 50 {
		t.Errorf("200 small blobs took %d remote puts, want batches", got)
	}
}

func TestExtensionsReachTheRemoteWhole(t *testing.T) {
	p := openPair(t, nil)
	builder := blob.NewBuilder()
	builder.Append([]byte("shared beginning, "))
	first := builder.Blob([]byte("first end"))
	first.LocalOnly = true // so the remote cannot extend it
	must(t, p.Put(t.Context(), first))
	builder.Commit(first)
	second := builder.Blob([]byte("second end"))
	must(t, p.Put(t.Context(), second))
	must(t, p.Flush(t.Context()))
	got, err := p.remote.Get(t.Context(), second.ID)
	if want := "shared beginning, second end"; err != nil || string(got) != want {
		t.Errorf("remote: got %q, %v, want %q", got, err, want)
	}
}

func TestLocalOnlyStaysLocal(t *testing.T) {
	p := openPair(t, nil)
	b := number(1)
	b.LocalOnly = true
	must(t, p.Put(t.Context(), b))
	must(t, p.Flush(t.Context()))
	wantHas(t, "local", p.local, true, b)
	if got := p.remote.Calls(blobtest.OpPut, blobtest.OpPutFrom); got != 0 {
		t.Errorf("remote writes: got %d, want 0", got)
	}
	b.LocalOnly = false
	must(t, p.Put(t.Context(), b))
	must(t, p.Flush(t.Context()))
	wantHas(t, "remote", p.remote, true, b)
}

func TestReadsFallBackToTheRemoteAndStay(t *testing.T) {
	p := openPair(t, nil)
	got, opened := number(1), number(2)
	large := blob.New(bytes.Repeat([]byte("x"), 3<<20))
	must(t, p.remote.Put(t.Context(), got, opened, large))
	wantHas(t, "store", p, true, got, opened, large)
	for range 3 {
		data, err := p.Get(t.Context(), got.ID)
		if err != nil || !bytes.Equal(data, got.Data) {
			t.Fatalf("get: got %q, %v, want %q", data, err, got.Data)
		}
		for _, b := range []blob.Blob{opened, large} {
			if data := read(t, p, b.ID); !bytes.Equal(data, b.Data) {
				t.Fatalf("read: got %d bytes, want %d", len(data), len(b.Data))
			}
		}
	}
	wantHas(t, "local", p.local, true, got, opened)
	if gets, opens := p.remote.Calls(blobtest.OpGet), p.remote.Calls(blobtest.OpOpen); gets != 1 || opens != 4 {
		t.Errorf("remote reads: got %d gets, %d opens, want 1 and 4 (3 of the large one)", gets, opens)
	}
	if puts := p.remote.Calls(blobtest.OpPut); puts != 1 {
		t.Errorf("what came from the remote was sent back: %d puts, want 1", puts)
	}
}

func read(t *testing.T, s blob.Store, id blob.ID) []byte {
	t.Helper()
	r, err := blob.Open(t.Context(), s, id)
	must(t, err)
	data, err := io.ReadAll(r)
	must(t, errors.Join(err, r.Close()))
	return data
}

func TestWrongBytesFromTheRemoteAreNotKept(t *testing.T) {
	p := openPair(t, &writethrough.Options{Verify: writethrough.VerifySum})
	b := number(1)
	must(t, p.remote.Put(t.Context(), b))
	p.remote.On(func(blobtest.Call) *blobtest.Fault { return &blobtest.Fault{Corrupt: true} })
	if _, err := p.Get(t.Context(), b.ID); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("get: got %v, want ErrCorrupt", err)
	}
	if _, err := p.Open(t.Context(), b.ID); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("open: got %v, want ErrCorrupt", err)
	}
	wantHas(t, "local", p.local, false, b)
	p.remote.Heal()
	if got, err := p.Get(t.Context(), b.ID); err != nil || !bytes.Equal(got, b.Data) {
		t.Errorf("get from a healed remote: got %q, %v", got, err)
	}
}

func TestReadSucceedsThoughTheLocalStoreIsFull(t *testing.T) {
	p := openPair(t, nil)
	b := number(1)
	must(t, p.remote.Put(t.Context(), b))
	p.local.FailNext(blobtest.OpPut, 1, blob.ErrFull)
	if got, err := p.Get(t.Context(), b.ID); err != nil || !bytes.Equal(got, b.Data) {
		t.Errorf("get: got %q, %v, want %q", got, err, b.Data)
	}
	if got := p.Stats().NotKept; got != 1 {
		t.Errorf("NotKept: got %d, want 1", got)
	}
}

func TestLocalFailureFailsThePutAndSendsNothing(t *testing.T) {
	p := openPair(t, nil)
	p.local.FailNext(blobtest.OpPut, 1, blob.ErrFull)
	p.local.FailNext(blobtest.OpPutFrom, 1, blob.ErrFull)
	b := number(1)
	if err := p.Put(t.Context(), b); !errors.Is(err, blob.ErrFull) {
		t.Errorf("put: got %v, want ErrFull", err)
	}
	if err := p.PutFrom(t.Context(), b.ID, bytes.NewReader(b.Data), int64(len(b.Data))); !errors.Is(err, blob.ErrFull) {
		t.Errorf("put from: got %v, want ErrFull", err)
	}
	must(t, p.Flush(t.Context()))
	wantHas(t, "remote", p.remote, false, b)
}

// rotten is a store whose blobs can be damaged and repaired.
type rotten struct {
	blob.Store
	bad map[blob.ID]bool
}

func (r *rotten) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if r.bad[id] {
		return nil, blob.Corrupt(id, "rotten")
	}
	return r.Store.Get(ctx, id)
}

func (r *rotten) Repair(_ context.Context, b blob.Blob) error {
	delete(r.bad, b.ID)
	return nil
}

func (r *rotten) RepairFrom(context.Context, blob.ID, io.Reader, int64) error {
	return errors.ErrUnsupported
}

// TestADamagedLocalCopyIsReadFromTheRemote and repaired.
func TestADamagedLocalCopyIsReadFromTheRemote(t *testing.T) {
	for name, read := range map[string]func(blob.Store, blob.ID) ([]byte, error){
		"get": func(s blob.Store, id blob.ID) ([]byte, error) { return s.Get(t.Context(), id) },
		"open": func(s blob.Store, id blob.ID) ([]byte, error) {
			r, err := blob.Open(t.Context(), s, id)
			if err != nil {
				return nil, err
			}
			defer r.Close()
			return io.ReadAll(r)
		},
	} {
		near, far := &rotten{memblob.New(), map[blob.ID]bool{}}, memblob.New()
		s := open(t, blob.Repairing(near, near), far, nil)
		b, only := blob.New([]byte("on both sides")), blob.New([]byte("here only"))
		only.LocalOnly = true
		if err := errors.Join(s.Put(t.Context(), b, only), s.Flush(t.Context())); err != nil {
			t.Fatal(err)
		}
		near.bad[b.ID], near.bad[only.ID] = true, true
		if data, err := read(s, b.ID); err != nil || string(data) != "on both sides" {
			t.Errorf("%s: got %q, %v, want the content of the remote", name, data, err)
		}
		if near.bad[b.ID] {
			t.Errorf("%s: the local copy is still damaged", name)
		}
		if _, err := read(s, only.ID); !errors.Is(err, blob.ErrCorrupt) || errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s of a damaged blob that the remote lacks: got %v, want ErrCorrupt alone", name, err)
		}
	}
}

// TestLayer has a layer between a local store of its own and a remote that others use,
// and between a local store that several processes use and a remote.
func TestLayer(t *testing.T) {
	verified := &writethrough.Options{Verify: writethrough.VerifySum}
	t.Run("remote", func(t *testing.T) {
		blobtest.RunLayer(t, func(t *testing.T, remote blob.Store) blob.Store { return open(t, memblob.New(), remote, verified) })
	})
	t.Run("local", func(t *testing.T) {
		blobtest.RunLayer(t, func(t *testing.T, local blob.Store) blob.Store { return open(t, local, memblob.New(), verified) })
	})
}
