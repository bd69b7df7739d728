package server_test

import (
	"context"
	"testing"

	"connectrpc.com/connect"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
)

// Streams have the same limits, message by message.
func TestHostileMessagesOfStreams(t *testing.T) {
	hc, base := dial(t, start(t, nil), token).HTTP()
	for _, opts := range [][]connect.ClientOption{nil, {connect.WithGRPC()}, {connect.WithSendGzip()}} {
		blobs := stetv1connect.NewBlobServiceClient(hc, base, opts...)
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := blobs.PutStream(ctx)
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
