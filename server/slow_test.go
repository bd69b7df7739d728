package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/server"
)

// ends is a log that tells when requests for a path have ended.
type ends struct {
	path string
	seen chan struct{}
}

func (e *ends) Write(p []byte) (int, error) {
	if strings.Contains(string(p), `"path":"`+e.path+`"`) {
		e.seen <- struct{}{}
	}
	return len(p), nil
}

// twoServers serves one store twice: to those who are given up soon, and to others.
func twoServers(t *testing.T, stall time.Duration, log io.Writer) (strict, patient string) {
	t.Helper()
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	serveWith := func(opts *server.Options) string {
		handler, err := server.New(db, opts)
		if err != nil {
			t.Fatal(err)
		}
		return serve(t, handler)
	}
	return serveWith(&server.Options{Token: token, StallTime: stall, Logger: slog.New(slog.NewJSONHandler(log, nil))}), serveWith(&server.Options{Token: token})
}

// A reader who takes nothing does not hold a stream, a store and its memory for
// ever. This waits for the server to give up, not for a time.
func TestAReaderWhoTakesNothingIsGivenUp(t *testing.T) {
	log := &ends{path: stetv1connect.BlobServiceOpenProcedure, seen: make(chan struct{}, 10)}
	strict, patient := twoServers(t, 50*time.Millisecond, log)
	big := blob.New(random(3, 12<<20)) // more than a stream may send ahead
	if err := dial(t, patient, token).Blobs().PutFrom(t.Context(), big.ID, bytes.NewReader(big.Data), int64(len(big.Data))); err != nil {
		t.Fatal(err)
	}
	hc, base := dial(t, strict, token).HTTP()
	stream, err := stetv1connect.NewBlobServiceClient(hc, base).Open(t.Context(), &stetv1.OpenBlobRequest{Id: big.ID.Bytes()})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	<-log.seen
	for stream.Receive() {
	}
	if stream.Err() == nil {
		t.Error("the stream ended as if it were whole")
	}
}

// A stream without events is not stalled.
func TestAQuietStreamIsNotGivenUp(t *testing.T) {
	const stall = time.Second
	strict, patient := twoServers(t, stall, io.Discard)
	hc, base := dial(t, strict, token).HTTP()
	watching, err := watch(t, hc, base)
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Close()
	time.Sleep(stall + stall/4) // however long, the stream must be there
	hc, base = dial(t, patient, token).HTTP()
	key := []byte("x")
	call(t, stetv1connect.NewRowServiceClient(hc, base).Commit, &stetv1.CommitRequest{Set: []*stetv1.Row{{Key: key, Value: key}}})
	if !watching.Receive() {
		t.Fatalf("a quiet stream was given up: %v", watching.Err())
	}
}

// A request whose body never comes ends, too.
func TestAWriterWhoSendsNothingIsGivenUp(t *testing.T) {
	log := &ends{path: stetv1connect.BlobServiceGetProcedure, seen: make(chan struct{}, 10)}
	address, _ := twoServers(t, 50*time.Millisecond, log)
	conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "POST "+stetv1connect.BlobServiceGetProcedure+" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+
		"\r\nContent-Type: application/proto\r\nContent-Length: 1000\r\n\r\nx")
	<-log.seen
	// Over HTTP/2 as well.
	body, feed := io.Pipe()
	defer feed.Close()
	req, err := http.NewRequestWithContext(t.Context(), "POST", address+stetv1connect.BlobServiceGetProcedure, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/proto")
	req.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		if res, err := transport.RoundTrip(req.WithContext(ctx)); err == nil {
			res.Body.Close()
		}
	}()
	<-log.seen
}

// An answer that nobody takes ends its connection also if it is small, and so is written
// only after its handler has returned.
func TestAReaderWhoTakesNoSmallAnswersIsGivenUp(t *testing.T) {
	address, patient := twoServers(t, 100*time.Millisecond, io.Discard)
	if status, _, text := requestStream(t, patient, token, "PUT", "a", "one"); status != 201 {
		t.Fatal(status, text)
	}
	conn := open(t, strings.TrimPrefix(address, "http://"))
	many := strings.Repeat("GET /v1/stream/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+"\r\n\r\n", 1000)
	for {
		_, err := io.WriteString(conn, many) // until the answers fill the connection
		if isTimeout(err) {
			t.Fatal("HTTP/1: the server still waits")
		}
		if err != nil {
			break
		}
	}
	conn = open(t, strings.TrimPrefix(address, "http://"))
	io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	frame := func(kind, flags byte, stream uint32, payload string) {
		head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
		_, _ = conn.Write(append(binary.BigEndian.AppendUint32(append(head, flags), stream), payload...))
	}
	frame(4, 0, 0, "\x00\x04\x00\x00\x00\x00") // settings: there is room for nothing
	head := ""
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":path", "/v1/stream/a"}, {":authority", "localhost"}, {"authorization", "Bearer " + token}} {
		head += fmt.Sprintf("\x00%c%s%c%s", len(field[0]), field[0], len(field[1]), field[1])
	}
	frame(1, 5, 1, head) // the headers, which end the request
	for {
		var got [9]byte
		if _, err := io.ReadFull(conn, got[:]); err != nil {
			t.Fatalf("HTTP/2: the server still waits: %v", err)
		}
		if got[3] == 3 && got[8] == 1 { // it resets the stream
			return
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(append([]byte{0}, got[:3]...)))); err != nil {
			t.Fatal(err)
		}
	}
}

// A body that never comes ends its connection, whoever waits for it: the handler, which
// may be that of a stream with one request, or the package http after it.
func TestABodyThatNeverComesIsNotWaitedFor(t *testing.T) {
	address, _ := twoServers(t, 100*time.Millisecond, io.Discard)
	for name, head := range map[string]string{
		"the only message of a stream":   "POST /stet.v1.RowService/Watch HTTP/1.1\r\nContent-Type: application/connect+json\r\n",
		"of a call that is refused":      "PUT /v1/stream/a HTTP/1.1\r\nContent-Encoding: gzip\r\n",
		"of a type that is unknown":      "POST /stet.v1.StoreService/Info HTTP/1.1\r\nContent-Type: text/plain\r\n",
		"of a request that needs none":   "GET /v1/stream/none HTTP/1.1\r\n",
		"of a stream that failed before": "POST /stet.v1.BlobService/PutStream HTTP/1.1\r\nContent-Type: application/connect+json\r\nConnect-Timeout-Ms: x\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := open(t, strings.TrimPrefix(address, "http://"))
			io.WriteString(conn, head+"Host: localhost\r\nAuthorization: Bearer "+token+"\r\nContent-Length: 1000\r\n\r\n")
			if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
				t.Errorf("the server still waits: %v", err)
			}
		})
	}
}

// A reader who takes a large answer slowly is no reader who takes nothing: what has a limit
// is each piece of an answer, not the whole.
func TestLargeAnswersHaveALimitForEachPiece(t *testing.T) {
	h := newHouse(t, nil)
	want := string(random(5, 6<<20))
	if status, _, text := h.stream(h.token("shop", access.Write), "PUT", "a", want); status != 201 {
		t.Fatal(status, text)
	}
	srv, err := server.NewTenants(h.stores, h.tokens.Verify, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/v1/stream/a", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+h.token("shop", access.Read))
	w := &pieces{ResponseRecorder: httptest.NewRecorder()}
	srv.ServeHTTP(w, r)
	if w.largest > 64<<10 {
		t.Errorf("a piece has %d bytes", w.largest)
	}
	if w.Body.String() != want {
		t.Errorf("got %d bytes of %d", w.Body.Len(), len(want))
	}
}

// pieces notes the largest write.
type pieces struct {
	*httptest.ResponseRecorder
	largest int
}

func (w *pieces) Write(p []byte) (int, error) {
	w.largest = max(w.largest, len(p))
	return w.ResponseRecorder.Write(p)
}

// late notes deadlines that are set after the end of a request. Those of HTTP/1 would hit
// the next request of the connection, those of HTTP/2 end the program.
type late struct {
	http.ResponseWriter
	takes time.Duration
	ended atomic.Bool
	late  *atomic.Int64
}

func (w *late) Write(p []byte) (int, error) {
	time.Sleep(w.takes)
	return len(p), nil
}

func (w *late) SetWriteDeadline(time.Time) error {
	if w.ended.Load() {
		w.late.Add(1)
	}
	return nil
}

func TestNoDeadlineIsSetAfterARequest(t *testing.T) {
	const stall = time.Millisecond
	handler, err := server.NewTenants(nil, func(string) (access.Principal, error) { return access.Principal{}, access.ErrDenied }, &server.Options{StallTime: stall})
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	var all sync.WaitGroup
	for i := range 4000 {
		all.Go(func() {
			w := &late{ResponseWriter: httptest.NewRecorder(), takes: stall + time.Duration(i%50)*4*time.Microsecond, late: &n}
			handler.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/healthz", nil))
			w.ended.Store(true)
		})
		if i%8 == 7 {
			all.Wait()
		}
	}
	time.Sleep(10 * stall)
	if n := n.Load(); n > 0 {
		t.Errorf("%d deadlines were set after the end of their requests", n)
	}
}
