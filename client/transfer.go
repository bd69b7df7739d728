package client

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/transfer"
)

// Moved is the result of an upload or download.
type Moved struct {
	transfer.Moved
	// Blobs and Bytes count the blobs that were sent.
	Blobs int
	Bytes int64
}

// Upload sends a conversation with everything that belongs to it, in one call that
// needs a token with the write scope. It first reads what the server has, so that
// only missing blobs are sent, and calls nothing if the server has everything. After
// a failure, repeat it. Only the options Force and AllowPlain are used; encrypted
// says whether the server's store is encrypted.
func (c *Client) Upload(ctx context.Context, from transfer.Side, id string, encrypted bool, opts *transfer.Options) (Moved, error) {
	to := transfer.Side{Blobs: c.Blobs(), Rows: c.Rows(), Encrypted: encrypted}
	for attempt := 1; ; attempt++ {
		planned, lacks, err := transfer.Needed(ctx, from, to, id, opts)
		if err != nil || !planned.Anything() {
			return Moved{Moved: planned}, err
		}
		out, err := c.upload(ctx, from, id, lacks, opts != nil && opts.Force)
		var missing *kv.MissingBlobsError
		if attempt < uploads && errors.As(err, &missing) {
			continue // the conversation was changed, or a collector was faster
		}
		if err != nil {
			return Moved{Moved: transfer.Moved{ID: id, Title: planned.Title}}, fmt.Errorf("upload conversation %s: %w", id, err)
		}
		out.TitleThere = planned.TitleThere
		return out, nil
	}
}

// uploads is how often an upload is tried whose blobs are missing.
const uploads = 3

func (c *Client) upload(ctx context.Context, from transfer.Side, id string, lacks []blob.ID, force bool) (Moved, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.transfers.Upload(ctx)
	if err != nil {
		return Moved{}, localError(ctx, err, kv.ErrNotFound)
	}
	out := Moved{Blobs: len(lacks)}
	err = stream.Send(&stetv1.UploadConversationRequest{Id: id, Force: force})
	if err == nil {
		err = transfer.Send(ctx, from, id, lacks, func(p transfer.Part) error {
			for _, piece := range p.Pieces {
				out.Bytes += int64(len(piece.Data))
			}
			return stream.Send(&stetv1.UploadConversationRequest{Part: p.Wire()})
		})
	}
	if err != nil && !errors.Is(err, io.EOF) {
		cancel() // a stream that ends properly counts as whole
		_, _ = stream.CloseAndReceive()
		return Moved{}, err
	}
	res, err := stream.CloseAndReceive() // says why the server ended the stream, if it did
	if err != nil {
		return Moved{}, localError(ctx, err, kv.ErrNotFound)
	}
	out.Moved = transfer.Moved{
		ID: res.GetId(), Title: res.GetTitle(), Status: transfer.Status(res.GetStatus()),
		Saves: int(res.GetSaves()), Checkpoints: int(res.GetCheckpoints()), Rows: int(res.GetRows()),
	}
	return out, nil
}

// wanted is how many blobs one download requests.
const wanted = 4096

// Download fetches a conversation with everything that belongs to it into a store of
// this machine. Only missing blobs are fetched; blobs that arrived before an
// interruption are not fetched again. Only the options Force and AllowPlain are used;
// encrypted says whether the server's store is encrypted.
func (c *Client) Download(ctx context.Context, id string, to transfer.Side, encrypted bool, opts *transfer.Options) (Moved, error) {
	if encrypted && !to.Encrypted && (opts == nil || !opts.AllowPlain) {
		return Moved{}, transfer.ErrPlain
	}
	in := transfer.Receive(to, id, opts)
	defer in.Close()
	var names []blob.ID
	err := c.download(ctx, &stetv1.DownloadConversationRequest{Id: id, NamesOnly: true}, func(m *stetv1.DownloadConversationResponse) error {
		for _, raw := range m.GetNames() {
			name, err := blob.IDFromBytes(raw)
			if err != nil {
				return err
			}
			names = append(names, name)
		}
		return take(ctx, in, m.GetPart())
	})
	if err != nil {
		return Moved{}, err
	}
	var out Moved
	for len(names) > 0 {
		n := min(len(names), wanted)
		if err := c.fetchLacking(ctx, id, to.Blobs, names[:n], in, &out); err != nil {
			return Moved{}, err
		}
		names = names[n:]
	}
	if out.Moved, err = in.Finish(ctx); err != nil {
		err = fmt.Errorf("download conversation %s: %w", id, err)
	}
	return out, err
}

// fetchLacking fetches the blobs that the store lacks.
func (c *Client) fetchLacking(ctx context.Context, id string, to blob.Store, names []blob.ID, in *transfer.Incoming, out *Moved) error {
	has, err := to.Has(ctx, names...)
	if err != nil {
		return err
	}
	req := &stetv1.DownloadConversationRequest{Id: id}
	for i, name := range names {
		if !has[i] {
			req.Blobs = append(req.Blobs, name.Bytes())
		}
	}
	if len(req.Blobs) == 0 {
		return nil
	}
	out.Blobs += len(req.Blobs)
	return c.download(ctx, req, func(m *stetv1.DownloadConversationResponse) error {
		for _, piece := range m.GetPart().GetPieces() {
			out.Bytes += int64(len(piece.GetData()))
		}
		return take(ctx, in, m.GetPart())
	})
}

func (c *Client) download(ctx context.Context, req *stetv1.DownloadConversationRequest, use func(*stetv1.DownloadConversationResponse) error) error {
	stream, err := c.transfers.Download(ctx, req)
	if err != nil {
		return localError(ctx, err, transfer.ErrNotFound)
	}
	defer stream.Close()
	for stream.Receive() {
		if err := use(stream.Msg()); err != nil {
			return err
		}
	}
	return localError(ctx, stream.Err(), transfer.ErrNotFound)
}

// take passes on a received part.
func take(ctx context.Context, in *transfer.Incoming, p *stetv1.ConversationPart) error {
	part, err := transfer.ParsePart(p)
	if err != nil {
		return err
	}
	return in.Take(ctx, part)
}
