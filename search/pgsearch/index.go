package pgsearch

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/pgparams"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/search/internal/corpus"
)

// ErrInvalidDSN says that a connection string is not understood. The error does not quote
// it: it may hold a password.
var ErrInvalidDSN = fault.New(fault.Invalid, "invalid connection string of a database")

// Options configure a DB; nil and the zero value work.
type Options struct {
	// Schema is the database schema for the tables, created if missing. It must hold
	// nothing else. Empty means "stet_search".
	Schema string
	// MaxConns limits the connections of this node. 0 means 8; the minimum is 4.
	MaxConns int
	// StatementTimeout ends statements that take longer; 0 means 30 seconds.
	StatementTimeout time.Duration
}

var schemaName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`) })

// DB is a database with the indexes of many tenants. It is safe for concurrent
// use, and several nodes may use the same database.
type DB struct {
	opts   Options
	pool   *pgxpool.Pool
	schema string // quoted, with the dot
}

// Open connects to a database and creates its tables if needed. The connection string
// is that of package postgres.
func Open(ctx context.Context, dsn string, opts *Options) (*DB, error) {
	db := &DB{}
	if err := db.configure(opts); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil { // its text may quote parts of the string
		return nil, fmt.Errorf("open search index: %w", ErrInvalidDSN)
	}
	config.MaxConns = int32(db.opts.MaxConns)
	config.ConnConfig.RuntimeParams["statement_timeout"] = fmt.Sprint(db.opts.StatementTimeout.Milliseconds())
	config.ConnConfig.RuntimeParams["application_name"] = "stet search"
	config.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		pgparams.Register(c)
		return nil
	}
	if db.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
		return nil, fmt.Errorf("open search index: %w", ErrInvalidDSN)
	}
	if err := db.migrate(ctx); err != nil {
		db.pool.Close()
		return nil, fmt.Errorf("open search index: %w", err)
	}
	return db, nil
}

// configure sets the options.
func (db *DB) configure(opts *Options) error {
	if opts != nil {
		db.opts = *opts
	}
	if db.opts.Schema == "" {
		db.opts.Schema = "stet_search"
	}
	if !schemaName().MatchString(db.opts.Schema) {
		return fmt.Errorf("open search index: invalid schema name %q", db.opts.Schema)
	}
	if db.opts.MaxConns == 0 {
		db.opts.MaxConns = 8
	}
	db.opts.MaxConns = max(db.opts.MaxConns, 4)
	if db.opts.StatementTimeout <= 0 {
		db.opts.StatementTimeout = 30 * time.Second
	}
	db.schema = pgx.Identifier{db.opts.Schema}.Sanitize()
	return nil
}

// Close ends the connections. The indexes cannot be used afterwards.
func (db *DB) Close() { db.pool.Close() }

// sql puts the schema into a statement: "@name" is a table in it, "@" itself.
func (db *DB) sql(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "@")
		b.WriteString(before)
		switch {
		case !found:
			return b.String()
		case strings.HasPrefix(after, "@"): // the operator that matches
			b.WriteString("@@")
			text = after[1:]
			continue
		case after != "" && 'a' <= after[0] && after[0] <= 'z':
			b.WriteString(db.schema + ".")
		default:
			b.WriteString(db.schema)
		}
		text = after
	}
}

// Index is the index of one tenant's conversations. It is safe for concurrent use.
type Index struct {
	// InRequest limits Update to what a request can wait for. The rest is left to Work.
	// Set it before the first use.
	InRequest bool
	// Packed, if set, reports whether a conversation is archived. Set it before the first
	// use.
	Packed func(ctx context.Context, id string) (bool, error)

	db       *DB
	tenant   string
	source   *corpus.Source
	rows     kv.Store
	closed   atomic.Bool
	lastSalt atomic.Pointer[[]byte] // of the tenant, as it was last read

	done, total atomic.Int64 // of the conversations that a running update changes
}

var _ search.Searcher = (*Index)(nil)

// maxTenant is the longest name of a tenant.
const maxTenant = 255

// Index returns the index of a tenant's conversations; blobs and rows are those
// that the store works on.
func (db *DB) Index(tenant string, conversations *conversation.Store, blobs blob.Store, rows kv.Store) (*Index, error) {
	if tenant == "" || len(tenant) > maxTenant || !utf8.ValidString(tenant) || strings.ContainsRune(tenant, 0) {
		return nil, fmt.Errorf("search index: invalid tenant name %.40q", tenant)
	}
	return &Index{db: db, tenant: tenant, rows: rows, source: corpus.NewSource(conversations, blobs, rows)}, nil
}

// Progress implements search.Searcher, for the updates of this process.
func (ix *Index) Progress() (done, total int) {
	return int(ix.done.Load()), int(ix.total.Load())
}

// Degraded implements search.Searcher. The index is never degraded.
func (ix *Index) Degraded() error { return nil }

// Close implements search.Searcher. The DB stays open.
func (ix *Index) Close() error {
	ix.closed.Store(true)
	return nil
}

func (ix *Index) check(ctx context.Context) error {
	if ix.closed.Load() {
		return search.ErrClosed
	}
	return ctx.Err()
}
