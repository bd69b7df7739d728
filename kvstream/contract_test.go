package kvstream_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kvstream"
)

// large lets the suite's largest blobs through.
const large = 80 << 20

func TestContractInMemory(t *testing.T) {
	open := func(t *testing.T) blob.Store {
		return join(t, memblob.New(), &kvstream.Options{MaxLocalBytes: 1 << 30}, nil)
	}
	blobtest.RunWith(t, open, &blobtest.Options{MaxBytes: 2 << 20})
	blobtest.RunModel(t, open)
}

func TestContractThroughTheNarrowestWindow(t *testing.T) {
	blobtest.RunWith(t, func(t *testing.T) blob.Store {
		return join(t, memblob.New(),
			&kvstream.Options{MaxRequests: 1, MaxBytes: 1, KnownFor: -1}, &kvstream.ServeOptions{MaxConcurrent: 1})
	}, &blobtest.Options{MaxBytes: 2 << 20})
}

func TestContractOverHTTP2(t *testing.T) {
	t.Parallel()
	a := listenAgents(t, &kvstream.Options{MaxMessage: large})
	blobtest.Run(t, func(t *testing.T) blob.Store {
		return a.run(t, a.addr, memblob.New(), &kvstream.ServeOptions{MaxMessage: large}).Store
	})
}

func TestContractBehindASlowProxy(t *testing.T) {
	t.Parallel()
	for name, through := range map[string]func(t testing.TB, addr string) *proxy{
		"delayed":   func(t testing.TB, addr string) *proxy { return newProxy(t, addr, 2*time.Millisecond, 64<<10) },
		"throttled": func(t testing.TB, addr string) *proxy { return newProxy(t, addr, 100*time.Microsecond, 1500) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := listenAgents(t, nil)
			p := through(t, a.addr)
			blobtest.RunWith(t, func(t *testing.T) blob.Store {
				return a.run(t, p.addr, memblob.New(), nil).Store
			}, &blobtest.Options{MaxBytes: int64(testenv.Scale(8<<10, 2<<20))}) // a round trip is slow
			local := memblob.New()
			many := a.run(t, p.addr, local, nil).Store
			blobs := make([]blob.Blob, 40)
			for i := range blobs {
				blobs[i] = blob.New(bytes.Repeat([]byte{byte(i)}, 20<<10))
			}
			must(t, many.Put(t.Context(), blobs...))
			wantHas(t, "local store", local, true, blobs...)
			for _, b := range blobs {
				if data, err := many.Get(t.Context(), b.ID); err != nil || !bytes.Equal(data, b.Data) {
					t.Errorf("get: got %d bytes, %v, want %d", len(data), err, len(b.Data))
				}
			}
		})
	}
}

// TestWhatWasAcknowledgedBeforeACutIsThere cuts connections at random points of
// the byte stream, under several writers.
func TestWhatWasAcknowledgedBeforeACutIsThere(t *testing.T) {
	a := listenAgents(t, nil)
	p := newProxy(t, a.addr, 0, 4<<10)
	local := memblob.New()
	for round := range testenv.Scale(40, 1000) {
		r := a.run(t, p.addr, local, nil)
		p.cutAfter(int64(round)*7919 + 1)
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() { writeUntilCut(t, r.Store, local, fmt.Sprintf("round %d, writer %d", round, w)) })
		}
		writers.Wait()
		<-r.Done()
		r.finish()
		if r.err == nil {
			t.Errorf("round %d: the client took a cut for a regular end", round)
		}
		p.cutAfter(-1)
	}
}

func writeUntilCut(t *testing.T, remote, local blob.Store, name string) {
	for i := 0; ; i++ {
		b := blob.New(bytes.Repeat(fmt.Appendf(nil, "%s, blob %d. ", name, i), 1+i%40))
		if err := remote.Put(t.Context(), b); err != nil {
			wantErr(t, "put on a stream that was cut", err, blob.ErrClosed)
			return
		}
		wantHas(t, "local store", local, true, b)
		data, err := remote.Get(t.Context(), b.ID)
		if err != nil {
			wantErr(t, "get on a stream that was cut", err, blob.ErrClosed)
			return
		}
		if !bytes.Equal(data, b.Data) {
			t.Errorf("get: got %d bytes, want %d", len(data), len(b.Data))
		}
	}
}

// TestAFailingClientIsNotAnEmptyOne reads from a client whose disk fails. An answer
// without data would mean that the blobs do not exist.
func TestAFailingClientIsNotAnEmptyOne(t *testing.T) {
	b, big := number(1), blob.New(make([]byte, 2000))
	local := blobtest.NewFaulty(filled(t, b, big))
	s := join(t, local, &kvstream.Options{KnownFor: -1}, &kvstream.ServeOptions{MaxMessage: 1000})
	for what, want := range map[string]error{"fails": nil, "is corrupt": blob.ErrCorrupt, "has no key": blob.ErrWrongKey} {
		local.FailNext(blobtest.OpGet, 2, want)
		if _, err := s.Get(t.Context(), b.ID); err == nil || errors.Is(err, blob.ErrNotFound) || want != nil && !errors.Is(err, want) {
			t.Errorf("get from a store that %s: got %v", what, err)
		}
		if _, err := s.Has(t.Context(), b.ID); err == nil || errors.Is(err, blob.ErrNotFound) {
			t.Errorf("has of a store that %s: got %v", what, err)
		}
	}
	wantErr(t, "get of a blob that does not fit into a message", getErr(t, s, big.ID), blob.ErrTooLarge)
	wantErr(t, "get of an absent blob", getErr(t, s, number(2).ID), blob.ErrNotFound)
	if data, err := s.Get(t.Context(), b.ID); err != nil || !bytes.Equal(data, b.Data) {
		t.Errorf("get after the failures: got %q, %v", data, err)
	}
}

func getErr(t *testing.T, s blob.Store, id blob.ID) error {
	t.Helper()
	_, err := s.Get(t.Context(), id)
	return err
}

// TestBlobsThatDoNotFitAreRefusedByName on both sides, when they are put.
func TestBlobsThatDoNotFitAreRefusedByName(t *testing.T) {
	big := blob.New(make([]byte, 2000))
	for side, limits := range map[string][2]int{"server": {1000, 4000}, "client": {4000, 1000}} {
		local := memblob.New()
		s := join(t, local, &kvstream.Options{MaxMessage: limits[0]}, &kvstream.ServeOptions{MaxMessage: limits[1]})
		err := s.Put(t.Context(), big)
		if !errors.Is(err, blob.ErrTooLarge) || !strings.Contains(err.Error(), big.ID.String()) {
			t.Errorf("put over the limit of the %s: got %v, want ErrTooLarge with the id", side, err)
		}
		if local.Len() != 0 {
			t.Errorf("put over the limit of the %s stored something", side)
		}
	}
}
