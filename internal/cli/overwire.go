package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/transfer"
)

// moveOverWire moves conversations between this store and a server, each with one call.
// Unlike the rows of a server, which only an administrator may write, that needs no more
// than the write scope.
func (a *app) moveOverWire(ctx context.Context, verb, address string, names []string, flags moveFlags) error {
	push := verb == "push"
	return a.withStore(ctx, !push, func(here *stet.DB) error {
		local, err := a.side(ctx, here)
		if err != nil {
			return err
		}
		c, err := a.dialRemote(ctx, address)
		if err != nil {
			return err
		}
		defer c.Close()
		encrypted, err := encryptedThere(ctx, c)
		if err != nil {
			return err
		}
		source, opts := here, &transfer.Options{Force: flags.force, AllowPlain: flags.plain}
		one := func(id string) (client.Moved, error) { return c.Upload(ctx, local, id, encrypted, opts) }
		if !push {
			source = stet.NewRemote(c.Blobs(), c.Rows(), nil, nil)
			one = func(id string) (client.Moved, error) { return c.Download(ctx, id, local, encrypted, opts) }
		}
		ids, err := namedConversations(ctx, source, names)
		if err == nil && len(names) == 0 {
			ids, err = source.Conversations().IDs(ctx, "", 0)
		}
		if err != nil {
			return err
		}
		report, err := a.moveEach(ctx, ids, len(names) == 0, one)
		return a.transferred(verb, report, flags, err)
	})
}

// moveEach moves conversations one after the other. A failed one does not affect the
// others, unless its failure is that of the store or the server.
func (a *app) moveEach(ctx context.Context, ids []string, all bool, move func(id string) (client.Moved, error)) (*transfer.Report, error) {
	report, failed := &transfer.Report{}, &transfer.FailedError{}
	sent := a.counter("moving blobs:")
	defer sent.done()
	for _, id := range ids {
		moved, err := move(id)
		if all && errors.Is(err, transfer.ErrNotFound) {
			continue // deleted since it was listed
		}
		if err != nil {
			err = fmt.Errorf("move conversation %s: %w", id, err)
			if ctx.Err() != nil || errors.Is(err, transfer.ErrPlain) || !ofOneConversation(err) {
				return report, err
			}
			moved.Moved = transfer.Moved{ID: id, Title: moved.Title, Status: transfer.Failed, Err: err}
			failed.Errs = append(failed.Errs, err)
		}
		report.Conversations = append(report.Conversations, moved.Moved)
		report.Blobs, report.Bytes = report.Blobs+moved.Blobs, report.Bytes+moved.Bytes
		sent.set(int64(report.Blobs))
	}
	if len(failed.Errs) > 0 {
		return report, failed
	}
	return report, nil
}

// ofOneConversation reports whether a failure concerns a conversation, not a store.
func ofOneConversation(err error) bool {
	switch fault.Of(err) {
	case fault.NotFound, fault.Invalid, fault.Stale, fault.Conflict, fault.NewerFormat, fault.Damaged:
		return true
	}
	return false
}
