package cloudagent

import (
	"context"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/kv/memkv"
)

// gated lets a put through when its gate opens.
type gated struct {
	blob.Store
	gates map[blob.ID]chan struct{}
}

func (g *gated) Put(ctx context.Context, blobs ...blob.Blob) error {
	for _, b := range blobs {
		<-g.gates[b.ID]
	}
	return g.Store.Put(ctx, blobs...)
}

func queued(text string) *aiserverv1.PreFetchedBlob {
	b := blob.New([]byte(text))
	return &aiserverv1.PreFetchedBlob{Id: b.ID.Bytes(), Value: b.Data}
}

// A writer that goes on does not keep a waiter from its end: it waits for the writes
// from before its call. Afterwards nothing is left of the queue.
func TestWaitingIsForWhatWasPending(t *testing.T) {
	ctx := t.Context()
	early, late := queued("early"), queued("late")
	g := &gated{Store: memblob.New(), gates: map[blob.ID]chan struct{}{
		blob.ID(early.Id): make(chan struct{}), blob.ID(late.Id): make(chan struct{}),
	}}
	s := New(g, memkv.New(nil), nil)
	if err := s.EnqueueSetBlobs(ctx, "c", early); err != nil {
		t.Fatal(err)
	}
	waiting, done := make(chan struct{}), make(chan error)
	go func() {
		// The call is in progress when it first looks whether its context is done.
		done <- s.WaitForPendingWrites(&announced{Context: ctx, asked: waiting}, "c")
	}()
	<-waiting
	if err := s.EnqueueSetBlobs(ctx, "c", late); err != nil {
		t.Fatal(err)
	}
	close(g.gates[blob.ID(early.Id)])
	if err := <-done; err != nil { // although the late write has not ended
		t.Error(err)
	}
	s.queues.mu.Lock()
	q := s.queues.all["c"]
	s.queues.mu.Unlock()
	q.mu.Lock()
	var last chan struct{}
	for written := range q.pending {
		last = written
	}
	q.mu.Unlock()
	close(g.gates[blob.ID(late.Id)])
	<-last
	// The write leaves the queue right after it has ended, without another call.
	for {
		s.queues.mu.Lock()
		left := len(s.queues.all)
		s.queues.mu.Unlock()
		if left == 0 {
			return
		}
		if ctx.Err() != nil {
			t.Fatal("the idle queue stays in memory")
		}
	}
}

// announced closes a channel when its Done is first asked for.
type announced struct {
	context.Context
	asked chan struct{}
}

func (a *announced) Done() <-chan struct{} {
	if a.asked != nil {
		close(a.asked)
		a.asked = nil
	}
	return a.Context.Done()
}
