package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/fault"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/pack"
	"github.com/stet-dev/stet/postgres"
	"github.com/stet-dev/stet/search/pgsearch"
	"github.com/stet-dev/stet/server"
	"github.com/stet-dev/stet/sqlite"
)

// failing stores answer everything that writes with one error.
type failingBlobs struct {
	blob.Store
	err error
}

func (f failingBlobs) Put(context.Context, ...blob.Blob) error { return fmt.Errorf("put: %w", f.err) }

type failingRows struct {
	kv.Store
	err error
}

func (f failingRows) Commit(context.Context, *kv.Batch) error {
	return fmt.Errorf("commit: %w", f.err)
}

// failingServer serves such stores.
func failingServer(t *testing.T, fail error) *httptest.Server {
	t.Helper()
	blobs := memblob.New()
	db := stet.NewRemote(failingBlobs{blobs, fail}, failingRows{memkv.New(blobs), fail}, func() error { return nil }, nil)
	handler, err := server.New(db, &server.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	srv := serve(handler)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv
}

func TestErrorsOfTheServerKeepTheirTypes(t *testing.T) {
	one := blob.New([]byte("x"))
	for _, test := range []struct {
		err  error
		code connect.Code
	}{
		{blob.ErrFull, connect.CodeResourceExhausted},
		{blob.ErrTooLarge, connect.CodeResourceExhausted},
		{kv.ErrTooLarge, connect.CodeResourceExhausted},
		{blob.ErrReadOnly, connect.CodeFailedPrecondition},
		{blob.ErrWrongKey, connect.CodeFailedPrecondition},
		{blob.ErrMismatch, connect.CodeInvalidArgument},
		{blob.ErrInvalidID, connect.CodeInvalidArgument},
		{kv.ErrInvalidKey, connect.CodeInvalidArgument},
		{kv.ErrInvalidBatch, connect.CodeInvalidArgument},
		{kv.ErrCorrupt, connect.CodeDataLoss},
		{blob.ErrCorrupt, connect.CodeDataLoss},
		{kv.ErrBusy, connect.CodeUnavailable},
		{kv.ErrConflict, connect.CodeAborted},
		{kv.ErrUncertain, connect.CodeUnknown},
		{kv.ErrNewerFormat, connect.CodeFailedPrecondition},
		{sqlite.ErrNewerFormat, connect.CodeFailedPrecondition},
		{postgres.ErrNewerFormat, connect.CodeFailedPrecondition},
		{pack.ErrNewerFormat, connect.CodeFailedPrecondition},
		{pgsearch.ErrNewerFormat, connect.CodeFailedPrecondition},
		{checkpoint.ErrNewerFormat, connect.CodeFailedPrecondition},
		{cloudagent.ErrMetadataVersion, connect.CodeFailedPrecondition},
		{keyring.ErrVersion, connect.CodeFailedPrecondition},
		{stet.ErrLocked, connect.CodeFailedPrecondition},
		{sqlite.ErrDamaged, connect.CodeDataLoss},
		{postgres.ErrUnavailable, connect.CodeUnavailable},
	} {
		t.Run(test.err.Error(), func(t *testing.T) {
			c := dial(t, failingServer(t, test.err).URL, token)
			for name, err := range map[string]error{
				"put":    c.Blobs().Put(t.Context(), one),
				"stream": c.Blobs().PutFrom(t.Context(), blob.Sum(large), bytes.NewReader(large), int64(len(large))),
				"commit": c.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: "k", Value: []byte("v")}}}),
			} {
				if !errors.Is(err, test.err) {
					t.Errorf("%s: got %v, want %v", name, err, test.err)
				}
				if connect.CodeOf(err) != test.code {
					t.Errorf("%s: code %v, want %v", name, connect.CodeOf(err), test.code)
				}
				if got, want := fault.Of(err), fault.Of(test.err); got != want {
					t.Errorf("%s: class %v, want %v", name, got, want)
				}
			}
		})
	}
}

var large = make([]byte, 4<<20)

// Every protocol carries the name of an error.
func TestErrorsAreNamedInEveryProtocol(t *testing.T) {
	srv := failingServer(t, blob.ErrFull)
	for name, opt := range map[string]connect.ClientOption{
		"Connect": connect.WithProtoJSON(), "gRPC": connect.WithGRPC(), "gRPC-web": connect.WithGRPCWeb(),
	} {
		httpClient, base := dial(t, srv.URL, token).HTTP()
		one := blob.New([]byte("x"))
		_, err := stetv1connect.NewBlobServiceClient(httpClient, base, opt).Put(t.Context(), &stetv1.PutBlobsRequest{
			Blobs: []*stetv1.NewBlob{{Id: one.ID.Bytes(), Data: one.Data}},
		})
		var wire *connect.Error
		if !errors.As(err, &wire) || wire.Meta().Get("Stet-Error") != "full" || wire.Code() != connect.CodeResourceExhausted {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A kind of another error is both, and an error that was never sent is neither.
func TestKindsOfErrorsCrossTheWire(t *testing.T) {
	err := dial(t, failingServer(t, checkpoint.ErrNewerFormat).URL, token).Blobs().Put(t.Context(), blob.New([]byte("x")))
	if !errors.Is(err, checkpoint.ErrNewerFormat) || !errors.Is(err, kv.ErrNewerFormat) || errors.Is(err, sqlite.ErrNewerFormat) {
		t.Errorf("got %v", err)
	}
}

// An old server names no errors.
func TestErrorsWithoutNames(t *testing.T) {
	next := failingServer(t, blob.ErrMismatch).Config.Handler
	front := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(nameless{w}, r) }))
	t.Cleanup(front.Close)
	if err := dial(t, front.URL, token).Blobs().Put(t.Context(), blob.New([]byte("x"))); !errors.Is(err, blob.ErrMismatch) {
		t.Errorf("got %v", err)
	}
}

// nameless leaves the header out.
type nameless struct{ http.ResponseWriter }

func (w nameless) WriteHeader(status int) {
	w.Header().Del("Stet-Error")
	w.ResponseWriter.WriteHeader(status)
}

func TestBatchesThatFitNoMessage(t *testing.T) {
	_, srv := start(t)
	b := &kv.Batch{}
	for i := range 5 {
		b.Set = append(b.Set, kv.Set{Key: fmt.Sprint("k", i), Value: make([]byte, 1<<20)})
	}
	if err := dial(t, srv.URL, token).Rows().Commit(t.Context(), b); !errors.Is(err, kv.ErrTooLarge) {
		t.Errorf("got %v, want %v", err, kv.ErrTooLarge)
	}
}

func TestArchivedAgentsAreDistinguished(t *testing.T) {
	_, srv := start(t)
	agents := dial(t, srv.URL, token).Agents()
	if _, err := agents.Create(t.Context(), "a1", "", ""); err != nil {
		t.Fatal(err)
	}
	if err := agents.Archive(t.Context(), "a1"); err != nil {
		t.Fatal(err)
	}
	if _, err := agents.Append(t.Context(), "a1", "", text("late")); !errors.Is(err, cloudagent.ErrArchived) {
		t.Errorf("got %v, want %v", err, cloudagent.ErrArchived)
	}
}
