package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// migrations upgrade the tables from one version to the next, in the order of their
// names: 001.sql makes version 1.
//
//go:embed schema/*.sql
var migrations embed.FS

const (
	// Shards is the number of logical shards that tenants are spread over. Today one
	// database holds them all; the number is recorded so that it never changes for
	// existing data.
	Shards = 1024

	product   = "stet"
	migrateBy = 50 // tries, while other nodes do the same
)

// shardOf returns the logical shard of a tenant.
func shardOf(tenant string) int32 {
	h := fnv.New32a()
	h.Write([]byte(tenant))
	return int32(h.Sum32() % Shards)
}

// steps returns the migrations; step i makes version i+1.
func steps() ([]string, error) {
	entries, err := migrations.ReadDir("schema")
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, e := range entries {
		text, err := migrations.ReadFile("schema/" + e.Name())
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

// migrate upgrades the tables to the version of this program. Several nodes may do so at
// once: the second one fails, checks again and finds the work done.
func (db *DB) migrate(ctx context.Context) error {
	texts, err := steps()
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		version, err := db.version(ctx)
		if err == nil && version == len(texts) {
			return nil
		}
		if err == nil && version > len(texts) {
			return fmt.Errorf("open database: %w: version %d; this program supports %d", ErrNewerFormat, version, len(texts))
		}
		if err == nil {
			if err = db.step(ctx, texts); err == nil {
				continue
			}
		}
		if !lostRace(err) || try == migrateBy {
			return db.openError(ctx, err)
		}
		select {
		case <-time.After(time.Duration(10+10*try) * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// openError is wrap for errors that may already be wrapped.
func (db *DB) openError(ctx context.Context, err error) error {
	if errors.Is(err, ErrForeign) || errors.Is(err, ErrNewerFormat) {
		return fmt.Errorf("open database: %w", err)
	}
	return db.wrap(ctx, "open database", err)
}

// lostRace reports whether another node was making the same tables.
func lostRace(err error) bool {
	// The last three mean that the schema, table or object already exists.
	return slices.Contains([]string{codeUnique, codeSerialization, codeDeadlock, "42P06", "42P07", "42710"}, pgCode(err))
}

// version returns the version of the tables, 0 if there are none.
func (db *DB) version(ctx context.Context) (int, error) {
	var tables, metas int
	err := db.pool.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE table_name = 'meta')
		FROM information_schema.tables WHERE table_schema = $1`, db.opts.Schema).Scan(&tables, &metas)
	switch {
	case err != nil:
		return 0, err
	case tables == 0:
		return 0, nil
	case metas == 0:
		return 0, fmt.Errorf("%w: the schema %q has other tables", ErrForeign, db.opts.Schema)
	}
	return db.checkMeta(ctx)
}

// checkMeta reads the table that describes the others.
func (db *DB) checkMeta(ctx context.Context) (int, error) {
	rows, err := db.pool.Query(ctx, db.sql(`SELECT key::text, value::text FROM @meta`))
	if err != nil {
		if code := pgCode(err); code == "42703" {
			return 0, fmt.Errorf("%w: its table meta is different", ErrForeign)
		}
		return 0, err
	}
	meta := make(map[string]string)
	var key, value string
	if _, err := pgx.ForEachRow(rows, []any{&key, &value}, func() error {
		meta[key] = value
		return nil
	}); err != nil {
		return 0, err
	}
	if meta["product"] != product {
		return 0, fmt.Errorf("%w: the table meta of schema %q is different", ErrForeign, db.opts.Schema)
	}
	version, err := strconv.Atoi(meta["version"])
	if err != nil {
		return 0, fmt.Errorf("%w: invalid version %q", ErrForeign, meta["version"])
	}
	if meta["shards"] != strconv.Itoa(Shards) {
		return 0, fmt.Errorf("%w: it has %q shards, this program uses %d", ErrNewerFormat, meta["shards"], Shards)
	}
	return version, nil
}

// step creates the tables, or upgrades them to the newest version, in one
// transaction.
func (db *DB) step(ctx context.Context, texts []string) error {
	return pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		for _, sql := range []string{
			`CREATE SCHEMA IF NOT EXISTS ` + strings.TrimSuffix(db.schema, "."),
			db.sql(`CREATE TABLE IF NOT EXISTS @meta (key text PRIMARY KEY, value text NOT NULL)`),
			db.sql(`INSERT INTO @meta (key, value) VALUES ('product', '` + product + `'), ('shards', '` + strconv.Itoa(Shards) + `'),
				('version', '0'), ('epoch', '1') ON CONFLICT (key) DO NOTHING`),
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		var text string
		if err := tx.QueryRow(ctx, db.sql(`SELECT value FROM @meta WHERE key = 'version' FOR UPDATE`)).Scan(&text); err != nil {
			return err
		}
		version, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%w: invalid version %q", ErrForeign, text)
		}
		for ; version < len(texts); version++ {
			if _, err := tx.Exec(ctx, strings.ReplaceAll(texts[version], "@", db.schema), pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, db.sql(`UPDATE @meta SET value = $1 WHERE key = 'version'`), strconv.Itoa(version))
		return err
	})
}

// Epoch returns a number that changes when a database is restored: a reader that is ahead
// of the database starts over if its epoch is a different one.
func (db *DB) Epoch(ctx context.Context) (uint64, error) {
	var epoch uint64
	err := db.pool.QueryRow(ctx, db.sql(`SELECT value::bigint FROM @meta WHERE key = 'epoch'`)).Scan(&epoch)
	return epoch, db.wrap(ctx, "read epoch", err)
}

// BumpEpoch begins a new epoch. Call it after a restore from a backup.
func (db *DB) BumpEpoch(ctx context.Context) (uint64, error) {
	var epoch uint64
	err := db.pool.QueryRow(ctx, db.sql(`UPDATE @meta SET value = (value::bigint + 1)::text WHERE key = 'epoch' RETURNING value::bigint`)).Scan(&epoch)
	return epoch, db.wrap(ctx, "begin an epoch", err)
}
