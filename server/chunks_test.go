package server

import (
	"context"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/access"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
)

// dripping is a stream of messages with one byte each.
type dripping struct{ connect.StreamingHandlerConn }

func (dripping) Spec() connect.Spec {
	return connect.Spec{Procedure: stetv1connect.BlobServicePutStreamProcedure}
}

func (dripping) Receive(msg any) error {
	msg.(*stetv1.PutBlobStreamRequest).Chunk = []byte("a")
	return nil
}

// What is kept about a stream depends on its bytes, not on the number of its messages.
func TestSmallChunksAreCountedTogether(t *testing.T) {
	const limit = 1 << 20
	meter := access.NewMeter(access.Limits{Bytes: limit}, func(context.Context) (int64, error) { return 0, nil })
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := withCall(t.Context(), &call{meter: meter})
	conn := &storingConn{StreamingHandlerConn: dripping{}, ctx: ctx, storing: &storing{gate: &gate{metrics: m}}}
	defer conn.end()
	sent := 0
	for ; err == nil && sent < 2*limit; sent += 3 { // as it is encoded
		err = conn.Receive(&stetv1.PutBlobStreamRequest{})
	}
	if connect.CodeOf(err) != connect.CodeResourceExhausted || sent > limit+2*storedAtOnce {
		t.Errorf("the limit of %d bytes held at %d: %v", limit, sent, err)
	}
	if n := len(conn.ends); n > limit/storedAtOnce {
		t.Errorf("%d messages left %d counts, want %d at most", sent/3, n, limit/storedAtOnce)
	}
}
