package server

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server/internal/wire"
)

// chunkSize is the number of bytes of a streamed blob in one message.
const chunkSize = 256 << 10

// blobService is stet.v1.BlobService.
type blobService struct {
	db     *stet.DB
	shared bool // see Options.Shared
}

// flush makes pending blobs durable if the next call may reach another server, which
// does not see this one's memory.
func (s *blobService) flush(ctx context.Context) error {
	if !s.shared {
		return nil
	}
	return s.db.Blobs().Flush(ctx)
}

func (s *blobService) Get(ctx context.Context, req *stetv1.GetBlobRequest) (*stetv1.GetBlobResponse, error) {
	id, err := blob.IDFromBytes(req.GetId())
	if err != nil {
		return nil, err
	}
	r, err := blob.Open(ctx, s.db.Blobs(), id)
	if err != nil {
		return nil, err
	}
	data, err := wire.ReadMessage(r, id)
	if err != nil {
		return nil, err
	}
	return &stetv1.GetBlobResponse{Data: data}, nil
}

func (s *blobService) Put(ctx context.Context, req *stetv1.PutBlobsRequest) (*stetv1.PutBlobsResponse, error) {
	blobs := make([]blob.Blob, 0, len(req.GetBlobs()))
	for _, b := range req.GetBlobs() {
		one, err := newBlob(b)
		if err != nil {
			return nil, err
		}
		blobs = append(blobs, one)
	}
	if err := s.db.Blobs().Put(ctx, blobs...); err != nil {
		return nil, err
	}
	if err := s.flush(ctx); err != nil {
		return nil, err
	}
	return &stetv1.PutBlobsResponse{}, nil
}

func newBlob(b *stetv1.NewBlob) (blob.Blob, error) {
	id, err := blob.IDFromBytes(b.GetId())
	if err != nil {
		return blob.Blob{}, err
	}
	one := blob.Blob{ID: id, Data: b.GetData(), Keep: b.GetKeep(), LocalOnly: b.GetLocalOnly()}
	if len(b.GetLike()) > 0 {
		if one.Like, err = blob.IDFromBytes(b.GetLike()); err != nil {
			return blob.Blob{}, err
		}
	}
	if one.Keep < 0 || one.Keep > 0 && one.Like.IsZero() {
		return blob.Blob{}, invalid("keep needs a blob to keep from")
	}
	return one, nil
}

func (s *blobService) Has(ctx context.Context, req *stetv1.HasBlobsRequest) (*stetv1.HasBlobsResponse, error) {
	ids := make([]blob.ID, len(req.GetIds()))
	for i, raw := range req.GetIds() {
		id, err := blob.IDFromBytes(raw)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	has, err := s.db.Blobs().Has(ctx, ids...)
	if err != nil {
		return nil, err
	}
	return &stetv1.HasBlobsResponse{Has: has}, nil
}

func (s *blobService) Flush(ctx context.Context, _ *stetv1.FlushBlobsRequest) (*stetv1.FlushBlobsResponse, error) {
	if err := s.db.Blobs().Flush(ctx); err != nil {
		return nil, err
	}
	return &stetv1.FlushBlobsResponse{}, nil
}

func (s *blobService) List(ctx context.Context, req *stetv1.ListBlobsRequest) (*stetv1.ListBlobsResponse, error) {
	var after blob.ID
	if raw := req.GetAfter(); len(raw) > 0 {
		var err error
		if after, err = blob.IDFromBytes(raw); err != nil {
			return nil, err
		}
	}
	limit := wire.PageSize(req.GetLimit())
	res := &stetv1.ListBlobsResponse{}
	err := s.db.List(ctx, after, func(info blob.Info) error {
		if len(res.Blobs) == limit {
			res.More = true
			return io.EOF
		}
		entry := &stetv1.BlobInfo{Id: info.ID.Bytes(), Stored: info.Stored}
		if !info.Base.IsZero() {
			entry.Base = info.Base.Bytes()
		}
		res.Blobs = append(res.Blobs, entry)
		return nil
	})
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return res, nil
}

func (s *blobService) Open(ctx context.Context, req *stetv1.OpenBlobRequest, stream *connect.ServerStream[stetv1.OpenBlobResponse]) error {
	id, err := blob.IDFromBytes(req.GetId())
	if err != nil {
		return err
	}
	r, err := blob.Open(ctx, s.db.Blobs(), id)
	if err != nil {
		return err
	}
	defer r.Close()
	chunk := make([]byte, chunkSize)
	for {
		n, err := io.ReadFull(r, chunk)
		if n > 0 {
			if err := stream.Send(&stetv1.OpenBlobResponse{Chunk: chunk[:n]}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (s *blobService) PutStream(ctx context.Context, stream *connect.ClientStream[stetv1.PutBlobStreamRequest]) (*stetv1.PutBlobsResponse, error) {
	if !stream.Receive() {
		if err := stream.Err(); err != nil {
			return nil, err
		}
		return nil, missing("the stream is empty")
	}
	first := stream.Msg()
	id, err := blob.IDFromBytes(first.GetId())
	if err != nil {
		return nil, err
	}
	source := &streamReader{stream: stream, chunk: first.GetChunk()}
	if err := blob.PutFrom(ctx, s.db.Blobs(), id, source, first.GetSize()); err != nil {
		return nil, err
	}
	if err := s.flush(ctx); err != nil {
		return nil, err
	}
	return &stetv1.PutBlobsResponse{}, nil
}

// streamReader reads the chunks of a client's stream.
type streamReader struct {
	stream *connect.ClientStream[stetv1.PutBlobStreamRequest]
	chunk  []byte
}

func (r *streamReader) Read(p []byte) (int, error) {
	for len(r.chunk) == 0 {
		if !r.stream.Receive() {
			if err := r.stream.Err(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
		r.chunk = r.stream.Msg().GetChunk()
	}
	n := copy(p, r.chunk)
	r.chunk = r.chunk[n:]
	return n, nil
}

func (s *blobService) Keep(ctx context.Context, req *stetv1.KeepBlobsRequest) (*stetv1.KeepBlobsResponse, error) {
	ids := make([]blob.ID, len(req.GetIds()))
	for i, raw := range req.GetIds() {
		id, err := blob.IDFromBytes(raw)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	missing, err := s.db.KeepFor(ctx, req.GetOrigin(), ids)
	if err != nil {
		return nil, err
	}
	res := &stetv1.KeepBlobsResponse{}
	for _, id := range missing {
		res.Missing = append(res.Missing, id.Bytes())
	}
	return res, nil
}
