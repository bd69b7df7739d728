package kvstream_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/blobtest"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kvstream"
)

func TestLocalOnlyIsNotSent(t *testing.T) {
	local := memblob.New()
	p := join(t, local, nil, nil)
	b := number(1)
	b.LocalOnly = true
	must(t, p.Put(t.Context(), b))
	must(t, p.Flush(t.Context()))
	wantHas(t, "store", p, true, b)
	if got := p.Stats().Requests; got != 0 {
		t.Errorf("requests: got %d, want 0", got)
	}
	for range 2 {
		data, err := p.Get(t.Context(), b.ID)
		if err != nil || !bytes.Equal(data, b.Data) {
			t.Errorf("get: got %q, %v, want %q", data, err, b.Data)
		}
		clear(data)
	}
	b.LocalOnly = false
	must(t, p.Put(t.Context(), b))
	wantHas(t, "peer", local, true, b)
	if _, err := p.Get(t.Context(), b.ID); err != nil || p.Stats().Requests != 2 {
		t.Errorf("get of a blob that the peer has: got %v after %d requests, want it to come from there", err, p.Stats().Requests)
	}
}

func TestLocalOnlyIsBounded(t *testing.T) {
	p := join(t, memblob.New(), &kvstream.Options{MaxLocalBytes: 1000}, nil)
	blobs := make([]blob.Blob, 3)
	for i := range blobs {
		blobs[i] = blob.New(bytes.Repeat([]byte{byte(i)}, 400))
		blobs[i].LocalOnly = true
	}
	must(t, p.Put(t.Context(), blobs[0], blobs[1], blobs[0]))
	wantErr(t, "put beyond the limit", p.Put(t.Context(), blobs[2]), blob.ErrFull)
	blobs[0].LocalOnly = false
	must(t, p.Put(t.Context(), blobs[0])) // makes room
	must(t, p.Put(t.Context(), blobs[2]))
	wantHas(t, "store", p, true, blobs...)
}

func TestOneNonLocalMentionSendsTheBlob(t *testing.T) {
	local := memblob.New()
	p := join(t, local, nil, nil)
	b := number(1)
	private := b
	private.LocalOnly = true
	must(t, p.Put(t.Context(), private, b, private))
	wantHas(t, "peer", local, true, b)
}

func TestAPutMayExtendItsOwnBlobs(t *testing.T) {
	local := memblob.New()
	p := join(t, local, nil, nil)
	builder := blob.NewBuilder()
	builder.Append([]byte("shared, "))
	first := builder.Blob([]byte("first end"))
	builder.Commit(first)
	second := builder.Blob([]byte("second end"))
	must(t, p.Put(t.Context(), first, second))
	if got, err := local.Get(t.Context(), second.ID); err != nil || string(got) != "shared, second end" {
		t.Errorf("peer: got %q, %v", got, err)
	}
	wantErr(t, "put that keeps less than nothing",
		p.Put(t.Context(), blob.Blob{ID: number(1).ID, Like: first.ID, Keep: -1}), blob.ErrMismatch)
}

func TestHasAsksOnlyWhatItDoesNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := blobtest.NewFaulty(memblob.New())
		p := join(t, local, &kvstream.Options{KnownFor: time.Minute}, nil)
		stored, other := number(1), number(2)
		must(t, local.Put(t.Context(), other))
		must(t, p.Put(t.Context(), stored))
		wantGets := func(want int) {
			t.Helper()
			if got := local.Calls(blobtest.OpGet); got != want {
				t.Errorf("gets: got %d, want %d", got, want)
			}
		}
		for range 3 {
			wantHas(t, "store", p, true, stored)
		}
		wantGets(0)
		for range 3 {
			has, err := p.Has(t.Context(), other.ID, stored.ID, other.ID)
			if err != nil || !has[0] || !has[1] || !has[2] {
				t.Errorf("has: got %v, %v", has, err)
			}
		}
		wantGets(1)
		wantHas(t, "store", p, false, number(3), number(3))
		wantGets(3) // what is absent now may come at any time
		time.Sleep(time.Minute)
		wantHas(t, "store", p, true, stored)
		wantGets(4)
	})
}

func TestWhatIsKnownIsBounded(t *testing.T) {
	local := blobtest.NewFaulty(memblob.New())
	p := join(t, local, &kvstream.Options{MaxKnown: 10}, nil)
	blobs := numbers(100)
	must(t, p.Put(t.Context(), blobs...))
	wantHas(t, "store", p, true, blobs...)
	if got := local.Calls(blobtest.OpGet); got < 90 {
		t.Errorf("gets: got %d of 100, but only 10 ids may be known", got)
	}
}

func TestHasReportsWhatItCannotFindOut(t *testing.T) {
	p := join(t, filled(t, number(1), number(2)), nil, nil)
	p.requests.end(errCut)
	<-p.Done()
	_, err := p.Has(t.Context(), number(1).ID, number(2).ID)
	wantErr(t, "has over a broken stream", err, blob.ErrClosed)
}
