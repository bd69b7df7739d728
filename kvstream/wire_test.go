package kvstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kvstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errCut = errors.New("the wire was cut")

// wire is one direction of a stream in memory. Like a real one it carries
// copies, holds few messages, and can be ended or cut.
type wire[T any, M interface {
	*T
	proto.Message
}] struct {
	messages chan M
	once     sync.Once
	ended    chan struct{}
	err      error // set before ended is closed
}

type (
	requests = wire[agentv1.KvServerMessage, *agentv1.KvServerMessage]
	answers  = wire[agentv1.KvClientMessage, *agentv1.KvClientMessage]
)

func newWire[T any, M interface {
	*T
	proto.Message
}](capacity int) *wire[T, M] {
	return &wire[T, M]{messages: make(chan M, capacity), ended: make(chan struct{})}
}

func (w *wire[T, M]) end(err error) {
	w.once.Do(func() { w.err = err; close(w.ended) })
}

func (w *wire[T, M]) Send(msg *T) error {
	select {
	case <-w.ended:
		return w.err
	default:
	}
	select {
	case w.messages <- proto.Clone(M(msg)).(M):
		return nil
	case <-w.ended:
		return w.err
	}
}

// Receive returns what was sent before the end, too, unless the wire was cut.
func (w *wire[T, M]) Receive() (*T, error) {
	select {
	case msg := <-w.messages:
		return msg, nil
	case <-w.ended:
	}
	if w.err == io.EOF {
		select {
		case msg := <-w.messages:
			return msg, nil
		default:
		}
	}
	return nil, w.err
}

// pair is a store and the one who serves it, with wires between.
type pair struct {
	*kvstream.Store
	requests *requests
	answers  *answers
}

// join connects a store with local. The cleanup ends the stream in the regular
// way and wants both sides to end well.
func join(t testing.TB, local blob.Store, opts *kvstream.Options, serve *kvstream.ServeOptions) *pair {
	p := &pair{requests: newWire[agentv1.KvServerMessage](4), answers: newWire[agentv1.KvClientMessage](4)}
	p.Store = kvstream.New(p.requests, opts)
	var sides sync.WaitGroup
	sides.Go(func() {
		defer p.answers.end(io.EOF)
		if err := kvstream.Serve(context.WithoutCancel(t.Context()), p.requests, p.answers, local, serve); err != nil && !errors.Is(err, errCut) {
			t.Errorf("serve: %v", err)
		}
	})
	sides.Go(func() {
		if err := p.Run(p.answers); err != nil && !errors.Is(err, errCut) {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(func() {
		p.requests.end(io.EOF)
		sides.Wait()
	})
	return p
}

// asker is a store whose requests the test answers itself.
type asker struct {
	*kvstream.Store
	requests *requests
}

func newAsker(t testing.TB, opts *kvstream.Options) *asker {
	a := &asker{requests: newWire[agentv1.KvServerMessage](64)}
	a.Store = kvstream.New(a.requests, opts)
	t.Cleanup(func() {
		a.requests.end(io.EOF)
		must(t, a.Close())
		<-a.Done()
	})
	return a
}

func (a *asker) next(t testing.TB) *agentv1.KvServerMessage {
	t.Helper()
	msg, err := a.requests.Receive()
	must(t, err)
	return msg
}

func gotAnswer(id uint32, data []byte) *agentv1.KvClientMessage {
	return &agentv1.KvClientMessage{Id: id, Message: &agentv1.KvClientMessage_GetBlobResult{
		GetBlobResult: &agentv1.GetBlobResult{BlobData: data}}}
}

func setAnswer(id uint32, failure string) *agentv1.KvClientMessage {
	result := &agentv1.SetBlobResult{}
	if failure != "" {
		result.Error = &agentv1.Error{Message: failure}
	}
	return &agentv1.KvClientMessage{Id: id, Message: &agentv1.KvClientMessage_SetBlobResult{SetBlobResult: result}}
}

func getRequest(id uint32, name []byte) *agentv1.KvServerMessage {
	return &agentv1.KvServerMessage{Id: id, Message: &agentv1.KvServerMessage_GetBlobArgs{
		GetBlobArgs: &agentv1.GetBlobArgs{BlobId: name}}}
}

func setRequest(id uint32, name, data []byte) *agentv1.KvServerMessage {
	return &agentv1.KvServerMessage{Id: id, Message: &agentv1.KvServerMessage_SetBlobArgs{
		SetBlobArgs: &agentv1.SetBlobArgs{BlobId: name, BlobData: data}}}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
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

func wantHas(t testing.TB, what string, s blob.Store, want bool, blobs ...blob.Blob) {
	t.Helper()
	for _, b := range blobs {
		has, err := s.Has(context.Background(), b.ID)
		if err != nil || has[0] != want {
			t.Errorf("%s has %q: got %v, %v, want %t", what, b.Data[:min(20, len(b.Data))], has, err, want)
		}
	}
}

func filled(t testing.TB, blobs ...blob.Blob) *memblob.Store {
	t.Helper()
	s := memblob.New()
	must(t, s.Put(t.Context(), blobs...))
	return s
}
