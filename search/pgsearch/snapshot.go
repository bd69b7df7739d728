package pgsearch

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// snapshot is a transaction that only reads. Its first statements travel with its beginning
// and its last ones with its end, because a search for a rare word takes less time in the
// database than on the way to it.
type snapshot struct {
	*pgxpool.Conn
}

// snapshot begins one and runs statements in it. The caller must close it.
func (ix *Index) snapshot(ctx context.Context, first *pgx.Batch) (*snapshot, error) {
	conn, err := ix.db.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	s := &snapshot{conn}
	begun := false
	defer func() {
		if !begun {
			s.close(ctx)
		}
	}()
	b := &pgx.Batch{}
	b.Queue(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	b.QueuedQueries = append(b.QueuedQueries, first.QueuedQueries...)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	begun = true
	return s, nil
}

// end runs the last statements.
func (s *snapshot) end(ctx context.Context, last *pgx.Batch) error {
	last.Queue(`COMMIT`)
	return s.SendBatch(ctx, last).Close()
}

// close ends the transaction if an error kept it from its end, even if ctx has ended: the
// pool would close the connection, with its prepared statements.
func (s *snapshot) close(ctx context.Context) {
	if conn := s.Conn.Conn(); !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, _ = s.Exec(ctx, `ROLLBACK`) // if it fails, the pool closes the connection
	}
	s.Release()
}
