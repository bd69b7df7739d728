package pgparams_test

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stet-dev/stet/internal/pgparams"
)

func Example() {
	config, err := pgxpool.ParseConfig("postgres://localhost/stet?default_query_exec_mode=exec")
	if err != nil {
		panic(err)
	}
	config.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		pgparams.Register(c)
		return nil
	}
}
