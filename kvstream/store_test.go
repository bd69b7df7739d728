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
	"github.com/stet-dev/stet/blob/memblob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kvstream"
)

// outcome runs fn aside and returns where its error will be.
func outcome(fn func() error) <-chan error {
	err := make(chan error, 1)
	go func() { err <- fn() }()
	return err
}

func (a *asker) get(ctx context.Context, id blob.ID) <-chan error {
	return outcome(func() error { _, err := a.Get(ctx, id); return err })
}

func (a *asker) put(ctx context.Context, blobs ...blob.Blob) <-chan error {
	return outcome(func() error { return a.Put(ctx, blobs...) })
}

func TestRequestIDsStartAtZero(t *testing.T) {
	a := newAsker(t, nil)
	for want := range uint32(5) {
		b := number(int(want))
		got := outcome(func() error {
			data, err := a.Get(t.Context(), b.ID)
			if err == nil && !bytes.Equal(data, b.Data) {
				return errors.New("other bytes: " + string(data))
			}
			return err
		})
		msg := a.next(t)
		if msg.GetId() != want || !bytes.Equal(msg.GetGetBlobArgs().GetBlobId(), b.ID[:]) {
			t.Errorf("request: got %v, want id %d for %s", msg, want, b.ID)
		}
		a.Deliver(gotAnswer(msg.GetId(), b.Data))
		must(t, <-got)
	}
}

func TestAbsentAndEmptyDiffer(t *testing.T) {
	a := newAsker(t, nil)
	empty := blob.New(nil)
	got := a.get(t.Context(), empty.ID)
	a.Deliver(gotAnswer(a.next(t).GetId(), nil))
	wantErr(t, "get without data", <-got, blob.ErrNotFound)
	got = a.get(t.Context(), empty.ID)
	a.Deliver(gotAnswer(a.next(t).GetId(), []byte{}))
	must(t, <-got)
}

func TestAnswersMayComeInAnyOrder(t *testing.T) {
	a := newAsker(t, nil)
	blobs := numbers(30)
	var readers sync.WaitGroup
	for _, b := range blobs {
		readers.Go(func() {
			if data, err := a.Get(t.Context(), b.ID); err != nil || !bytes.Equal(data, b.Data) {
				t.Errorf("get: got %q, %v, want %q", data, err, b.Data)
			}
		})
	}
	content := make(map[blob.ID][]byte)
	for _, b := range blobs {
		content[b.ID] = b.Data
	}
	asked := make([]*agentv1.KvServerMessage, len(blobs))
	for i := range asked {
		asked[len(asked)-1-i] = a.next(t)
	}
	for _, msg := range asked {
		a.Deliver(gotAnswer(msg.GetId(), content[blob.ID(msg.GetGetBlobArgs().GetBlobId())]))
	}
	readers.Wait()
}

func TestStrangeAnswersAreCountedAndDropped(t *testing.T) {
	a := newAsker(t, nil)
	b := number(1)
	a.Deliver(gotAnswer(0, b.Data)) // nobody asked yet
	a.Deliver(nil)
	a.Deliver(gotAnswer(1<<32-1, b.Data))
	got := a.get(t.Context(), b.ID)
	id := a.next(t).GetId()
	a.Deliver(gotAnswer(id+1, b.Data))
	a.Deliver(gotAnswer(id, b.Data))
	must(t, <-got)
	a.Deliver(gotAnswer(id, []byte("another answer")))
	a.Deliver(setAnswer(id, ""))
	stats := a.Stats()
	if stats.Unknown != 4 || stats.Repeated != 2 || stats.Waiting != 0 || stats.Requests != 1 {
		t.Errorf("stats: got %+v, want 4 unknown and 2 repeated answers, 1 request, none waiting", stats)
	}
}

func TestWrongKindOfAnswerIsAnError(t *testing.T) {
	a := newAsker(t, nil)
	for name, answer := range map[string]*agentv1.KvClientMessage{
		"the other kind": setAnswer(0, ""), "nothing": {},
	} {
		got := a.get(t.Context(), number(1).ID)
		answer.Id = a.next(t).GetId()
		a.Deliver(answer)
		wantErr(t, "get answered by "+name, <-got, kvstream.ErrUnexpectedAnswer)
	}
	put := a.put(t.Context(), number(1))
	a.Deliver(gotAnswer(a.next(t).GetId(), number(1).Data))
	wantErr(t, "put answered by a get's result", <-put, kvstream.ErrUnexpectedAnswer)
	if got := a.Stats().Unexpected; got != 3 {
		t.Errorf("unexpected answers: got %d, want 3", got)
	}
}

func TestAPeerThatLiesIsFoundOut(t *testing.T) {
	a := newAsker(t, nil)
	got := a.get(t.Context(), number(1).ID)
	a.Deliver(gotAnswer(a.next(t).GetId(), number(2).Data))
	wantErr(t, "get of other bytes", <-got, blob.ErrCorrupt)

	opaque := newAsker(t, &kvstream.Options{Opaque: true})
	got = opaque.get(t.Context(), number(1).ID)
	opaque.Deliver(gotAnswer(opaque.next(t).GetId(), number(2).Data))
	if err := <-got; err != nil {
		t.Errorf("get of sealed bytes: %v", err)
	}
}

func TestErrorsOfThePeerKeepTheirMeaning(t *testing.T) {
	a := newAsker(t, nil)
	for text, want := range map[string]error{
		"no space left for the store":    blob.ErrFull,
		"store is read-only":             blob.ErrReadOnly,
		"content does not match blob id": blob.ErrMismatch,
		"disk on fire\n\x1b[31m":         nil,
		strings.Repeat("long ", 1000):    nil,
	} {
		put := a.put(t.Context(), number(1))
		a.Deliver(setAnswer(a.next(t).GetId(), text))
		err := <-put
		var peer *kvstream.PeerError
		if !errors.As(err, &peer) || (want != nil && !errors.Is(err, want)) {
			t.Errorf("put refused with %.20q: got %v, want %v", text, err, want)
			continue
		}
		if got := err.Error(); len(got) > 500 || strings.ContainsAny(got, "\n\x1b") {
			t.Errorf("put refused with %.20q: the error says %q", text, got)
		}
	}
}

func TestAClosedStreamFailsEveryCall(t *testing.T) {
	for name, end := range map[string]func(*asker){
		"close": func(a *asker) { must(t, a.Close()) },
		"eof":   func(a *asker) { a.CloseWithError(io.EOF) },
		"send": func(a *asker) {
			a.requests.end(errCut)
			a.Deliver(gotAnswer(0, nil)) // lets the next request out, into a cut wire
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAsker(t, &kvstream.Options{MaxRequests: 3})
			var calls []<-chan error
			for i := range 4 { // more than fit into the window
				calls = append(calls, a.get(t.Context(), number(i).ID), a.put(t.Context(), number(10+i)))
			}
			for range 3 {
				a.next(t)
			}
			end(a)
			closed := 0
			for _, call := range calls {
				err := <-call
				if errors.Is(err, blob.ErrClosed) {
					closed++
				}
				if errors.Is(err, io.EOF) {
					t.Errorf("call on a closed stream: got %v, which callers take for the end of a blob", err)
				}
			}
			if closed < 7 {
				t.Errorf("got %d calls that failed with ErrClosed, want at least 7 of 8", closed)
			}
			<-a.Done()
			_, err := a.Get(t.Context(), number(1).ID)
			wantErr(t, "get afterwards", err, blob.ErrClosed)
			wantErr(t, "put afterwards", a.Put(t.Context(), number(1)), blob.ErrClosed)
			local := number(1)
			local.LocalOnly = true
			wantErr(t, "local put afterwards", a.Put(t.Context(), local), blob.ErrClosed)
			must(t, a.Flush(t.Context())) // nothing that was acknowledged is missing
			if waiting := a.Stats().Waiting; waiting != 0 {
				t.Errorf("waiting calls: got %d, want 0", waiting)
			}
		})
	}
}

func TestASilentPeerTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, &kvstream.Options{Timeout: 5 * time.Second, MaxRequests: 2})
		begin := time.Now()
		get := a.get(t.Context(), number(1).ID)
		synctest.Wait()
		put := a.put(t.Context(), number(2))
		wantErr(t, "get", <-get, kvstream.ErrNoAnswer)
		wantErr(t, "put", <-put, kvstream.ErrNoAnswer)
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("took %s, want 5s", took)
		}
		id := a.next(t).GetId()
		a.Deliver(gotAnswer(id, number(1).Data))
		if stats := a.Stats(); stats.Repeated != 1 || stats.Waiting != 0 {
			t.Errorf("after a late answer: got %+v, want it dropped", stats)
		}
		// The stream itself is still good.
		a.next(t)
		again := a.get(t.Context(), number(1).ID)
		a.Deliver(gotAnswer(a.next(t).GetId(), number(1).Data))
		must(t, <-again)
	})
}

func TestWaitingForRoomCountsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, &kvstream.Options{Timeout: 5 * time.Second, MaxRequests: 2})
		begin := time.Now()
		gets := []<-chan error{a.get(t.Context(), number(1).ID), a.get(t.Context(), number(2).ID)}
		time.Sleep(2 * time.Second)
		put := a.put(t.Context(), number(3)) // finds room when the gets give up
		for _, get := range gets {
			wantErr(t, "get", <-get, kvstream.ErrNoAnswer)
		}
		wantErr(t, "put", <-put, kvstream.ErrNoAnswer)
		if took := time.Since(begin); took != 7*time.Second {
			t.Errorf("the put, begun after 2s, ended after %s, want 7s", took)
		}
		begin = time.Now()
		wantErr(t, "put of more than there is room for", <-a.put(t.Context(), numbers(5)...), kvstream.ErrNoAnswer)
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("it took %s, want 5s", took)
		}
	})
}

func TestACallerMayGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		var sent []*agentv1.KvServerMessage
		a := &asker{Store: kvstream.New(kvstream.SendFunc[agentv1.KvServerMessage](func(msg *agentv1.KvServerMessage) error {
			<-stuck
			sent = append(sent, msg)
			return nil
		}), &kvstream.Options{MaxRequests: 2})}
		ctx, cancel := context.WithCancel(t.Context())
		b := blob.New(bytes.Repeat([]byte("mine "), 100))
		calls := []<-chan error{a.put(ctx, b)}
		synctest.Wait()
		calls = append(calls, a.get(ctx, number(1).ID), a.get(ctx, number(2).ID)) // one waits to be sent, one for room
		synctest.Wait()
		cancel()
		for _, call := range calls {
			wantErr(t, "call that was given up", <-call, context.Canceled)
		}
		clear(b.Data) // ours again, although the stream still holds the message
		must(t, a.Flush(t.Context()))
		close(stuck)
		synctest.Wait()
		if len(sent) != 1 || blob.Sum(sent[0].GetSetBlobArgs().GetBlobData()) != b.ID {
			t.Errorf("sent: got %v, want nothing but the set, as it was put", sent)
		}
		must(t, a.Close())
		<-a.Done()
	})
}

func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, &kvstream.Options{MaxRequests: 10, MaxBytes: 1000})
		var puts []<-chan error
		for i := range 6 {
			puts = append(puts, a.put(t.Context(), blob.New(bytes.Repeat([]byte{byte(i)}, 400))))
		}
		for left := 6; left > 0; left-- {
			synctest.Wait()
			if got, want := a.Stats().Waiting, min(2, left); got != want {
				t.Errorf("sets of 400 bytes on their way: got %d, want %d in 1000 bytes", got, want)
			}
			a.Deliver(setAnswer(a.next(t).GetId(), ""))
		}
		for _, put := range puts {
			must(t, <-put)
		}
		// One that is larger than the window goes alone.
		put := a.put(t.Context(), blob.New(make([]byte, 5000)))
		a.Deliver(setAnswer(a.next(t).GetId(), ""))
		must(t, <-put)
	})
}

func TestFlushWaitsForSetsOnTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(t, nil)
		put, get := a.put(t.Context(), numbers(3)...), a.get(t.Context(), number(9).ID)
		synctest.Wait()
		flush := outcome(func() error { return a.Flush(t.Context()) })
		var sets []uint32
		for range 4 {
			if msg := a.next(t); msg.GetSetBlobArgs() != nil {
				sets = append(sets, msg.GetId())
			}
		}
		for _, id := range sets {
			synctest.Wait()
			select {
			case err := <-flush:
				t.Fatalf("flush returned before set %d was answered: %v", id, err)
			default:
			}
			a.Deliver(setAnswer(id, ""))
		}
		must(t, <-flush) // although the get still waits
		must(t, <-put)
		put = a.put(t.Context(), number(1))
		synctest.Wait()
		flush = outcome(func() error { return a.Flush(t.Context()) })
		synctest.Wait()
		a.CloseWithError(errCut)
		wantErr(t, "flush over a stream that breaks", <-flush, blob.ErrClosed)
		wantErr(t, "put", <-put, blob.ErrClosed)
		wantErr(t, "get", <-get, blob.ErrClosed)
	})
}

func TestLargeBlobsAreRefusedBeforeTheyAreSent(t *testing.T) {
	a := newAsker(t, nil)
	big := blob.New(make([]byte, kvstream.DefaultMaxMessage))
	wantErr(t, "put", a.Put(t.Context(), big), blob.ErrTooLarge)
	unread := io.MultiReader() // would be found too short if it were read
	wantErr(t, "put from", a.PutFrom(t.Context(), big.ID, unread, 1<<40), blob.ErrTooLarge)
	if stats := a.Stats(); stats.Requests != 0 {
		t.Errorf("requests: got %d, want 0", stats.Requests)
	}
	got := a.get(t.Context(), big.ID)
	a.Deliver(gotAnswer(a.next(t).GetId(), big.Data))
	wantErr(t, "get of a blob that is too large", <-got, blob.ErrTooLarge)

	fits := blob.New(make([]byte, kvstream.DefaultMaxMessage-100))
	p := join(t, memblob.New(), nil, nil)
	must(t, p.Put(t.Context(), fits))
	data, err := p.Get(t.Context(), fits.ID)
	if err != nil || len(data) != len(fits.Data) {
		t.Errorf("get of the largest blob: got %d bytes, %v", len(data), err)
	}
}

// TestAGuessedAnswerIsDropped has a peer that answers, with a success, a set
// that has not been sent.
func TestAGuessedAnswerIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asker{requests: newWire[agentv1.KvServerMessage](0)}
		a.Store = kvstream.New(a.requests, nil)
		puts := []<-chan error{a.put(t.Context(), number(1)), a.put(t.Context(), number(2)), a.put(t.Context(), number(3))}
		synctest.Wait() // one in Send, two behind it
		a.Deliver(setAnswer(1, ""))
		a.Deliver(setAnswer(2, ""))
		if stats := a.Stats(); stats.Unknown != 2 || stats.Waiting != 3 {
			t.Errorf("stats: got %+v, want 2 unknown answers and 3 waiting calls", stats)
		}
		for range puts {
			a.Deliver(setAnswer(a.next(t).GetId(), ""))
		}
		for _, put := range puts {
			must(t, <-put)
		}
		a.requests.end(io.EOF)
		must(t, a.Close())
		<-a.Done()
	})
}
