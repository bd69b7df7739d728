package server

import (
	"context"
	"errors"
	"slices"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/transfer"
)

const (
	// namesAtOnce is how many ids of blobs one message holds.
	namesAtOnce = 16 << 10
	// maxWanted is how many blobs one download may request.
	maxWanted = 1 << 16
)

// transferService is stet.v1.TransferService.
type transferService struct{ db *stet.DB }

func (s *transferService) side() transfer.Side {
	return transfer.Side{Blobs: s.db.Blobs(), Rows: s.db.Rows(), Encrypted: s.db.Ring() != nil}
}

func (s *transferService) Upload(ctx context.Context, stream *connect.ClientStream[stetv1.UploadConversationRequest]) (*stetv1.UploadConversationResponse, error) {
	var in *transfer.Incoming
	for stream.Receive() {
		m := stream.Msg()
		if in == nil {
			if m.GetId() == "" {
				return nil, missing("the first message must name the conversation")
			}
			in = transfer.Receive(s.side(), m.GetId(), &transfer.Options{Force: m.GetForce()})
			defer in.Close()
		}
		part, err := transfer.ParsePart(m.GetPart())
		if err != nil {
			return nil, err
		}
		if err := in.Take(ctx, part); err != nil {
			return nil, err
		}
		// The rows stay in memory until the end.
		if err := callOf(ctx).memory.grow(ctx, 2*in.Held()); err != nil {
			return nil, err
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	if in == nil {
		return nil, missing("the stream is empty")
	}
	moved, err := in.Finish(ctx)
	if err != nil {
		return nil, err
	}
	return &stetv1.UploadConversationResponse{
		Id: moved.ID, Title: moved.Title, Status: string(moved.Status),
		Saves: uint32(moved.Saves), Checkpoints: uint32(moved.Checkpoints), Rows: uint32(moved.Rows),
	}, nil
}

func (s *transferService) Download(ctx context.Context, req *stetv1.DownloadConversationRequest, stream *connect.ServerStream[stetv1.DownloadConversationResponse]) error {
	from, id := s.side(), req.GetId()
	send := func(p transfer.Part) error {
		return stream.Send(&stetv1.DownloadConversationResponse{Part: p.Wire()})
	}
	if wanted := req.GetBlobs(); len(wanted) > 0 {
		return s.some(ctx, id, wanted, send)
	}
	// Blobs are listed after the rows, so that they include those of every row.
	if err := transfer.Send(ctx, from, id, nil, send); err != nil {
		return err
	}
	blobs, err := transfer.Blobs(ctx, from, id)
	if err != nil {
		return err
	}
	if !req.GetNamesOnly() {
		return transfer.SendBlobs(ctx, from, blobs, send)
	}
	for names := range slices.Chunk(blobs, namesAtOnce) {
		res := &stetv1.DownloadConversationResponse{}
		for _, name := range names {
			res.Names = append(res.Names, name.Bytes())
		}
		if err := stream.Send(res); err != nil {
			return err
		}
	}
	return nil
}

// some sends blobs that the caller names. A missing one is a loss only if the
// conversation needs it.
func (s *transferService) some(ctx context.Context, id string, wanted [][]byte, send func(transfer.Part) error) error {
	if len(wanted) > maxWanted {
		return invalid("%d blobs; ask for at most %d at once", len(wanted), maxWanted)
	}
	ids := make([]blob.ID, len(wanted))
	for i, raw := range wanted {
		var err error
		if ids[i], err = blob.IDFromBytes(raw); err != nil {
			return err
		}
	}
	err := transfer.SendBlobs(ctx, s.side(), ids, send)
	if !errors.Is(err, blob.ErrNotFound) {
		return err
	}
	needed, cause := transfer.Blobs(ctx, s.side(), id)
	if cause != nil {
		return cause
	}
	has, cause := s.db.Blobs().Has(ctx, ids...)
	if cause != nil {
		return cause
	}
	for i, id := range ids {
		if !has[i] && !slices.Contains(needed, id) {
			return blob.NotFound(id)
		}
	}
	return err
}
