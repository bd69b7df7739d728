package kvstream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kvstream"
)

// served is a responder whose requests the test makes itself.
type served struct {
	*kvstream.Responder
	answers *answers

	mu       sync.Mutex // guards failures
	failures []kvstream.Failure
}

func serve(t testing.TB, local blob.Store, opts kvstream.ServeOptions) *served {
	s := &served{answers: newWire[agentv1.KvClientMessage](64)}
	opts.OnError = func(f kvstream.Failure) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failures = append(s.failures, f)
	}
	s.Responder = kvstream.NewResponder(s.answers, local, &opts)
	t.Cleanup(func() {
		s.answers.end(io.EOF)
		_ = s.Close()
	})
	return s
}

// ask makes a request and returns the answer to it.
func (s *served) ask(t testing.TB, msg *agentv1.KvServerMessage) *agentv1.KvClientMessage {
	t.Helper()
	must(t, s.Handle(t.Context(), msg))
	answer, err := s.answers.Receive()
	must(t, err)
	if answer.GetId() != msg.GetId() {
		t.Errorf("answer: got id %d, want %d", answer.GetId(), msg.GetId())
	}
	return answer
}

func (s *served) wantFailure(t testing.TB, what, op string, want error) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failures) != 1 || s.failures[0].Op != op || !errors.Is(s.failures[0].Err, want) {
		t.Errorf("%s: reported %v, want one failure of %s: %v", what, s.failures, op, want)
	}
	s.failures = nil
}

// wantNoData checks the answer to a get of an absent blob.
func wantNoData(t testing.TB, what string, answer *agentv1.KvClientMessage) {
	t.Helper()
	if result := answer.GetGetBlobResult(); result == nil || result.BlobData != nil {
		t.Errorf("%s: got %v, want a result without data", what, answer)
	}
}

// wantRefused checks the answer to a request that cannot be done.
func wantRefused(t testing.TB, what string, answer *agentv1.KvClientMessage, text string) {
	t.Helper()
	if got := answer.GetSetBlobResult().GetError().GetMessage(); got != text {
		t.Errorf("%s: got error %q, want %q", what, got, text)
	}
}

func TestEveryRequestIsAnswered(t *testing.T) {
	stored, empty := number(1), blob.New(nil)
	s := serve(t, filled(t, stored, empty), kvstream.ServeOptions{})
	if got := s.ask(t, getRequest(7, stored.ID[:])).GetGetBlobResult().GetBlobData(); !bytes.Equal(got, stored.Data) {
		t.Errorf("get: got %q, want %q", got, stored.Data)
	}
	if got := s.ask(t, getRequest(0, empty.ID[:])).GetGetBlobResult(); got == nil || got.BlobData == nil {
		t.Errorf("get of the empty blob: got %v, want data that is there and empty", got)
	}
	wantRefused(t, "get without an id", s.ask(t, getRequest(1<<31, number(2).Data[:0:0])), "invalid blob id")
	s.wantFailure(t, "get without an id", kvstream.OpGet, blob.ErrInvalidID)
	absent := number(2)
	wantNoData(t, "get of an absent blob", s.ask(t, getRequest(3, absent.ID[:])))
	wantRefused(t, "set", s.ask(t, setRequest(4, absent.ID[:], absent.Data)), "")
	if got := s.ask(t, getRequest(5, absent.ID[:])).GetGetBlobResult().GetBlobData(); !bytes.Equal(got, absent.Data) {
		t.Errorf("get after set: got %q, want %q", got, absent.Data)
	}
	want := kvstream.ServeStats{Gets: 5, Sets: 1, Absent: 1, Failed: 1}
	if got := s.Stats(); got != want {
		t.Errorf("stats: got %+v, want %+v", got, want)
	}
}

func TestHostileRequestsAreRefused(t *testing.T) {
	local := memblob.New()
	s := serve(t, local, kvstream.ServeOptions{MaxMessage: 1000})
	b := number(1)
	for _, name := range [][]byte{nil, {}, b.ID[:31], append(b.ID.Bytes(), 0), make([]byte, 900)} {
		wantRefused(t, "get by an odd id", s.ask(t, getRequest(1, name)), "invalid blob id")
		s.wantFailure(t, "get by an odd id", kvstream.OpGet, blob.ErrInvalidID)
		wantRefused(t, "set by an odd id", s.ask(t, setRequest(1, name, b.Data)), "invalid blob id")
		s.wantFailure(t, "set by an odd id", kvstream.OpSet, blob.ErrInvalidID)
	}
	wantRefused(t, "set of other content", s.ask(t, setRequest(2, b.ID[:], []byte("other"))), "content does not match blob id")
	s.wantFailure(t, "set of other content", kvstream.OpSet, blob.ErrMismatch)
	big := blob.New(make([]byte, 1000))
	wantRefused(t, "set of a huge blob", s.ask(t, setRequest(3, big.ID[:], big.Data)), "blob too large")
	s.wantFailure(t, "set of a huge blob", kvstream.OpSet, blob.ErrTooLarge)
	for _, strange := range []*agentv1.KvServerMessage{{Id: 4}, nil} {
		if answer := s.ask(t, strange); answer.GetMessage() != nil {
			t.Errorf("unknown request: got %v, want an answer without a result", answer)
		}
		s.wantFailure(t, "unknown request", kvstream.OpUnknown, kvstream.ErrUnknownRequest)
	}
	if local.Len() != 0 {
		t.Errorf("the store holds %d blobs, want none", local.Len())
	}
	must(t, local.Put(t.Context(), big))
	wantRefused(t, "get of a huge blob", s.ask(t, getRequest(6, big.ID[:])), "blob too large")
	s.wantFailure(t, "get of a huge blob", kvstream.OpGet, blob.ErrTooLarge)
}

func TestAFailingStoreIsReported(t *testing.T) {
	b := number(1)
	secret := errors.New("open /home/me/secret.db: broken")
	for name, c := range map[string]struct {
		err  error
		text string
	}{
		"unknown": {secret, "the store failed"},
		"full":    {errors.Join(secret, blob.ErrFull), "no space left for the store"},
		"closed":  {blob.ErrClosed, "store is closed"},
	} {
		for _, op := range []blobtest.Op{blobtest.OpPut, blobtest.OpFlush} {
			local := blobtest.NewFaulty(memblob.New())
			s := serve(t, local, kvstream.ServeOptions{})
			local.FailNext(op, 1, c.err)
			wantRefused(t, name, s.ask(t, setRequest(1, b.ID[:], b.Data)), c.text)
			s.wantFailure(t, name, kvstream.OpSet, c.err)
		}
		local := blobtest.NewFaulty(filled(t, b))
		s := serve(t, local, kvstream.ServeOptions{})
		local.FailNext(blobtest.OpGet, 1, c.err)
		answer := s.ask(t, getRequest(1, b.ID[:]))
		wantRefused(t, name, answer, c.text)
		s.wantFailure(t, name, kvstream.OpGet, c.err)
		if strings.Contains(answer.String(), "secret") {
			t.Errorf("%s: the answer tells what only we should know: %v", name, answer)
		}
	}
}

func TestCorruptBlobsAreNotServed(t *testing.T) {
	local := blobtest.NewFaulty(filled(t, number(1)))
	s := serve(t, local, kvstream.ServeOptions{})
	local.On(func(blobtest.Call) *blobtest.Fault { return &blobtest.Fault{Corrupt: true} })
	id := number(1).ID
	wantRefused(t, "get", s.ask(t, getRequest(1, id[:])), "blob is corrupt")
	s.wantFailure(t, "get", kvstream.OpGet, blob.ErrCorrupt)
}

func TestOpaqueContentIsStoredAsItIs(t *testing.T) {
	s := serve(t, memblob.New(), kvstream.ServeOptions{Opaque: true})
	id := number(1).ID
	wantRefused(t, "set", s.ask(t, setRequest(1, id[:], []byte("sealed"))), "")
	if got := s.ask(t, getRequest(2, id[:])).GetGetBlobResult().GetBlobData(); string(got) != "sealed" {
		t.Errorf("get: got %q, want the sealed bytes", got)
	}
}

func TestSlowStoreTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := blobtest.NewFaulty(filled(t, number(1)))
		s := serve(t, local, kvstream.ServeOptions{Timeout: 3 * time.Second})
		local.On(func(blobtest.Call) *blobtest.Fault { return &blobtest.Fault{Delay: time.Hour} })
		begin := time.Now()
		id := number(1).ID
		wantRefused(t, "get", s.ask(t, getRequest(1, id[:])), "the store did not finish in time")
		s.wantFailure(t, "get", kvstream.OpGet, context.DeadlineExceeded)
		wantRefused(t, "set", s.ask(t, setRequest(2, id[:], number(1).Data)), "the store did not finish in time")
		s.wantFailure(t, "set", kvstream.OpSet, context.DeadlineExceeded)
		if took := time.Since(begin); took != 6*time.Second {
			t.Errorf("took %s, want 3s for each", took)
		}
	})
}

// TestAFloodIsSlowedDown has a peer that asks without reading answers.
func TestAFloodIsSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := blobtest.NewFaulty(filled(t, number(1)))
		out := newWire[agentv1.KvClientMessage](0)
		r := kvstream.NewResponder(out, local, &kvstream.ServeOptions{MaxConcurrent: 5})
		taken := 0
		id := number(1).ID
		flood := outcome(func() error {
			for i := range uint32(1000) {
				if err := r.Handle(t.Context(), getRequest(i, id[:])); err != nil {
					return err
				}
				taken++
			}
			return nil
		})
		synctest.Wait()
		if taken != 5 || local.Calls() > 5 {
			t.Errorf("a peer that reads nothing got %d requests in, %d of them to the store, want 5", taken, local.Calls())
		}
		seen := make(map[uint32]bool)
		for range 1000 {
			answer, err := out.Receive()
			must(t, err)
			seen[answer.GetId()] = true
		}
		must(t, <-flood)
		must(t, r.Close())
		if len(seen) != 1000 {
			t.Errorf("answers: got %d different ids, want 1000", len(seen))
		}
	})
}

// TestRequestsForOneBlobKeepTheirOrder sends a get right behind the set, while
// the store is slow to set.
func TestRequestsForOneBlobKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := blobtest.NewFaulty(memblob.New())
		local.On(func(c blobtest.Call) *blobtest.Fault {
			if c.Op == blobtest.OpPut {
				return &blobtest.Fault{Delay: time.Second}
			}
			return nil
		})
		s := serve(t, local, kvstream.ServeOptions{})
		b, other := number(1), number(2)
		must(t, s.Handle(t.Context(), setRequest(1, b.ID[:], b.Data)))
		for id := range uint32(3) {
			must(t, s.Handle(t.Context(), getRequest(10+id, b.ID[:])))
		}
		wantNoData(t, "get of another blob, which need not wait", s.ask(t, getRequest(2, other.ID[:])))
		for range 4 {
			answer, err := s.answers.Receive()
			must(t, err)
			if result := answer.GetGetBlobResult(); result != nil && !bytes.Equal(result.GetBlobData(), b.Data) {
				t.Errorf("get behind the set: got %q, want %q", result.GetBlobData(), b.Data)
			}
		}
	})
}

func TestServeEndsWithItsStream(t *testing.T) {
	b := number(1)
	start := func(t *testing.T, local blob.Store) (*requests, *answers, context.CancelFunc, <-chan error) {
		in, out := newWire[agentv1.KvServerMessage](8), newWire[agentv1.KvClientMessage](8)
		ctx, cancel := context.WithCancel(t.Context())
		context.AfterFunc(ctx, func() { in.end(errCut) }) // as the transport does
		return in, out, cancel, outcome(func() error { return kvstream.Serve(ctx, in, out, local, nil) })
	}
	slow := func(t *testing.T) *blobtest.Faulty {
		local := blobtest.NewFaulty(filled(t, b))
		local.On(func(blobtest.Call) *blobtest.Fault { return &blobtest.Fault{Delay: 10 * time.Second} })
		return local
	}
	for name, check := range map[string]func(t *testing.T){
		"regularly, after the last answer": func(t *testing.T) {
			in, out, cancel, ended := start(t, slow(t))
			defer cancel()
			must(t, in.Send(getRequest(1, b.ID[:])))
			in.end(io.EOF)
			must(t, <-ended)
			if answer, err := out.Receive(); err != nil || answer.GetGetBlobResult().GetBlobData() == nil {
				t.Errorf("answer: got %v, %v", answer, err)
			}
		},
		"when the peer vanishes, without answers": func(t *testing.T) {
			in, out, cancel, ended := start(t, slow(t))
			defer cancel()
			must(t, in.Send(getRequest(1, b.ID[:])))
			synctest.Wait()
			in.end(errCut)
			wantErr(t, "serve", <-ended, errCut)
			if len(out.messages) != 0 {
				t.Error("a get that was cut short was answered as if the blob were absent")
			}
		},
		"when the context ends": func(t *testing.T) {
			in, out, cancel, ended := start(t, slow(t))
			must(t, in.Send(getRequest(1, b.ID[:])))
			synctest.Wait()
			cancel()
			wantErr(t, "serve", <-ended, context.Canceled)
			if len(out.messages) != 0 {
				t.Error("a get that was cut short was answered as if the blob were absent")
			}
		},
		"when answers cannot be sent": func(t *testing.T) {
			in, out, cancel, ended := start(t, memblob.New())
			defer cancel()
			out.end(errCut)
			must(t, in.Send(getRequest(1, b.ID[:])))
			synctest.Wait()
			must(t, in.Send(getRequest(2, b.ID[:])))
			wantErr(t, "serve", <-ended, errCut)
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, check) })
	}
}

func TestAClosedResponderTakesNothing(t *testing.T) {
	s := serve(t, memblob.New(), kvstream.ServeOptions{})
	must(t, s.Close())
	wantErr(t, "handle", s.Handle(t.Context(), getRequest(1, nil)), blob.ErrClosed)
}
