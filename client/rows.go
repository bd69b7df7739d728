package client

import (
	"context"
	"fmt"
	"iter"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
)

// serverMessage is the largest message that servers accept. They reject a larger one
// unread, so their answer does not say what was too large.
const serverMessage = 4 << 20

// Rows is the kv.Store of a server.
type Rows struct{ c *Client }

// Rows returns the server's rows.
func (c *Client) Rows() *Rows { return &Rows{c: c} }

// Get implements kv.Store.
func (r *Rows) Get(ctx context.Context, key string) (kv.Row, error) {
	if err := ctx.Err(); err != nil {
		return kv.Row{}, err
	}
	if err := kv.CheckKey(key); err != nil {
		return kv.Row{}, err
	}
	res, err := r.c.rows.Get(ctx, &stetv1.GetRowRequest{Key: []byte(key)})
	if err != nil {
		return kv.Row{}, localError(ctx, err, kv.NotFound(key))
	}
	return localRow(res.GetRow(), false), nil
}

func localRow(row *stetv1.Row, keysOnly bool) kv.Row {
	out := kv.Row{Key: string(row.GetKey()), Value: row.GetValue(), Version: row.GetVersion()}
	if out.Value == nil && !keysOnly {
		out.Value = []byte{}
	}
	return out
}

// Scan implements kv.Store; it reads a page at a time.
func (r *Rows) Scan(ctx context.Context, in kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		in, left := in, opts.Limit
		for !in.Empty() {
			req := &stetv1.ScanRowsRequest{
				Range: &stetv1.KeyRange{Start: []byte(in.Start), End: []byte(in.End)}, Reverse: opts.Reverse, KeysOnly: opts.KeysOnly, Limit: uint32(left),
			}
			res, err := r.c.rows.Scan(ctx, req)
			if err != nil {
				yield(kv.Row{}, localError(ctx, err, kv.ErrNotFound))
				return
			}
			rows := res.GetRows()
			for _, row := range rows {
				if !yield(localRow(row, opts.KeysOnly), nil) {
					return
				}
			}
			left -= len(rows)
			if !res.GetMore() || len(rows) == 0 || opts.Limit > 0 && left <= 0 {
				return
			}
			if last := string(rows[len(rows)-1].GetKey()); opts.Reverse {
				in.End = last
			} else {
				in.Start = last + "\x00"
			}
		}
	}
}

// ScanBeside implements kv.Store with a request for each row.
func (r *Rows) ScanBeside(ctx context.Context, in kv.Range, opts kv.ScanOptions, beside ...kv.Beside) ([]kv.Found, error) {
	return kv.EachBeside(ctx, r, in, opts, beside...)
}

// Commit implements kv.Store.
func (r *Rows) Commit(ctx context.Context, b *kv.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.Check(); err != nil {
		return err
	}
	req := &stetv1.CommitRequest{}
	for _, key := range b.Delete {
		req.Delete = append(req.Delete, []byte(key))
	}
	for _, e := range b.Expect {
		req.Expect = append(req.Expect, &stetv1.RowExpectation{Key: []byte(e.Key), Version: e.Version})
	}
	for _, d := range b.DeleteRange {
		req.DeleteRange = append(req.DeleteRange, &stetv1.KeyRange{Start: []byte(d.Start), End: []byte(d.End)})
	}
	for _, s := range b.Set {
		req.Set = append(req.Set, &stetv1.Row{Key: []byte(s.Key), Value: s.Value})
	}
	for _, id := range b.Refs {
		req.Refs = append(req.Refs, id.Bytes())
	}
	_, err := r.c.rows.Commit(ctx, req)
	if connect.CodeOf(err) == connect.CodeResourceExhausted && proto.Size(req) > serverMessage {
		return fmt.Errorf("%w: the batch has %d bytes; the limit of a server is %d", kv.ErrTooLarge, proto.Size(req), serverMessage)
	}
	return localError(ctx, err, kv.ErrNotFound)
}

// Watch implements kv.Store. After a lost connection there are no more hints until
// Watch is called again; hints may be lost, so callers poll.
func (r *Rows) Watch(ctx context.Context, in kv.Range) <-chan struct{} {
	hints := make(chan struct{}, 1)
	go func() {
		stream, err := r.c.rows.Watch(ctx, &stetv1.WatchRequest{Range: &stetv1.KeyRange{Start: []byte(in.Start), End: []byte(in.End)}})
		if err != nil {
			return
		}
		defer stream.Close()
		for stream.Receive() {
			select {
			case hints <- struct{}{}:
			default:
			}
		}
	}()
	return hints
}
