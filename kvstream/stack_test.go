package kvstream_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/cached"
	"github.com/stet-dev/stet/blob/encrypted"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/blob/writethrough"
	"github.com/stet-dev/stet/keyring"
)

// stack is what a server builds over a run: memory, over an encrypted store
// nearby, over the client at the other end of the stream.
type stack struct {
	blob.Store
	nearby *memblob.Store
	client *blobtest.Faulty // what the client keeps for good
	run    *run
}

func openStack(t testing.TB, a *agentServer, ring *keyring.Ring) *stack {
	s := &stack{nearby: memblob.New(), client: blobtest.NewFaulty(memblob.New())}
	s.run = a.run(t, a.addr, s.client, nil)
	through := writethrough.New(encrypted.New(s.nearby, ring, nil), s.run, &writethrough.Options{Verify: writethrough.VerifySum})
	s.Store = blob.Checked(cached.New(through, &cached.Options{MaxBytes: 4 << 20}))
	t.Cleanup(func() {
		if err := through.Close(context.Background()); err != nil && !t.Failed() {
			t.Logf("close: %v", err) // of what a test made fail
		}
	})
	return s
}

func newRing(t testing.TB) *keyring.Ring {
	t.Helper()
	ring, err := keyring.Create(filepath.Join(t.TempDir(), "keys.json"), keyring.Raw(bytes.Repeat([]byte{7}, 32)))
	must(t, err)
	return ring
}

func TestServerStackKeepsTheContract(t *testing.T) {
	a, ring := listenAgents(t, nil), newRing(t)
	blobtest.RunWith(t, func(t *testing.T) blob.Store { return openStack(t, a, ring) }, &blobtest.Options{MaxBytes: 2 << 20})
}

// TestACheckpointIsAnnouncedWhenItsBlobsAreThere does what a run does after each
// step: put the new blobs, flush, announce the root. A reader that knows the root
// must find everything below it at the client.
func TestACheckpointIsAnnouncedWhenItsBlobsAreThere(t *testing.T) {
	s := openStack(t, listenAgents(t, nil), newRing(t))
	var broken atomic.Int64
	s.client.FailWhen(func(c blobtest.Call) bool { return c.Op == blobtest.OpPut && broken.Add(-1) >= 0 }, nil)
	announced := 0
	for step := range 20 {
		if step%5 == 3 {
			broken.Store(2) // the client's disk has a bad moment
		}
		blobs := make([]blob.Blob, 30)
		var root []byte
		for i := range blobs {
			blobs[i] = blob.New(fmt.Appendf(nil, "step %d, part %d, of which the client must know", step, i))
			root = append(root, blobs[i].ID[:]...)
		}
		blobs = append(blobs, blob.New(root))
		must(t, s.Put(t.Context(), blobs...))
		if err := s.Flush(t.Context()); err != nil {
			continue // not announced
		}
		announced++
		broken.Store(0)
		wantHas(t, "client", s.client, true, blobs...)
	}
	if announced < 16 {
		t.Errorf("announced %d of 20 checkpoints, want all but those of bad moments", announced)
	}
	must(t, s.Flush(t.Context()))
	must(t, s.nearby.List(t.Context(), blob.ID{}, func(info blob.Info) error {
		data, err := s.nearby.Get(t.Context(), info.ID)
		if bytes.Contains(data, []byte("the client must know")) {
			t.Error("the store nearby holds plain content")
		}
		return err
	}))
}

func TestStackReadsFromTheClientOnce(t *testing.T) {
	s := openStack(t, listenAgents(t, nil), newRing(t))
	b := number(1)
	must(t, s.client.Put(t.Context(), b))
	for range 3 {
		if data, err := s.Get(t.Context(), b.ID); err != nil || !bytes.Equal(data, b.Data) {
			t.Fatalf("get: got %q, %v, want %q", data, err, b.Data)
		}
	}
	if got := s.client.Calls(blobtest.OpGet); got != 1 {
		t.Errorf("gets of the client: got %d, want 1", got)
	}
}

func TestStackOutlivesItsStream(t *testing.T) {
	s := openStack(t, listenAgents(t, nil), newRing(t))
	before, after := number(1), number(2)
	must(t, s.Put(t.Context(), before))
	must(t, s.Flush(t.Context()))
	s.run.finish()
	must(t, s.Flush(t.Context())) // all of it is there
	must(t, s.Put(t.Context(), after))
	wantErr(t, "flush of what the client cannot get", s.Flush(t.Context()), blob.ErrClosed)
	wantHas(t, "stack", s, true, before, after)
	_, err := s.Get(t.Context(), number(3).ID)
	wantErr(t, "get of what only the client could have", err, blob.ErrClosed)
}
