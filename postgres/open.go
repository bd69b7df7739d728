package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/pgparams"
)

// DB is a database with the data of many tenants. It is safe for concurrent use,
// and several nodes may use the same database at the same time.
type DB struct {
	opts    Options
	pool    *pgxpool.Pool
	secrets []string
	schema  string // quoted, with the dot
	writers chan struct{}
	watch   *watchers

	ctx    context.Context // ends with the DB; used for work that many callers wait for
	cancel context.CancelFunc
	work   sync.WaitGroup // goroutines of this DB

	mu      sync.Mutex // guards the fields below
	tenants map[string]*Tenant
	ended   bool

	texts sync.Map     // of statements, by their template
	skew  atomic.Int64 // how far the database's clock is ahead of ours
}

// Open connects to a database and creates or upgrades its tables if needed. The
// connection string is that of pgx: a URL or key=value pairs. With a standby, list
// several hosts and set target_session_attrs=read-write.
func Open(ctx context.Context, dsn string, o *Options) (*DB, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil { // its text may quote parts of the string
		return nil, fmt.Errorf("open database: %w", ErrInvalidDSN)
	}
	db := &DB{
		opts:    opts,
		schema:  pgx.Identifier{opts.Schema}.Sanitize() + ".",
		writers: make(chan struct{}, max(2, min(8, opts.MaxConns/2))),
		tenants: make(map[string]*Tenant),
	}
	db.noteSecrets(config)
	db.configure(config)
	if db.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
		return nil, fmt.Errorf("open database: %w", ErrInvalidDSN)
	}
	db.ctx, db.cancel = context.WithCancel(context.WithoutCancel(ctx))
	db.watch = newWatchers(db)
	if err := db.migrate(ctx); err != nil {
		db.cancel()
		db.pool.Close()
		return nil, err
	}
	if err := db.readClock(ctx); err != nil {
		db.cancel()
		db.pool.Close()
		return nil, db.wrap(ctx, "read the database's clock", err)
	}
	db.work.Go(db.watch.listen)
	db.work.Go(db.watch.send)
	db.work.Go(db.watch.poll)
	db.work.Go(db.forgetCommits)
	return db, nil
}

func (db *DB) noteSecrets(config *pgxpool.Config) {
	if p := config.ConnConfig.Password; p != "" {
		db.secrets = append(db.secrets, p)
	}
}

// configure sets what the connection string does not.
func (db *DB) configure(config *pgxpool.Config) {
	config.MaxConns = int32(db.opts.MaxConns)
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = db.opts.ConnectTimeout
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "stet"
	}
	// Not as startup parameters: connection poolers refuse unknown ones. Statements look up
	// keys, so compiling them costs more than running them, and so does planning them again
	// for each set of arguments; other engines have no such settings.
	settings := fmt.Sprintf(`SET statement_timeout = %d; SET lock_timeout = %d; SET idle_in_transaction_session_timeout = %d;
		SET default_transaction_isolation = 'read committed';
		SELECT set_config('jit', 'off', false) WHERE current_setting('jit', true) = 'on';
		SELECT set_config('plan_cache_mode', 'force_generic_plan', false) WHERE current_setting('plan_cache_mode', true) = 'auto';
		SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit', true) = 'off'`,
		db.opts.StatementTimeout.Milliseconds(), db.opts.LockTimeout.Milliseconds(), db.opts.StatementTimeout.Milliseconds())
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, config.ConnConfig.ConnectTimeout)
		defer cancel()
		pgparams.Register(c)
		_, err := c.Exec(ctx, settings, pgx.QueryExecModeSimpleProtocol)
		return err
	}
}

// sql fills the name of the schema into a statement: @rows stands for its table of rows.
func (db *DB) sql(template string) string {
	if text, ok := db.texts.Load(template); ok {
		return text.(string)
	}
	text := strings.ReplaceAll(template, "@", db.schema)
	db.texts.Store(template, text)
	return text
}

// sqlPing looks up something that no table has, by the keys of each table that calls use:
// like those calls, it fails or waits if rights are missing or a table is locked.
const sqlPing = `SELECT current_setting('transaction_read_only') = 'on',
	(SELECT count(*) FROM @tenants WHERE tenant = '') + (SELECT count(*) FROM @generations WHERE tenant = '') +
	(SELECT count(*) FROM @rows WHERE tenant = '' AND key = '') + (SELECT count(*) FROM @blobs WHERE tenant = '' AND id = '') +
	(SELECT count(*) FROM @commits WHERE minute = 0)`

// Ping returns nil if the database answers, accepts writes, and lets this node read its
// tables.
func (db *DB) Ping(ctx context.Context) error {
	var standby bool
	var found int64
	err := db.pool.QueryRow(ctx, db.sql(sqlPing)).Scan(&standby, &found)
	if err == nil && standby {
		return fmt.Errorf("ping database: %w: it is a standby", blob.ErrReadOnly)
	}
	return db.wrap(ctx, "ping database", err)
}

// Pool gives access to the database for tables of other packages.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Table returns the name of a table, for statements of other packages.
func (db *DB) Table(name string) string { return db.schema + name }

// closeTime is how long Close waits for unflushed blobs.
const closeTime = 10 * time.Second

// Close writes pending blobs and ends all connections.
func (db *DB) Close() error {
	db.mu.Lock()
	if db.ended {
		db.mu.Unlock()
		return nil
	}
	tenants := make([]*Tenant, 0, len(db.tenants))
	for _, t := range db.tenants {
		tenants = append(tenants, t)
	}
	db.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	var errs []error
	for _, t := range tenants {
		if t.waiting() {
			errs = append(errs, t.Blobs().Flush(ctx))
		}
	}
	db.mu.Lock()
	db.ended = true
	db.mu.Unlock()
	db.cancel()
	db.work.Wait()
	db.pool.Close()
	return errors.Join(errs...)
}

func (db *DB) closed() bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.ended
}

// begin counts a goroutine of this DB, unless it is closed.
func (db *DB) begin(fn func()) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.ended {
		return false
	}
	db.work.Go(fn)
	return true
}
