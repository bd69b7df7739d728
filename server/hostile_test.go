package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
)

// post sends a body as it is and returns the status and the answer.
func post(t *testing.T, address, procedure, kind, encoding string, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", address+procedure, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Authorization", "Bearer "+token)
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// field writes a length-delimited field.
func field(to []byte, n protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, n, protowire.BytesType), content)
}

// nested writes a request whose state has subagents inside each other.
func nested(t *testing.T, depth int) []byte {
	t.Helper()
	m := (&stetv1.SaveConversationRequest{}).ProtoReflect().Descriptor()
	whole := m.Fields().ByName("structure")
	state := whole.Message()
	subagents := state.Fields().ByName("subagent_states")
	if subagents == nil || !subagents.IsMap() {
		t.Fatal("the state has no map of subagents")
	}
	value := subagents.MapValue().Message()
	var into protowire.Number
	for i := range value.Fields().Len() {
		if f := value.Fields().Get(i); f.Message() != nil && f.Message().FullName() == state.FullName() {
			into = f.Number()
		}
	}
	if into == 0 && value.FullName() != state.FullName() {
		t.Fatalf("%s holds no state", value.FullName())
	}
	var data []byte
	for range depth {
		inner := data
		if into != 0 {
			inner = field(nil, into, data)
		}
		entry := field(field(nil, 1, []byte("s")), 2, inner)
		data = field(nil, subagents.Number(), entry)
	}
	return field(field(nil, m.Fields().ByName("id").Number(), []byte("none")), whole.Number(), data)
}

func TestHostileMessages(t *testing.T) {
	address := start(t, nil)
	const save, has, get = "/stet.v1.ConversationService/Save", "/stet.v1.BlobService/Has", "/stet.v1.BlobService/Get"
	zipped := func(n int) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		if _, err := io.CopyN(w, zeros{}, int64(n)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	const binary, text = "application/proto", "application/json"
	for _, test := range []struct {
		name, procedure, kind, encoding string
		body                            []byte
		want                            int
	}{
		{"nothing", has, binary, "", nil, 200},
		{"as much as is allowed", has, binary, "", bytes.Repeat([]byte{0x0a, 0x00}, 90_000), 400}, // ids of no bytes
		{"too many entries", has, binary, "", bytes.Repeat([]byte{0x0a, 0x00}, 150_000), 400},
		{"too many entries, JSON", has, text, "", []byte(`{"ids":[""` + strings.Repeat(`,""`, 300_000) + `]}`), 400},
		{"too many entries for a message, JSON", has, text, "", []byte(`{"ids":["AAAA"` + strings.Repeat(`,"AAAA"`, 150_000) + `]}`), 400},
		{"too large", has, binary, "", make([]byte, 5<<20), 429},
		{"too large, JSON", has, text, "", []byte(`{"x":"` + strings.Repeat("y", 5<<20) + `"}`), 429},
		{"a bomb", has, binary, "gzip", zipped(16 << 20), 429},
		{"deep", save, binary, "", nested(t, 33), 400},
		{"very deep", save, binary, "", nested(t, 3000), 400},
		{"deep, JSON", save, text, "", []byte(strings.Repeat(`{"x":`, 5000) + "1" + strings.Repeat("}", 5000)), 400},
		{"deep lists, JSON", save, text, "", []byte(`{"x":` + strings.Repeat(`[`, 100_000) + strings.Repeat("]", 100_000) + "}"), 400},
		{"no message", get, binary, "", []byte{0xff, 0xff, 0xff, 0xff}, 400},
		{"no JSON", get, text, "", []byte(`{"id"`), 400},
		{"text that is none", "/stet.v1.ConversationService/Get", binary, "", field(nil, 1, []byte{0xff, 0xfe}), 400},
		{"an id of 31 bytes", get, binary, "", field(nil, 1, make([]byte, 31)), 400},
		{"an id of 33 bytes", get, binary, "", field(nil, 1, make([]byte, 33)), 400},
		{"an encoding that there is not", get, binary, "br", []byte{1}, 501},
	} {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, said := post(t, address, test.procedure, test.kind, test.encoding, test.body)
			runtime.ReadMemStats(&after)
			if got != test.want {
				t.Errorf("status %d, want %d: %.200s", got, test.want, said)
			}
			// All that was allocated meanwhile, by client and server; what was alive at
			// once is less.
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 160<<20 {
				t.Errorf("%d MiB were allocated", grown>>20)
			}
		})
	}
	// The server is well.
	hc, base := dial(t, address, token).HTTP()
	call(t, stetv1connect.NewStoreServiceClient(hc, base).Info, &stetv1.StoreInfoRequest{})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestAsManyNestedAsAllowed(t *testing.T) {
	address := start(t, nil)
	if got, said := post(t, address, "/stet.v1.ConversationService/Save", "application/proto", "", nested(t, 32)); got != 404 {
		t.Errorf("status %d: %.200s, want no such conversation", got, said)
	}
}

// Streams have the same limits, message by message.
func TestHostileMessagesOfStreams(t *testing.T) {
	hc, base := dial(t, start(t, nil), token).HTTP()
	for _, opts := range [][]connect.ClientOption{nil, {connect.WithGRPC()}, {connect.WithSendGzip()}} {
		blobs := stetv1connect.NewBlobServiceClient(hc, base, opts...)
		ctx, cancel := context.WithCancel(t.Context())
		stream := blobs.PutStream(ctx)
		var err error
		for err == nil {
			err = stream.Send(&stetv1.PutBlobStreamRequest{Id: make([]byte, 32), Size: 64 << 20, Chunk: make([]byte, 5<<20)})
		}
		_, err = stream.CloseAndReceive()
		cancel()
		if code := connect.CodeOf(err); code != connect.CodeResourceExhausted {
			t.Errorf("a large message on a stream: %v", err)
		}
	}
}
