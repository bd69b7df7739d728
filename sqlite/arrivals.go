package sqlite

import (
	"context"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-dev/stet/blob"
)

// reuse records which row numbers may have been assigned twice: those above low, because
// the last rows of the table were swept. turn counts how often that happened. A mark from
// another turn is not trusted above low.
type reuse struct{ turn, low int64 }

// reuseKey is its key in the table meta; the value is text.
const reuseKey = "reuse"

func readReuse(c *conn) (reuse, error) {
	var r reuse
	err := c.query(`SELECT value FROM meta WHERE key = ?1`, func(s *sqlite3.Stmt) error {
		_, err := fmt.Sscanf(s.ColumnText(0), "%d.%d", &r.turn, &r.low)
		return err
	}, reuseKey)
	return r, err
}

// lastNumber returns the highest number of a row.
func lastNumber(c *conn) (int64, error) {
	var last int64
	err := c.query(`SELECT max(n) FROM blobs`, func(s *sqlite3.Stmt) error {
		last = s.ColumnInt64(0)
		return nil
	})
	return last, sqlError("find the last blob", err)
}

// noteReuse is called after rows were removed in a transaction that began with
// last as the highest number.
func noteReuse(c *conn, last int64) error {
	now, err := lastNumber(c)
	if err != nil || now >= last {
		return err
	}
	r, err := readReuse(c)
	if err != nil {
		return sqlError("read which numbers are reused", err)
	}
	if r.turn == 0 || now < r.low {
		r.low = now
	}
	err = c.exec(`INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
		reuseKey, fmt.Sprintf("%d.%d", r.turn+1, r.low))
	return sqlError("note which numbers are reused", err)
}

// Arrived implements blob.Arrivals. A replaced blob arrives again.
func (b *Blobs) Arrived(ctx context.Context, mark string, limit int) ([]blob.Info, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, mark, err
	}
	var infos []blob.Info
	next := mark
	err := b.db.readers.with(ctx, func(c *conn) error {
		r, err := readReuse(c)
		if err != nil {
			return err
		}
		var turn, after int64
		if _, err := fmt.Sscanf(mark, "%d.%d", &turn, &after); err != nil {
			after = 0
		} else if turn != r.turn {
			after = min(after, r.low)
		}
		return c.query(`SELECT n, id, size, base FROM blobs WHERE n > ?1 ORDER BY n LIMIT ?2`, func(s *sqlite3.Stmt) error {
			info := blob.Info{Stored: s.ColumnInt64(2)}
			copy(info.ID[:], s.ColumnRawBlob(1))
			copy(info.Base[:], s.ColumnRawBlob(3))
			infos = append(infos, info)
			next = fmt.Sprintf("%d.%d", r.turn, s.ColumnInt64(0))
			return nil
		}, after, limit)
	})
	return infos, next, b.db.readError(ctx, "read arrivals", err)
}
