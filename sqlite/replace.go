package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
)

// exchange is new content for a stored blob, and the object file that it had.
type exchange struct {
	record
	missing bool   // there is no such blob
	old     string // suffix of the file that was replaced
}

// Replace implements blob.Replacer: one transaction for all of them.
func (b *Blobs) Replace(ctx context.Context, blobs ...blob.Blob) error {
	all := make([]*exchange, 0, len(blobs))
	for _, one := range blobs {
		fresh, err := b.stage(one.ID, bytes.NewReader(one.Data), int64(len(one.Data)))
		if err != nil {
			return errors.Join(err, b.abandon(all))
		}
		all = append(all, fresh)
	}
	return b.exchange(ctx, all)
}

// ReplaceFrom implements blob.Replacer.
func (b *Blobs) ReplaceFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	fresh, err := b.stage(id, r, size)
	if err != nil {
		return err
	}
	if err := b.exchange(ctx, []*exchange{fresh}); err != nil {
		return err
	}
	if fresh.missing {
		return blob.NotFound(id)
	}
	return nil
}

// stage reads new content, a large one into a file that no row names yet.
func (b *Blobs) stage(id blob.ID, r io.Reader, size int64) (*exchange, error) {
	fresh := &exchange{record: record{id: id, size: size}}
	var err error
	if size >= int64(b.db.opts.ObjectSize) {
		fresh.file, err = b.db.objects.write(id, r, size)
	} else {
		fresh.data, err = blob.ReadExactly(r, size)
	}
	if err != nil {
		return nil, fmt.Errorf("replace blob %s: %w", id, err)
	}
	return fresh, nil
}

// exchange points the rows at the new content and tidies up.
func (b *Blobs) exchange(ctx context.Context, all []*exchange) error {
	if len(all) == 0 {
		return ctx.Err()
	}
	if err := b.Flush(ctx); err != nil { // so that there are rows
		return errors.Join(err, b.abandon(all))
	}
	err := b.db.writer.do(&request{ctx: ctx, task: func(c *conn) error {
		for _, fresh := range all {
			if err := b.replaceRow(c, fresh); err != nil {
				return err
			}
		}
		return nil
	}})
	// After an error, a context that ended too, a row may yet name the new file. Its
	// second link lets the next open find out.
	if err != nil {
		return err
	}
	var errs []error
	for _, fresh := range all {
		if fresh.file != "" && !fresh.missing {
			errs = append(errs, fileError("settle an object file", b.db.objects.settle(fresh.id, fresh.file)))
		}
		if fresh.file != "" && fresh.missing {
			errs = append(errs, b.db.objects.discard(fresh.id, fresh.file))
		}
		if fresh.old != "" {
			errs = append(errs, fileError("remove a replaced object file", b.db.objects.discard(fresh.id, fresh.old)))
		}
	}
	return errors.Join(errs...)
}

// abandon removes files that no transaction has seen.
func (b *Blobs) abandon(all []*exchange) error {
	var errs []error
	for _, fresh := range all {
		if fresh.file != "" {
			errs = append(errs, b.db.objects.discard(fresh.id, fresh.file))
		}
	}
	return errors.Join(errs...)
}

// replaceRow runs within a transaction, perhaps again after one that failed.
func (b *Blobs) replaceRow(c *conn, fresh *exchange) error {
	fresh.missing, fresh.old = true, ""
	err := c.query(`SELECT file FROM blobs WHERE id = ?1`, func(s *sqlite3.Stmt) error {
		fresh.missing, fresh.old = false, s.ColumnText(0)
		return nil
	}, fresh.id[:])
	if err != nil {
		return sqlError("look up blob "+fresh.id.String(), err)
	}
	if fresh.missing {
		return nil
	}
	if fresh.old != "" {
		if err := b.db.objects.condemn(fresh.id, fresh.old); err != nil {
			return fileError("prepare removal of an object file", err)
		}
	}
	var file, data any
	if fresh.file != "" {
		file = fresh.file
	} else {
		data = fresh.data
	}
	// The row moves to the end, where rows are packed tightly. In its old place a
	// content of another size would leave pages half empty.
	return sqlError("replace blob "+fresh.id.String(),
		c.exec(`UPDATE blobs SET n = (SELECT max(n) FROM blobs) + 1, size = ?2, file = ?3, data = ?4 WHERE id = ?1`,
			fresh.id[:], fresh.size, file, data))
}
