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

// exchange is new content for a stored blob, and its old object file.
type exchange struct {
	record
	keepBase bool   // keep the base the row has
	passed   bool   // the blob is gone or cannot lean on the new base
	old      string // suffix of the file that was replaced
}

// Kept returns the stored bytes of a durable blob together with their base. Separate
// calls of Info and Get could see the blob before and after a replacement.
func (b *Blobs) Kept(ctx context.Context, id blob.ID) (blob.Blob, error) {
	p, err := b.look().findRow(ctx, id)
	if err == nil {
		p, err = b.look().load(ctx, id, p)
	}
	if err != nil {
		return blob.Blob{}, err
	}
	return blob.Blob{ID: id, Data: p.data, Base: p.base, Given: true}, nil
}

// Replace implements blob.Replacer in one transaction.
func (b *Blobs) Replace(ctx context.Context, blobs ...blob.Blob) error {
	all := make([]*exchange, 0, len(blobs))
	for _, one := range blobs {
		fresh, err := b.stage(one.ID, bytes.NewReader(one.Data), int64(len(one.Data)))
		if err != nil {
			return errors.Join(err, b.abandon(all))
		}
		fresh.base = one.Base
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
	fresh.keepBase = true
	if err := b.exchange(ctx, []*exchange{fresh}); err != nil {
		return err
	}
	if fresh.passed {
		return blob.NotFound(id)
	}
	return nil
}

// stage reads new content. Large content goes into a file that no row names yet.
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

// exchange points the rows at the new content and cleans up.
func (b *Blobs) exchange(ctx context.Context, all []*exchange) error {
	if len(all) == 0 {
		return ctx.Err()
	}
	if err := b.written(ctx); err != nil {
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
	// After an error, including an ended context, a row may still name the new file. The
	// next open finds out through its second link.
	if err != nil {
		return err
	}
	var errs []error
	for _, fresh := range all {
		if fresh.file != "" && !fresh.passed {
			errs = append(errs, fileError("remove the second link of an object file", b.db.objects.unlinkTemp(fresh.id, fresh.file)))
		}
		if fresh.file != "" && fresh.passed {
			errs = append(errs, b.db.objects.discard(fresh.id, fresh.file))
		}
		if fresh.old != "" {
			errs = append(errs, fileError("remove a replaced object file", b.db.objects.discard(fresh.id, fresh.old)))
		}
	}
	return errors.Join(errs...)
}

// abandon removes files that no transaction used.
func (b *Blobs) abandon(all []*exchange) error {
	var errs []error
	for _, fresh := range all {
		if fresh.file != "" {
			errs = append(errs, b.db.objects.discard(fresh.id, fresh.file))
		}
	}
	return errors.Join(errs...)
}

// replaceRow runs within a transaction, possibly again after a failed one.
func (b *Blobs) replaceRow(c *conn, fresh *exchange) error {
	fresh.passed, fresh.old = true, ""
	var old string
	var was blob.ID
	err := c.query(`SELECT file, base FROM blobs WHERE id = ?1`, func(s *sqlite3.Stmt) error {
		fresh.passed, old = false, s.ColumnText(0)
		copy(was[:], s.ColumnRawBlob(1))
		return nil
	}, fresh.id[:])
	if err != nil {
		return sqlError("look up blob "+fresh.id.String(), err)
	}
	if fresh.keepBase {
		fresh.base = was
	}
	if !fresh.passed && fresh.base != was {
		may, err := mayLean(c, fresh.id, fresh.base)
		if err != nil {
			return sqlError("look up the new base of blob "+fresh.id.String(), err)
		}
		fresh.passed = !may
	}
	if fresh.passed {
		return nil
	}
	fresh.old = old
	if fresh.old != "" {
		if err := b.db.objects.condemn(fresh.id, fresh.old); err != nil {
			return fileError("prepare removal of an object file", err)
		}
	}
	var base, file, data any
	if !fresh.base.IsZero() {
		base = fresh.base[:]
	}
	if fresh.file != "" {
		file = fresh.file
	} else {
		data = fresh.data
	}
	// The row moves to the end, where rows are packed tightly. In its old place,
	// content of another size would leave pages half empty.
	return sqlError("replace blob "+fresh.id.String(),
		c.exec(`UPDATE blobs SET n = (SELECT max(n) FROM blobs) + 1, size = ?2, base = ?3, file = ?4, data = ?5 WHERE id = ?1`,
			fresh.id[:], fresh.size, base, file, data))
}

// longestChain is longer than any chain a layer follows; only damage makes longer ones.
const longestChain = 1000

// mayLean reports whether a blob can get a base: the base and everything it leans on
// are stored, and the blob is not among them. Sweeps run in transactions of the same
// kind and keep what others lean on, so this stays true.
func mayLean(c *conn, id, base blob.ID) (bool, error) {
	for steps := 0; !base.IsZero(); steps++ {
		if base == id || steps == longestChain {
			return false, nil
		}
		_, next, stored, err := blobLinks(c, base)
		if err != nil || !stored {
			return false, err
		}
		base = next
	}
	return true, nil
}
