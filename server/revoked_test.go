package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/access"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/server"
)

// A stream ends when its token does, whether it waits for its server or for its client;
// those of other tokens go on.
func TestStreamsEndWithTheirTokens(t *testing.T) {
	h := newHouse(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watch := func(token string) *connect.ServerStreamForClient[stetv1.WatchResponse] {
		hc, base := dial(t, h.address, token).HTTP()
		stream, err := stetv1connect.NewRowServiceClient(hc, base).Watch(ctx, &stetv1.WatchRequest{Range: &stetv1.KeyRange{}})
		if err != nil || !stream.Receive() {
			t.Fatalf("watch: %v, %v", err, stream.Err())
		}
		return stream
	}
	revoked, info, err := h.tokens.Create(access.Grant{Tenant: "a", Scope: access.Write})
	if err != nil {
		t.Fatal(err)
	}
	stays, watched := watch(h.token("a", access.Read)), watch(revoked)

	hc, base := dial(t, h.address, revoked).HTTP()
	upload, err := stetv1connect.NewBlobServiceClient(hc, base).PutStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := upload.Send(&stetv1.PutBlobStreamRequest{Id: make([]byte, 32), Size: 8 << 20, Chunk: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.tokens.Revoke(info.ID); err != nil {
		t.Fatal(err)
	}
	for watched.Receive() {
	}
	if code := connect.CodeOf(watched.Err()); code != connect.CodeUnauthenticated {
		t.Errorf("the stream ended with %v", watched.Err())
	}
	for err = nil; err == nil; { // the client notices when it sends
		err = upload.Send(&stetv1.PutBlobStreamRequest{Chunk: make([]byte, 64<<10)})
	}
	if err != io.EOF && connect.CodeOf(err) == connect.CodeDeadlineExceeded {
		t.Errorf("the upload goes on: %v", err)
	}
	call(t, stetv1connect.NewRowServiceClient(dialHTTP(t, h, "a")).Commit, &stetv1.CommitRequest{Set: []*stetv1.Row{{Key: []byte("k"), Value: []byte("v")}}})
	if !stays.Receive() {
		t.Errorf("the stream of another token ended: %v", stays.Err())
	}
}

func dialHTTP(t *testing.T, h *house, tenant string) (connect.HTTPClient, string) {
	return dial(t, h.address, h.token(tenant, access.Admin)).HTTP()
}

// A connection outlives a stream whose token was revoked. A proxy sends the requests of
// others over it.
func TestConnectionsServeOthersAfterARevocation(t *testing.T) {
	h := newHouse(t, &server.Options{StreamWait: time.Minute})
	if status, _, text := h.stream(h.token("shop", access.Write), "PUT", "a", "one"); status != 201 {
		t.Fatal(status, text)
	}
	stays := h.token("shop", access.Read)
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	connections := 0
	trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		if !c.Reused {
			connections++
		}
	}}
	open := func(token, query string) *http.Response {
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "GET", h.address+"/v1/stream/a?"+query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	const rounds = 5
	for range rounds {
		revoked, info, err := h.tokens.Create(access.Grant{Tenant: "shop", Scope: access.Read})
		if err != nil {
			t.Fatal(err)
		}
		events := open(revoked, "offset=now&live=sse")
		if _, err := h.tokens.Revoke(info.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, events.Body); err != nil {
			t.Fatal(err)
		}
		_ = events.Body.Close()
		after := open(stays, "offset=-1")
		text, err := io.ReadAll(after.Body)
		_ = after.Body.Close()
		if err != nil || after.StatusCode != 200 {
			t.Fatalf("the next request on the connection: %d %s, %v", after.StatusCode, text, err)
		}
	}
	if connections > 1 {
		t.Errorf("%d connections for %d streams: a revocation closes them", connections, rounds)
	}
}

// The same holds if the request of the stream had a body that nobody needed, which the
// package http reads.
func TestConnectionsServeOthersAfterARevocationWithABody(t *testing.T) {
	h := newHouse(t, &server.Options{StreamWait: time.Minute})
	if status, _, text := h.stream(h.token("shop", access.Write), "PUT", "a", "one"); status != 201 {
		t.Fatal(status, text)
	}
	revoked, info, err := h.tokens.Create(access.Grant{Tenant: "shop", Scope: access.Read})
	if err != nil {
		t.Fatal(err)
	}
	conn := open(t, strings.TrimPrefix(h.address, "http://"))
	in := bufio.NewReader(conn)
	ask := func(token, query, body string) *http.Response {
		fmt.Fprintf(conn, "GET /v1/stream/a?%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", query, token, len(body), body)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	events := ask(revoked, "offset=now&live=sse", "{}")
	if _, err := h.tokens.Revoke(info.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, events.Body); err != nil {
		t.Fatal(err)
	}
	after := ask(h.token("shop", access.Read), "offset=-1", "")
	if text, err := io.ReadAll(after.Body); err != nil || after.StatusCode != 200 {
		t.Errorf("the next request on the connection: %d %s, %v", after.StatusCode, text, err)
	}
}

// With HTTP/2 an upload whose token is revoked does not end the connection that it shares.
func TestUploadsEndWithoutTheirConnection(t *testing.T) {
	h := newHouse(t, nil)
	revoked, info, err := h.tokens.Create(access.Grant{Tenant: "a", Scope: access.Admin})
	if err != nil {
		t.Fatal(err)
	}
	var connections atomic.Int64
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		if !c.Reused {
			connections.Add(1)
		}
	}})
	hc, base := dial(t, h.address, revoked).HTTP()
	rows := stetv1connect.NewRowServiceClient(hc, base)
	put := &stetv1.CommitRequest{Set: []*stetv1.Row{{Key: []byte("k"), Value: []byte("v")}}}
	if _, err := rows.Commit(ctx, put); err != nil {
		t.Fatal(err)
	}
	upload, err := stetv1connect.NewBlobServiceClient(hc, base).PutStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := upload.Send(&stetv1.PutBlobStreamRequest{Id: make([]byte, 32), Size: 8 << 20, Chunk: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.tokens.Revoke(info.ID); err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; {
		err = upload.Send(&stetv1.PutBlobStreamRequest{Chunk: make([]byte, 1)})
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := upload.CloseAndReceive(); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("the upload ended with %v", err)
	}
	for range 3 {
		if _, err := rows.Commit(ctx, put); connect.CodeOf(err) != connect.CodeUnauthenticated {
			t.Errorf("a later call: %v", err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections, want one", n)
	}
}
