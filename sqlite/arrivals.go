package sqlite

import (
	"context"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
)

// Arrived implements blob.Arrivals. A mark names a row by its number and its
// blob, since a number is given out again once the rows from it on are swept.
func (b *Blobs) Arrived(ctx context.Context, mark string, limit int) ([]blob.Info, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, mark, err
	}
	var infos []blob.Info
	next := mark
	err := b.db.readers.with(ctx, func(c *conn) error {
		after, err := placeOf(c, mark)
		if err != nil {
			return err
		}
		return c.query(`SELECT n, id, size, base FROM blobs WHERE n > ?1 ORDER BY n LIMIT ?2`, func(s *sqlite3.Stmt) error {
			info := blob.Info{Stored: s.ColumnInt64(2)}
			copy(info.ID[:], s.ColumnRawBlob(1))
			copy(info.Base[:], s.ColumnRawBlob(3))
			infos = append(infos, info)
			next = fmt.Sprintf("%d:%s", s.ColumnInt64(0), info.ID)
			return nil
		}, after, limit)
	})
	return infos, next, b.db.readError(ctx, "read arrivals", err)
}

// placeOf returns the number of the row that a mark names, or 0.
func placeOf(c *conn, mark string) (int64, error) {
	var n, found int64
	var text string
	if _, err := fmt.Sscanf(mark, "%d:%64s", &n, &text); err != nil {
		return 0, nil
	}
	id, err := blob.ParseID(text)
	if err != nil {
		return 0, nil
	}
	err = c.query(`SELECT n FROM blobs WHERE n = ?1 AND id = ?2`, func(s *sqlite3.Stmt) error {
		found = s.ColumnInt64(0)
		return nil
	}, n, id[:])
	return found, err
}
