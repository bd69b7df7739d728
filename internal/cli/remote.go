package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/client"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/upkeep"
)

// isRemote reports whether a store is the address of a server.
func isRemote(place string) bool {
	return strings.HasPrefix(place, "http://") || strings.HasPrefix(place, "https://")
}

// collectBy lets a server collect its own store.
func collectBy(c *client.Client) func(context.Context, *upkeep.CollectOptions) (upkeep.CollectResult, error) {
	return func(ctx context.Context, opts *upkeep.CollectOptions) (upkeep.CollectResult, error) {
		req := &stetv1.CollectRequest{DryRun: opts.DryRun, SkipDamaged: opts.SkipDamaged, GraceSeconds: int64(opts.Grace / time.Second)}
		if opts.Grace < 0 {
			req.GraceSeconds = -1
		}
		res, err := c.Store().Collect(ctx, req)
		if err != nil {
			return upkeep.CollectResult{}, fmt.Errorf("collect on the server: %w", err)
		}
		var out upkeep.CollectResult
		out.Removed, out.RemovedBytes = res.GetRemoved(), res.GetRemovedBytes()
		out.Kept, out.KeptBytes = res.GetKept(), res.GetKeptBytes()
		out.Live, out.Missing, out.Damaged = int(res.GetLive()), int(res.GetMissing()), int(res.GetDamaged())
		out.Withheld, out.WithheldBytes = res.GetWithheld(), res.GetWithheldBytes()
		for _, text := range res.GetUnreadable() {
			out.Unreadable = append(out.Unreadable, errors.New(text))
		}
		return out, nil
	}
}

// server examines a store that is on a server.
func (d *doctor) server(ctx context.Context, quick bool) error {
	d.workspace()
	c, err := d.app.dialRemote(ctx, d.dir)
	if errors.Is(err, client.ErrUnreachable) {
		return err
	}
	d.report("server answers", d.dir, err)
	if err != nil {
		return ctx.Err()
	}
	defer c.Close()
	info, err := c.Store().Info(ctx, &stetv1.StoreInfoRequest{})
	detail := ""
	if err == nil {
		detail = fmt.Sprintf("%s, version %s", info.GetKind(), info.GetVersion())
		if info.GetEncrypted() {
			detail += ", encrypted"
		}
	}
	d.report("store", detail, err)
	db := stet.NewRemote(c.Blobs(), c.Rows(), nil, nil)
	n, err := db.Conversations().Count(ctx)
	d.report("rows can be read", plural(n, "conversation"), err)
	if quick {
		return ctx.Err()
	}
	return d.blobs(ctx, db.Blobs())
}
