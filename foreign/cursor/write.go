package cursor

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
)

// write runs fn in a transaction that is durable when write returns. Only the blob
// view calls it, and only with Options.Write.
func (d *database) write(ctx context.Context, fn func(*conn) error) error {
	d.writeMu.Lock()
	defer d.writeMu.Unlock()
	if d.isClosed() {
		return blob.ErrClosed
	}
	if err := d.sameFile(); err != nil {
		return err
	}
	if d.writer == nil {
		w, err := d.connectWriter(ctx)
		if err != nil {
			return err
		}
		d.writer = w
	}
	err := d.writer.transactWrite(ctx, fn)
	d.touch()
	if err != nil {
		d.writer.close() // whatever state it is in
		d.writer = nil
		return fmt.Errorf("write %s: %w", d.path, wrapSQLite(ctx, err))
	}
	return nil
}

func (c *conn) transactWrite(ctx context.Context, fn func(*conn) error) (err error) {
	defer recoverDriver(&err)
	c.SetInterrupt(ctx)
	tx, err := c.BeginImmediate()
	if err != nil {
		return err
	}
	if err := fn(c); err != nil {
		c.SetInterrupt(context.Background())
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
