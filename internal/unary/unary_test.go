package unary_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/unary"
)

const procedure = "/stet.v1.BlobService/Has"

// Two types of different shapes.
type (
	request  = stetv1.HasBlobsRequest
	response = stetv1.HasBlobsResponse
)

var errUsual = errors.New("no")

// has says of each blob whether its id is long, and answers in many ways.
func has(ctx context.Context, req *request) (*response, error) {
	info, _ := connect.CallInfoForHandlerContext(ctx)
	info.ResponseHeader().Set("Seen", info.HTTPMethod()+" "+info.RequestHeader().Get("Asked"))
	info.ResponseTrailer().Set("Counted", fmt.Sprint(len(req.GetIds())))
	res := &response{}
	for _, id := range req.GetIds() {
		switch string(id) {
		case "plain error":
			return nil, errUsual
		case "coded error":
			return nil, withDetail(connect.NewError(connect.CodeNotFound, errUsual))
		case "both":
			return res, errUsual
		}
		res.Has = append(res.Has, len(id) > 3)
	}
	return res, nil
}

func withDetail(err *connect.Error) error {
	detail, _ := connect.NewErrorDetail(wrapperspb.String("why"))
	err.AddDetail(detail)
	err.Meta().Set("Reason", "because")
	return err
}

// caller is a client of either kind.
type caller func(context.Context, *request) (*response, error)

// Connect's and ours.
var (
	handlers = map[bool]func(...connect.HandlerOption) *connect.Handler{
		false: func(opts ...connect.HandlerOption) *connect.Handler {
			return connect.NewUnaryHandlerSimple(procedure, has, opts...)
		},
		true: func(opts ...connect.HandlerOption) *connect.Handler {
			return unary.NewHandler(procedure, has, opts...)
		},
	}
	clients = map[bool]func(connect.HTTPClient, string, ...connect.ClientOption) caller{
		false: func(hc connect.HTTPClient, url string, opts ...connect.ClientOption) caller {
			c := connect.NewClient[request, response](hc, url, opts...)
			return func(ctx context.Context, req *request) (*response, error) {
				res, err := c.CallUnary(ctx, connect.NewRequest(req))
				if err != nil {
					return nil, err
				}
				return res.Msg, nil
			}
		},
		true: func(hc connect.HTTPClient, url string, opts ...connect.ClientOption) caller {
			return unary.NewClient[*request, *response](hc, url, opts...).Call
		},
	}
)

// recorder keeps what goes over the wire, as text.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) headers(h http.Header) {
	var names []string
	for name := range h {
		if name != "Date" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		r.add("%s: %q", name, h[name])
	}
}

func (r *recorder) Do(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.Body != nil {
		sent, _ = io.ReadAll(req.Body)
		req = req.WithContext(req.Context()) // Connect still looks at its own
		req.Body = io.NopCloser(bytes.NewReader(sent))
	}
	r.add("%s %s?%s", req.Method, req.URL.Path, req.URL.RawQuery)
	r.headers(req.Header)
	r.add("%q", sent)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(res.Body)
	res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(got))
	r.add("%s", res.Status)
	r.headers(res.Header)
	r.headers(res.Trailer)
	r.add("%q", got)
	return res, err
}

// Whichever side is ours, the same bytes travel and the same comes back, in all
// protocols, codecs and compressions, with errors and beyond limits.
func TestNothingDiffersOnTheWire(t *testing.T) {
	ids := func(ids ...string) *request {
		req := &request{}
		for _, id := range ids {
			req.Ids = append(req.Ids, []byte(id))
		}
		return req
	}
	requests := map[string]*request{
		"nil": nil, "empty": {}, "one": ids("1234"), "large": ids(strings.Repeat("x", 3000)), "many": ids(strings.Split(strings.Repeat("1 ", 2000), " ")...),
		"too large": ids(strings.Repeat("x", 9000)), "plain error": ids("plain error"), "coded error": ids("coded error"), "both": ids("both"),
	}
	get := []connect.ClientOption{connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)}
	options := map[string][]connect.ClientOption{
		"Connect": nil, "JSON": {connect.WithProtoJSON()}, "GET": get, "GET with JSON": append(get, connect.WithProtoJSON()),
		"short GET": append(get, connect.WithHTTPGetMaxURLSize(200, true)), "gzip": {connect.WithSendGzip()},
		"gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb(), connect.WithProtoJSON()},
		"little sent": {connect.WithSendMaxBytes(20)}, "little read": {connect.WithReadMaxBytes(20)},
	}
	for name, opts := range options {
		for what, req := range requests {
			var want string
			for _, ours := range []struct{ client, handler bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
				got := exchange(t, ours.client, ours.handler, opts, req)
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("%s, %s, client %t, handler %t:\n%s\nConnect has:\n%s", name, what, ours.client, ours.handler, got, want)
				}
			}
		}
	}
}

// exchange tells what one call sends and returns.
func exchange(t *testing.T, client, handler bool, opts []connect.ClientOption, req *request) string {
	t.Helper()
	h := handlers[handler](connect.WithIdempotency(connect.IdempotencyNoSideEffects), connect.WithReadMaxBytes(8000), connect.WithCompressMinBytes(100))
	server := httptest.NewServer(h)
	defer server.Close()
	r := &recorder{}
	ctx, info := connect.NewClientContext(t.Context())
	info.RequestHeader().Set("Asked", "politely")
	res, err := clients[client](r, server.URL+procedure, opts...)(ctx, req)
	text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(res)
	r.add("%q, %t, %v", text, res == nil, err)
	var coded *connect.Error
	if errors.As(err, &coded) {
		r.headers(coded.Meta())
		for _, d := range coded.Details() {
			r.add("%s %q", d.Type(), d.Bytes())
		}
	}
	r.headers(info.ResponseHeader())
	r.headers(info.ResponseTrailer())
	r.add("%v %s", info.Spec(), info.HTTPMethod())
	return strings.ReplaceAll(strings.Join(r.lines, "\n"), server.URL, "")
}

// seeing is an interceptor that notes the types of messages.
type seeing struct{ seen []string }

func (s *seeing) intercept(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := next(ctx, req)
		s.seen = append(s.seen, fmt.Sprintf("%T", unary.Message(req.Any())))
		if err == nil {
			// The way for those who cannot import this package.
			s.seen = append(s.seen, fmt.Sprintf("%T", res.Any().(proto.Message).ProtoReflect().Interface()))
		}
		return res, err
	}
}

func TestInterceptorsSeeMessages(t *testing.T) {
	var here, there seeing
	server := httptest.NewServer(unary.NewHandler(procedure, has, connect.WithInterceptors(connect.UnaryInterceptorFunc(there.intercept))))
	defer server.Close()
	c := unary.NewClient[*request, *response](server.Client(), server.URL+procedure, connect.WithInterceptors(connect.UnaryInterceptorFunc(here.intercept)))
	for _, id := range []string{"a", "coded error"} {
		_, _ = c.Call(t.Context(), &request{Ids: [][]byte{[]byte(id)}})
	}
	want := []string{"*stetv1.HasBlobsRequest", "*stetv1.HasBlobsResponse", "*stetv1.HasBlobsRequest"}
	if !slices.Equal(here.seen, want) || !slices.Equal(there.seen, want) {
		t.Errorf("the client's saw %v, the handler's %v", here.seen, there.seen)
	}
	if msg := &(request{}); unary.Message(msg) != any(msg) || unary.Message(nil) != nil || unary.Message("x") != "x" {
		t.Error("what is in no box was changed")
	}
}

// Bytes that are no message are the caller's mistake, compressed or not.
func TestMalformedRequests(t *testing.T) {
	h := unary.NewHandler(procedure, has)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write([]byte{0xff})
	w.Close()
	for _, test := range []struct{ contentType, encoding, body string }{
		{"application/proto", "", "\xff"}, {"application/proto", "gzip", zipped.String()}, {"application/json", "", "{"}, {"application/json", "", ""},
	} {
		req := httptest.NewRequest(http.MethodPost, procedure, strings.NewReader(test.body))
		req.Header.Set("Content-Type", test.contentType)
		if test.encoding != "" {
			req.Header.Set("Content-Encoding", test.encoding)
		}
		res := httptest.NewRecorder()
		h.ServeHTTP(res, req)
		if res.Code != http.StatusBadRequest || !strings.Contains(res.Body.String(), `"invalid_argument"`) {
			t.Errorf("%q: %d %s", test.body, res.Code, res.Body)
		}
	}
}

// A handler that returns neither a message nor an error has a bug, and its procedure is
// named.
func TestNoAnswerPanics(t *testing.T) {
	var said string
	h := unary.NewHandler(procedure, func(context.Context, *request) (*response, error) { return nil, nil },
		connect.WithRecover(func(_ context.Context, _ connect.Spec, _ http.Header, v any) error {
			said = fmt.Sprint(v)
			return errUsual
		}))
	req := httptest.NewRequest(http.MethodPost, procedure, http.NoBody)
	req.Header.Set("Content-Type", "application/proto")
	h.ServeHTTP(httptest.NewRecorder(), req)
	if !strings.Contains(said, procedure) {
		t.Errorf("it panicked with %q", said)
	}
}

// The options of many procedures are one slice.
func TestOptionsAreLeftAlone(t *testing.T) {
	shared := make([]connect.HandlerOption, 0, 4)
	server := httptest.NewServer(unary.NewHandler(procedure, has, shared...))
	defer server.Close()
	other := unary.NewHandler("/other", func(_ context.Context, in *wrapperspb.StringValue) (*wrapperspb.StringValue, error) { return in, nil }, shared...)
	if other == nil || shared[:1][0] != nil {
		t.Error("an option was added to the caller's slice")
	}
	calls := make([]connect.ClientOption, 0, 4)
	c := unary.NewClient[*request, *response](server.Client(), server.URL+procedure, calls...)
	if calls[:1][0] != nil {
		t.Error("an option was added to the caller's slice")
	}
	res, err := c.Call(t.Context(), &request{Ids: [][]byte{[]byte("12345"), nil}})
	if err != nil || !slices.Equal(res.GetHas(), []bool{true, false}) {
		t.Errorf("got %v, %v", res, err)
	}
}

func TestClientsOfNoAddress(t *testing.T) {
	res, err := unary.NewClient[*request, *response](http.DefaultClient, "nowhere").Call(t.Context(), &request{})
	if res != nil || connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("got %v, %v", res, err)
	}
}
