package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
)

// Replace exchanges the stored bytes of a blob, for layers that seal anew: its
// id, base and generation stay. Readers get the old bytes or the new ones,
// whole, also after a crash.
func (b *Blobs) Replace(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	if err := b.Flush(ctx); err != nil { // so that there is a row
		return err
	}
	fresh := &record{id: id, size: size}
	if size >= int64(b.db.opts.ObjectSize) {
		suffix, err := b.db.objects.write(id, r, size)
		if err != nil {
			return fmt.Errorf("replace blob %s: %w", id, err)
		}
		fresh.file = suffix
	} else {
		data, err := blob.ReadExactly(r, size)
		if err != nil {
			return fmt.Errorf("replace blob %s: %w", id, err)
		}
		fresh.data = data
	}
	old, err := b.replaceRow(ctx, fresh)
	if errors.Is(err, blob.ErrNotFound) && fresh.file != "" {
		return errors.Join(err, b.db.objects.discard(id, fresh.file))
	}
	// After any other error, a context that ended too, the row may yet name the new
	// file. Its second link lets the next open find out.
	if err != nil {
		return err
	}
	if fresh.file != "" {
		if err := b.db.objects.settle(id, fresh.file); err != nil {
			return fileError("settle an object file", err)
		}
	}
	if old != "" {
		return fileError("remove a replaced object file", b.db.objects.discard(id, old))
	}
	return nil
}

// replaceRow points the row at the new bytes and returns the object file that it
// named before.
func (b *Blobs) replaceRow(ctx context.Context, fresh *record) (old string, err error) {
	err = b.db.writer.do(&request{ctx: ctx, task: func(c *conn) error {
		found := false
		err := c.query(`SELECT file FROM blobs WHERE id = ?1`, func(s *sqlite3.Stmt) error {
			found, old = true, s.ColumnText(0)
			return nil
		}, fresh.id[:])
		if err != nil {
			return sqlError("look up blob "+fresh.id.String(), err)
		}
		if !found {
			return blob.NotFound(fresh.id)
		}
		if old != "" {
			if err := b.db.objects.condemn(fresh.id, old); err != nil {
				return fileError("prepare removal of an object file", err)
			}
		}
		var file, data any
		if fresh.file != "" {
			file = fresh.file
		} else {
			data = fresh.data
		}
		return sqlError("replace blob "+fresh.id.String(),
			c.exec(`UPDATE blobs SET size = ?2, file = ?3, data = ?4 WHERE id = ?1`, fresh.id[:], fresh.size, file, data))
	}})
	return old, err
}
