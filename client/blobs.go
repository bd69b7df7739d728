package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

const (
	// messageBytes limits the content of one message; larger blobs are streamed.
	messageBytes = 3 << 20
	chunkBytes   = 256 << 10
	hasIDs       = 4096 // ids in one request
)

// Blobs is the blob.Store of a server. It also streams and lists.
type Blobs struct{ c *Client }

// Blobs returns the server's blobs.
func (c *Client) Blobs() *Blobs { return &Blobs{c: c} }

// Get implements blob.Store.
func (b *Blobs) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := b.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if data == nil {
		data = []byte{}
	}
	return data, err
}

// Put implements blob.Store. Blobs are sent together up to the size of a message.
func (b *Blobs) Put(ctx context.Context, blobs ...blob.Blob) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	req, size := &stetv1.PutBlobsRequest{}, 0
	send := func() error {
		if len(req.Blobs) == 0 {
			return nil
		}
		_, err := b.c.blobs.Put(ctx, req)
		req, size = &stetv1.PutBlobsRequest{}, 0
		return b.putError(ctx, err)
	}
	for _, one := range blobs {
		if len(one.Data) > messageBytes {
			if err := send(); err != nil { // order matters to blobs that extend others
				return err
			}
			if err := b.putLarge(ctx, one); err != nil {
				return err
			}
			continue
		}
		if size+len(one.Data) > messageBytes {
			if err := send(); err != nil {
				return err
			}
		}
		size += len(one.Data) + 128
		req.Blobs = append(req.Blobs, wireBlob(one))
	}
	return send()
}

func wireBlob(b blob.Blob) *stetv1.NewBlob {
	w := &stetv1.NewBlob{Id: b.ID.Bytes(), Data: b.Data, Keep: b.Keep, LocalOnly: b.LocalOnly}
	if !b.Like.IsZero() {
		w.Like = b.Like.Bytes()
	}
	return w
}

func (b *Blobs) putLarge(ctx context.Context, one blob.Blob) error {
	whole, err := blob.Whole(ctx, b, one)
	if err != nil {
		return err
	}
	return b.PutFrom(ctx, whole.ID, bytes.NewReader(whole.Data), int64(len(whole.Data)))
}

// putError distinguishes a blob that does not match its id from one that extends an
// absent blob. An old server does not say what is wrong with an argument.
func (b *Blobs) putError(ctx context.Context, err error) error {
	var wire *connect.Error
	if errors.As(err, &wire) && wire.Code() == connect.CodeInvalidArgument && ctx.Err() == nil && len(reasonsOf(wire)) == 0 {
		return fmt.Errorf("%w: %w", blob.ErrMismatch, err)
	}
	return localError(ctx, err, blob.ErrNotFound)
}

// Has implements blob.Store.
func (b *Blobs) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	has := make([]bool, 0, len(ids))
	for len(ids) > 0 {
		n := min(len(ids), hasIDs)
		req := &stetv1.HasBlobsRequest{}
		for _, id := range ids[:n] {
			req.Ids = append(req.Ids, id.Bytes())
		}
		ids = ids[n:]
		res, err := b.c.blobs.Has(ctx, req)
		if err != nil {
			return nil, localError(ctx, err, blob.ErrNotFound)
		}
		if len(res.GetHas()) != n {
			return nil, fmt.Errorf("asked the server for %d blobs, got %d answers", n, len(res.GetHas()))
		}
		has = append(has, res.GetHas()...)
	}
	return has, nil
}

// Flush implements blob.Store.
func (b *Blobs) Flush(ctx context.Context) error {
	_, err := b.c.blobs.Flush(ctx, &stetv1.FlushBlobsRequest{})
	return localError(ctx, err, blob.ErrNotFound)
}

// Keep makes the server hold blobs for another store, the origin, so that its collector
// does not remove them. It returns those that the server does not have.
func (b *Blobs) Keep(ctx context.Context, origin string, ids []blob.ID) (missing []blob.ID, err error) {
	req := &stetv1.KeepBlobsRequest{Origin: origin}
	for _, id := range ids {
		req.Ids = append(req.Ids, id.Bytes())
	}
	res, err := b.c.blobs.Keep(ctx, req)
	if err != nil {
		return nil, localError(ctx, err, blob.ErrNotFound)
	}
	for _, raw := range res.GetMissing() {
		id, err := blob.IDFromBytes(raw)
		if err != nil {
			return nil, err
		}
		missing = append(missing, id)
	}
	return missing, nil
}

// Open implements blob.Streamer.
func (b *Blobs) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	stream, err := b.c.blobs.Open(ctx, &stetv1.OpenBlobRequest{Id: id.Bytes()})
	if err != nil {
		return nil, localError(ctx, err, blob.NotFound(id))
	}
	r := &openReader{ctx: ctx, id: id, stream: stream}
	if err := r.next(); err != nil && err != io.EOF { // report an absent blob now, not at the first read
		stream.Close()
		return nil, err
	}
	return r, nil
}

type openReader struct {
	ctx    context.Context // of the call that opened it, to recognize cancellation
	id     blob.ID
	stream *connect.ServerStreamForClient[stetv1.OpenBlobResponse]
	chunk  []byte
	done   error
}

func (r *openReader) next() error {
	if r.done != nil {
		return r.done
	}
	if !r.stream.Receive() {
		r.done = io.EOF
		if err := r.stream.Err(); err != nil {
			r.done = localError(r.ctx, err, blob.NotFound(r.id))
		}
		return r.done
	}
	r.chunk = r.stream.Msg().GetChunk()
	return nil
}

func (r *openReader) Read(p []byte) (int, error) {
	for len(r.chunk) == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.chunk)
	r.chunk = r.chunk[n:]
	return n, nil
}

func (r *openReader) Close() error { return r.stream.Close() }

// PutFrom implements blob.Streamer.
func (b *Blobs) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if size <= messageBytes {
		data, err := blob.ReadExactly(r, size)
		if err != nil {
			return err
		}
		return b.Put(ctx, blob.Blob{ID: id, Data: data})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a failed source must not look like the end of the content
	stream, err := b.c.blobs.PutStream(ctx)
	if err != nil {
		return b.putError(ctx, err)
	}
	msg := &stetv1.PutBlobStreamRequest{Id: id.Bytes(), Size: size}
	chunk := make([]byte, chunkBytes)
	for {
		n, err := io.ReadFull(r, chunk)
		if n > 0 {
			msg.Chunk = chunk[:n]
			if sendErr := stream.Send(msg); sendErr != nil {
				break // the answer has the reason
			}
			msg = &stetv1.PutBlobStreamRequest{}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return err
		}
	}
	_, err = stream.CloseAndReceive()
	return b.putError(ctx, err)
}

// List implements blob.Lister.
func (b *Blobs) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	for {
		req := &stetv1.ListBlobsRequest{}
		if !after.IsZero() {
			req.After = after.Bytes()
		}
		res, err := b.c.blobs.List(ctx, req)
		if err != nil {
			return localError(ctx, err, blob.ErrNotFound)
		}
		for _, entry := range res.GetBlobs() {
			info := blob.Info{Stored: entry.GetStored()}
			if info.ID, err = blob.IDFromBytes(entry.GetId()); err != nil {
				return err
			}
			copy(info.Base[:], entry.GetBase())
			if err := fn(info); err != nil {
				return err
			}
			after = info.ID
		}
		if !res.GetMore() {
			return nil
		}
	}
}
