package streams_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/server/streams"
	"github.com/stet-dev/stet/stream"
)

func Example() {
	blobs := memblob.New()
	handler := streams.New(stream.New(blobs, memkv.New(blobs), nil), nil)
	call := func(method, body string) *http.Response {
		r := httptest.NewRequest(method, "/v1/stream/steps", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Printf("%s %d, up to %s: %q\n", method, w.Code, w.Header().Get("Stream-Next-Offset"), w.Body)
		return w.Result()
	}
	call("PUT", "")
	call("POST", `[{"tool":"edit"},{"tool":"test"}]`)
	call("GET", "")
	// Output:
	// PUT 201, up to 0000000000000000_0000000000000000: ""
	// POST 204, up to 0000000000000001_0000000000000031: ""
	// GET 200, up to 0000000000000001_0000000000000031: "[{\"tool\":\"edit\"},{\"tool\":\"test\"}]"
}
