package pgsearch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stet-dev/stet/fault"
)

const (
	// schemaVersion is that of the tables.
	schemaVersion = 2
	// schemaTries limits attempts to create tables while other nodes do the same.
	schemaTries = 50
)

// ErrNewerFormat says that the tables are of a newer release.
var ErrNewerFormat = fault.Named(fault.NewerFormat, "newer-search-tables", "the search index has a newer format")

// tables are created in order; @ is the schema. Ids and other texts with arbitrary
// bytes are bytea, and fixed-length keys replace those of any length.
var tables = []string{
	`CREATE TABLE @tenant (
		tenant text COLLATE "C" PRIMARY KEY, mode text NOT NULL, salt bytea NOT NULL, next bigint NOT NULL,
		complete boolean NOT NULL, place bytea NOT NULL, dropped bigint NOT NULL, holder text NOT NULL, until bigint NOT NULL)`,
	`CREATE TABLE @conv (
		tenant text COLLATE "C" NOT NULL, conv bytea NOT NULL, id bytea NOT NULL, title bytea NOT NULL,
		updated bigint NOT NULL, sections bytea NOT NULL, PRIMARY KEY (tenant, conv))`,
	`CREATE TABLE @run (
		tenant text COLLATE "C" NOT NULL, num bigint NOT NULL, conv bytea NOT NULL, live integer NOT NULL, docs bytea NOT NULL,
		PRIMARY KEY (tenant, num))`,
	`CREATE INDEX run_conv ON @run (tenant, conv)`,
	`CREATE TABLE @segment (
		tenant text COLLATE "C" NOT NULL, seg bigint NOT NULL, start bigint NOT NULL, finish bigint NOT NULL, docs bigint NOT NULL,
		PRIMARY KEY (tenant, seg))`,
	`CREATE TABLE @block (
		tenant text COLLATE "C" NOT NULL, seg bigint NOT NULL, first bytea NOT NULL, block integer NOT NULL, data bytea NOT NULL,
		PRIMARY KEY (tenant, seg, first, block))`,
	`ALTER TABLE @block ALTER COLUMN data SET STORAGE EXTERNAL`, // it is compressed already
}

// migrate creates the tables, and recreates older ones, since their content can be
// rebuilt. Several nodes may do so at once: the second one fails, looks again and
// finds the work done.
func (db *DB) migrate(ctx context.Context) error {
	for try := 0; ; try++ {
		err := pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error { return db.ensure(ctx, tx) })
		if err == nil || errors.Is(err, ErrNewerFormat) || !lostRace(err) || try == schemaTries {
			return err
		}
		select {
		case <-time.After(time.Duration(10+10*try) * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (db *DB) ensure(ctx context.Context, tx pgx.Tx) error {
	version, err := db.version(ctx, tx)
	switch {
	case err != nil:
		return err
	case version == schemaVersion:
		return nil
	case version > schemaVersion:
		return fmt.Errorf("%w: version %d; this program supports %d", ErrNewerFormat, version, schemaVersion)
	}
	statements := append([]string{"CREATE SCHEMA IF NOT EXISTS @", "DROP TABLE IF EXISTS @doc, @section, @numbers, @tenant, @conv, @run, @segment, @block, @meta",
		"CREATE TABLE @meta (key text COLLATE \"C\" PRIMARY KEY, value text NOT NULL)",
		"INSERT INTO @meta VALUES ('product', 'stet search'), ('version', '" + strconv.Itoa(schemaVersion) + "')"}, tables...)
	for _, s := range statements {
		if _, err := tx.Exec(ctx, db.sql(s)); err != nil {
			return err
		}
	}
	return nil
}

// version returns the version of the tables, 0 if there are none. It rejects a
// foreign schema, because old tables are dropped.
func (db *DB) version(ctx context.Context, tx pgx.Tx) (int, error) {
	var all, metas int
	err := tx.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE table_name = 'meta')
		FROM information_schema.tables WHERE table_schema = $1`, db.opts.Schema).Scan(&all, &metas)
	if err != nil || all == 0 {
		return 0, err
	}
	foreign := fmt.Errorf("the schema %q has other tables", db.opts.Schema)
	if metas == 0 {
		return 0, foreign
	}
	var product, version string
	err = tx.QueryRow(ctx, db.sql(`SELECT p.value::text, v.value::text FROM @meta p, @meta v WHERE p.key = 'product' AND v.key = 'version'`)).Scan(&product, &version)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && product != "stet search" {
		return 0, foreign
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(version)
}

// lostRace reports whether another node was making the same tables.
func lostRace(err error) bool {
	// Unique, serialization, deadlock; a schema, table or object already exists, or
	// no longer.
	return hasCode(err, "23505", "40001", "40P01", "42P06", "42P07", "42710", "3F000", "42P01", "XX000")
}

func hasCode(err error, codes ...string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && slices.Contains(codes, pg.Code)
}
