package pgsearch

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// snapshot is a transaction that only reads. Its first statements travel with its beginning
// and its last ones with its end, because a search for a rare word takes less time in the
// database than on the way to it.
type snapshot struct {
	*pgxpool.Conn
}

// snapshot begins one and runs statements in it.
func (ix *Index) snapshot(ctx context.Context, first *pgx.Batch) (*snapshot, error) {
	conn, err := ix.db.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	b := &pgx.Batch{}
	b.Queue(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	b.QueuedQueries = append(b.QueuedQueries, first.QueuedQueries...)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		conn.Release()
		return nil, err
	}
	return &snapshot{conn}, nil
}

// end runs the last statements. Without it, Release closes the connection.
func (s *snapshot) end(ctx context.Context, last *pgx.Batch) error {
	last.Queue(`COMMIT`)
	return s.SendBatch(ctx, last).Close()
}
