package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/server"
)

// random returns bytes that do not compress, the same for a seed.
func random(seed byte, n int) []byte {
	data := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(data)
	return data
}

// exhausted looks at the error of a call that a limit refused.
func exhausted(t *testing.T, err error, words ...string) *connect.Error {
	t.Helper()
	var wire *connect.Error
	if !errors.As(err, &wire) || wire.Code() != connect.CodeResourceExhausted {
		t.Fatalf("got %v, want a limit", err)
	}
	for _, word := range append(words, "limit", "retry") {
		if !strings.Contains(wire.Message(), word) {
			t.Errorf("%q does not say %q", wire.Message(), word)
		}
	}
	if reason, class := wire.Meta().Get("Stet-Error"), wire.Meta().Get("Stet-Error-Class"); reason != "limit-reached" || class != "exhausted" {
		t.Errorf("reason %q, class %q", reason, class)
	}
	return wire
}

func TestBytesOfATenantAreLimited(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	h := newHouse(t, &server.Options{
		Limits: access.Limits{Bytes: 2 << 20}, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
	})
	ctx := t.Context()
	full, other := h.client("full", access.Admin), h.client("other", access.Write)
	hc, base := full.HTTP()
	blobs := stetv1connect.NewBlobServiceClient(hc, base)
	put := func(seed byte, n int) error {
		b := blob.New(random(seed, n))
		_, err := blobs.Put(ctx, &stetv1.PutBlobsRequest{Blobs: []*stetv1.NewBlob{{Id: b.ID.Bytes(), Data: b.Data}}})
		return err
	}
	for seed := range byte(3) {
		if err := put(seed, 512<<10); err != nil {
			t.Fatalf("blob %d: %v", seed, err)
		}
	}
	exhausted(t, put(9, 1<<20), "stored bytes", "2097152")
	// Bytes that are there already, or compress, are not refused.
	for range 20 {
		if err := put(5, 32<<10); err != nil {
			t.Fatalf("the same again: %v", err)
		}
	}
	// A stream is cut off where the limit is.
	big := blob.New(random(7, 8<<20))
	exhausted(t, full.Blobs().PutFrom(ctx, big.ID, bytes.NewReader(big.Data), int64(len(big.Data))), "stored bytes")
	if err := other.Blobs().Put(ctx, blob.New(random(9, 1<<20))); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	// Reading, deleting and collecting go on; what they free can be used again.
	if _, err := full.Blobs().Get(ctx, blob.New(random(1, 512<<10)).ID); err != nil {
		t.Errorf("reading: %v", err)
	}
	store := stetv1connect.NewStoreServiceClient(hc, base)
	if res := call(t, store.Collect, &stetv1.CollectRequest{GraceSeconds: -1}); res.GetRemoved() == 0 {
		t.Errorf("nothing was collected: %v", res)
	}
	if err := put(9, 1<<20); err != nil {
		t.Errorf("after the collection: %v", err)
	}
	if got := counted(t, reader, "stet.server.refused", attribute.String("tenant", "full"), attribute.String("reason", "bytes")); got != 2 {
		t.Errorf("%d refusals are counted, want 2", got)
	}
}

// counted returns the value of a counter for some attributes.
func counted(t *testing.T, reader sdkmetric.Reader, name string, attrs ...attribute.KeyValue) int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	want := attribute.NewSet(attrs...)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if m.Name != name || !ok {
				continue
			}
			for _, p := range sum.DataPoints {
				if p.Attributes.Equals(&want) {
					return p.Value
				}
			}
		}
	}
	return 0
}

func TestRequestsOfATenantAreLimited(t *testing.T) {
	h := newHouse(t, &server.Options{Limits: access.Limits{Requests: 0.001, Burst: 3}}) // the next in a quarter of an hour
	ctx := t.Context()
	hc, base := h.client("busy", access.Read).HTTP()
	list := func(opts ...connect.ClientOption) error {
		_, err := stetv1connect.NewConversationServiceClient(hc, base, opts...).List(ctx, &stetv1.ListConversationsRequest{})
		return err
	}
	for i := range 3 {
		if err := list(); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	for _, opts := range [][]connect.ClientOption{nil, {connect.WithGRPC()}, {connect.WithGRPCWeb()}} {
		wire := exhausted(t, list(opts...), "requests per second")
		if wire.Meta().Get("Retry-After") == "" {
			t.Errorf("no Retry-After in %v", wire.Meta())
		}
	}
	if _, err := h.client("calm", access.Read).Blobs().Has(ctx, blob.ID{}); err != nil {
		t.Errorf("another tenant: %v", err)
	}
}

// watch opens a stream that does not end, and waits until it is served.
func watch(t *testing.T, hc *http.Client, base string) (*connect.ServerStreamForClient[stetv1.WatchResponse], error) {
	t.Helper()
	s, err := stetv1connect.NewRowServiceClient(hc, base).Watch(t.Context(), &stetv1.WatchRequest{Range: &stetv1.KeyRange{}})
	if err != nil {
		return nil, err
	}
	if !s.Receive() {
		return nil, errors.Join(s.Err(), s.Close())
	}
	return s, nil
}

func TestStreamsOfATenantAreLimited(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	h := newHouse(t, &server.Options{
		Limits: access.Limits{Streams: 2}, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
	})
	hc, base := h.client("busy", access.Read).HTTP()
	for range 2 {
		s, err := watch(t, hc, base)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
	}
	_, err := watch(t, hc, base)
	exhausted(t, err, "2 open streams")
	if got := counted(t, reader, "stet.server.streams", attribute.String("tenant", "busy")); got != 2 {
		t.Errorf("%d streams are counted, want 2", got)
	}
	other, base := h.client("calm", access.Read).HTTP()
	s, err := watch(t, other, base)
	if err != nil {
		t.Fatalf("another tenant: %v", err)
	}
	s.Close()
}

func TestStreamsOfAPeerAreLimited(t *testing.T) {
	address := start(t, &server.Options{Token: token, StreamsPerPeer: 1})
	hc, base := dial(t, address, token).HTTP()
	s, err := watch(t, hc, base)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = watch(t, hc, base)
	exhausted(t, err, "1 open streams from one address")
	if _, err := stetv1connect.NewStoreServiceClient(hc, base).Info(t.Context(), &stetv1.StoreInfoRequest{}); err != nil {
		t.Errorf("a call that is no stream: %v", err)
	}
}

// Metrics are about all tenants, so no tenant may read them.
func TestMetricsAreTheOperators(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "all of them") })
	h := newHouse(t, &server.Options{Token: token, Metrics: metrics})
	for _, test := range []struct {
		token string
		want  int
	}{{"", 401}, {h.token("a", access.Admin), 401}, {token, 200}} {
		got := status(t, "GET", h.address, "/metrics", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+test.token) })
		if got != test.want {
			t.Errorf("status %d, want %d", got, test.want)
		}
	}
	// And the operator's token opens nothing of anybody's.
	if got := h.ask(token, "/stet.v1.BlobService/List", "{}"); got.status != 401 {
		t.Errorf("the operator lists blobs: %+v", got)
	}
}

// Files that the server captures count, though nobody sent them.
func TestCapturedFilesCount(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "shop")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, &server.Options{Limits: access.Limits{Bytes: 2 << 20}, Workspaces: []string{filepath.Join(root, "{tenant}")}})
	c := h.client("shop", access.Write)
	var err error
	for seed := range byte(8) {
		if writeErr := os.WriteFile(filepath.Join(dir, "data"), random(seed, 1<<20), 0o644); writeErr != nil {
			t.Fatal(writeErr)
		}
		if _, err = c.Checkpoints().Create(t.Context(), &stetv1.CreateCheckpointRequest{Workspace: dir}); err != nil {
			break
		}
	}
	exhausted(t, err, "stored bytes")
}

func TestGraceHasNoEnd(t *testing.T) {
	c := dial(t, start(t, nil), token)
	if err := c.Blobs().Put(t.Context(), blob.New([]byte("young"))); err != nil {
		t.Fatal(err)
	}
	for _, seconds := range []int64{math.MaxInt64, math.MaxInt64/1_000_000_000 + 1} {
		if res := call(t, c.Store().Collect, &stetv1.CollectRequest{GraceSeconds: seconds}); res.GetRemoved() != 0 {
			t.Errorf("grace of %d seconds: %v", seconds, res)
		}
	}
}
