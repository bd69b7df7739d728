package server_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
)

// A size that no blob can have is refused in words that name it, whatever the layers below
// would count.
func TestSizesThatNoBlobHas(t *testing.T) {
	hc, base := dial(t, start(t, nil), token).HTTP()
	blobs := stetv1connect.NewBlobServiceClient(hc, base)
	for _, content := range []string{strings.Repeat("a", 1<<17), "short"} { // one that compresses, and one that is too short to try
		for _, test := range []struct {
			size   int64
			code   connect.Code
			reason string
			want   string
		}{
			{math.MaxInt64, connect.CodeResourceExhausted, "blob-too-large", "9223372036854775807 bytes; the limit is 1152921504606846976"},
			{math.MaxInt64 - 1, connect.CodeResourceExhausted, "blob-too-large", "9223372036854775806 bytes; the limit is 1152921504606846976"},
			{-1, connect.CodeInvalidArgument, "mismatch", "its size is -1"},
			{math.MinInt64, connect.CodeInvalidArgument, "mismatch", "its size is -9223372036854775808"},
		} {
			stream, err := blobs.PutStream(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			id := blob.Sum([]byte(content))
			_ = stream.Send(&stetv1.PutBlobStreamRequest{Id: id.Bytes(), Size: test.size, Chunk: []byte(content)})
			_, err = stream.CloseAndReceive()
			var wire *connect.Error
			if !errors.As(err, &wire) || wire.Code() != test.code || wire.Meta().Get("Stet-Error") != test.reason || !strings.Contains(wire.Message(), test.want) {
				t.Errorf("%d bytes: %v, want %v with %q", test.size, err, test.code, test.want)
			}
		}
	}
}
