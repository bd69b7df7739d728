package server_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/server"
)

// zeros is a blob of a size, as it can be sent without holding it.
func zeros(t *testing.T, n int64) blob.ID {
	t.Helper()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(nothing{}, n)); err != nil {
		t.Fatal(err)
	}
	return blob.ID(sum.Sum(nil))
}

type nothing struct{}

func (nothing) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A blob that does not fit into a message comes as a stream only, and no call reads
// more than the server has memory for.
func TestLargeBlobs(t *testing.T) {
	c := dial(t, start(t, &server.Options{Token: token, AnswerBytes: 32 << 20}), token)
	ctx := t.Context()
	hc, base := c.HTTP()
	blobs := stetv1connect.NewBlobServiceClient(hc, base)
	conversations := stetv1connect.NewConversationServiceClient(hc, base)
	pages := stetv1connect.NewPageServiceClient(hc, base)

	fits := blob.New(random(1, 4<<20-1<<10))
	large := blob.New(random(2, 4<<20))
	for _, b := range []blob.Blob{fits, large} {
		if err := c.Blobs().PutFrom(ctx, b.ID, bytes.NewReader(b.Data), int64(len(b.Data))); err != nil {
			t.Fatal(err)
		}
	}
	const hugeSize = 40 << 20
	huge := zeros(t, hugeSize)
	if err := c.Blobs().PutFrom(ctx, huge, io.LimitReader(nothing{}, hugeSize), hugeSize); err != nil {
		t.Fatal(err)
	}

	if got := call(t, blobs.Get, &stetv1.GetBlobRequest{Id: fits.ID.Bytes()}); !bytes.Equal(got.GetData(), fits.Data) {
		t.Errorf("got %d bytes, want those that were put", len(got.GetData()))
	}
	for name, id := range map[string]blob.ID{"large": large.ID, "huge": huge} {
		_, err := blobs.Get(ctx, &stetv1.GetBlobRequest{Id: id.Bytes()})
		var wire *connect.Error
		if !errors.As(err, &wire) || wire.Code() != connect.CodeResourceExhausted || wire.Meta().Get("Stet-Error") != "blob-too-large" ||
			!strings.Contains(wire.Message(), "4193280") || !strings.Contains(wire.Message(), "stet.v1.BlobService/Open") {
			t.Errorf("%s: %v, want the limit and the stream", name, err)
		}
		if _, err := conversations.Inspect(ctx, &stetv1.InspectRequest{Id: id.Bytes(), Kind: "state"}); connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Errorf("inspect %s as a state: %v", name, err)
		}
		graph := call(t, pages.Graph, &stetv1.GraphRequest{Id: id.Bytes()})
		if got := graph.GetNodes()[0].GetError(); got != "too large to show" {
			t.Errorf("graph of %s: %q", name, got)
		}
	}
	shown := call(t, conversations.Inspect, &stetv1.InspectRequest{Id: huge.Bytes(), Kind: "bytes"})
	if shown.GetSize() != hugeSize || !shown.GetTruncated() || len(shown.GetText()) != 64<<10 {
		t.Errorf("inspected %d bytes of text, size %d, want the beginning", len(shown.GetText()), shown.GetSize())
	}
	// Any blob can be named as a state.
	_, err := conversations.Transcript(ctx, &stetv1.TranscriptRequest{Root: huge.Bytes()})
	if connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("a transcript of 40 MiB in 32 MiB of memory: %v", err)
	}
	// The client reads all of them.
	if got, err := c.Blobs().Get(ctx, large.ID); err != nil || !bytes.Equal(got, large.Data) {
		t.Errorf("the client got %d bytes, %v", len(got), err)
	}
	r, err := c.Blobs().Open(ctx, huge)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); err != nil || n != hugeSize {
		t.Errorf("the client read %d bytes, %v", n, err)
	}
}

// Entries of a list may be large; its pages are not.
func TestPagesFitIntoMessages(t *testing.T) {
	c := dial(t, start(t, nil), token)
	hc, base := c.HTTP()
	conversations := stetv1connect.NewConversationServiceClient(hc, base)
	for i := range byte(6) {
		call(t, conversations.Create, &stetv1.CreateConversationRequest{Id: "c" + string('0'+i), Title: strings.Repeat("t", 900<<10)})
	}
	seen, cursor := map[string]bool{}, ""
	for pages := 0; ; pages++ {
		page := call(t, conversations.List, &stetv1.ListConversationsRequest{Page: &stetv1.Page{Cursor: cursor}})
		for _, conv := range page.GetConversations() {
			seen[conv.GetId()] = true
		}
		if len(page.GetConversations()) == 0 || len(page.GetConversations()) > 2 {
			t.Fatalf("page %d has %d conversations of 900 KiB", pages, len(page.GetConversations()))
		}
		if cursor = page.GetNextCursor(); cursor == "" {
			break
		}
	}
	if len(seen) != 6 {
		t.Errorf("the pages have %d conversations, want 6", len(seen))
	}
}

// Calls wait for memory in turn, and no longer than ten seconds.
func TestMemoryIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := server.NewMemory(100)
		first, second := m.Call(), m.Call()
		if err := first.Grow(t.Context(), 80); err != nil {
			t.Fatal(err)
		}
		if err := second.Grow(t.Context(), 50); connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Errorf("no memory is left: %v", err)
		}
		done := make(chan error)
		go func() { done <- second.Grow(t.Context(), 50) }()
		synctest.Wait()
		first.Shrink(40)
		if err := <-done; err != nil {
			t.Errorf("when another call needs less: %v", err)
		}
		if err := m.Call().Grow(t.Context(), 101); !errors.Is(err, blob.ErrTooLarge) {
			t.Errorf("more than there is: %v", err)
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := first.Grow(cancelled, 90); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has gone: %v", err)
		}
		first.End()
		second.End()
		if err := first.Grow(t.Context(), 10); err == nil {
			t.Error("a call that has ended takes memory")
		}
		if err := m.Call().Grow(t.Context(), 100); err != nil {
			t.Errorf("all was given back: %v", err)
		}
	})
}
