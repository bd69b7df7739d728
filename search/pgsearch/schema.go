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
	schemaVersion = 1
	// schemaTries limits attempts to create tables while other nodes do the same.
	schemaTries = 50
)

// ErrNewerFormat says that the tables are of a newer release.
var ErrNewerFormat = fault.Named(fault.NewerFormat, "newer-search-tables", "the search index has a newer format")

// tables are created in order; @ is the schema. Ids and other texts with arbitrary
// bytes are bytea, and fixed-length keys replace those of any length.
var tables = []string{
	`CREATE TABLE @numbers (tenant text COLLATE "C" PRIMARY KEY, next bigint NOT NULL)`,
	`CREATE TABLE @conv (
		tenant text COLLATE "C" NOT NULL, conv bytea NOT NULL, id bytea NOT NULL, title bytea NOT NULL,
		updated bigint NOT NULL, tips text NOT NULL, listed bytea NOT NULL, listed_version bigint NOT NULL,
		record_version bigint NOT NULL, PRIMARY KEY (tenant, conv))`,
	`CREATE TABLE @section (
		tenant text COLLATE "C" NOT NULL, conv bytea NOT NULL, section bytea NOT NULL, digest bytea NOT NULL,
		PRIMARY KEY (tenant, conv, section))`,
	`CREATE TABLE @doc (
		tenant text COLLATE "C" NOT NULL, num bigint NOT NULL, conv bytea NOT NULL, section bytea NOT NULL,
		place integer NOT NULL, digest bytea NOT NULL, turn integer NOT NULL, message bytea NOT NULL,
		role text NOT NULL, kind text NOT NULL, tool bytea NOT NULL, tool_key bytea NOT NULL, time bigint NOT NULL,
		subagent bytea NOT NULL, save bigint NOT NULL, weight double precision NOT NULL, exact boolean NOT NULL,
		body bytea NOT NULL, path bytea NOT NULL, words tsvector NOT NULL,
		PRIMARY KEY (tenant, num), UNIQUE (tenant, conv, section, place))`,
	`CREATE INDEX doc_words ON @doc USING gin (words)`,
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
	statements := append([]string{"CREATE SCHEMA IF NOT EXISTS @", "DROP TABLE IF EXISTS @doc, @section, @conv, @numbers, @meta",
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
