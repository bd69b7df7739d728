package postgres

import (
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// Options configure a DB. The zero value keeps everything in the database.
type Options struct {
	// Objects is the bucket for large blobs; nil keeps them in the database.
	Objects blob.Objects
	// LargeBytes is the size from which blobs go to Objects; 0 means 128 KiB.
	LargeBytes int
	// Schema is the database schema for the tables, created if missing. It must hold
	// nothing else. Empty means "stet".
	Schema string
	// MaxConns limits the connections of this node; 0 means 16.
	MaxConns int
	// MaxPending limits the bytes of blobs that wait in memory for a commit or a
	// flush, for each tenant; 0 means 8 MiB.
	MaxPending int
	// StatementTimeout ends statements that take longer; 0 means 30 seconds.
	StatementTimeout time.Duration
	// LockTimeout limits the wait for a row that another commit holds; 0 means 10
	// seconds.
	LockTimeout time.Duration
	// ConnectTimeout limits the time to connect if the connection string does not; 0
	// means 5 seconds.
	ConnectTimeout time.Duration
	// RetryFor is how long a commit is retried while the database cannot be reached,
	// as during a failover; 0 means 30 seconds.
	RetryFor time.Duration
	// Beside, if set, returns statements that belong in the transaction of batches, on
	// tables of other packages. They must have an effect only while the condition holds,
	// which refers to the first two arguments; their own arguments follow.
	Beside func(tenant string, batches []*kv.Batch, condition string) []Statement
	// PollInterval is how often watchers get a hint even if none was sent; 0 means
	// one second.
	PollInterval time.Duration
}

// Statement is a part of a transaction.
type Statement struct {
	SQL  string
	Args []any
}

// maxInDatabase limits a blob without a bucket: it is held in memory several times
// while it is sent, and the protocol's limit is 1 GiB.
const maxInDatabase = 256 << 20

var schemaName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`) })

// withDefaults returns a copy with every field set.
func (o *Options) withDefaults() (Options, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	defaultTo(&opts.LargeBytes, 128<<10)
	defaultTo(&opts.Schema, "stet")
	defaultTo(&opts.MaxConns, 16)
	defaultTo(&opts.MaxPending, 8<<20)
	defaultTo(&opts.StatementTimeout, 30*time.Second)
	defaultTo(&opts.LockTimeout, 10*time.Second)
	defaultTo(&opts.ConnectTimeout, 5*time.Second)
	defaultTo(&opts.RetryFor, 30*time.Second)
	defaultTo(&opts.PollInterval, time.Second)
	if !schemaName().MatchString(opts.Schema) {
		return opts, fmt.Errorf("open database: invalid schema name %q", opts.Schema)
	}
	if opts.MaxConns < 4 {
		return opts, fmt.Errorf("open database: %d connections are too few; at least 4 are needed", opts.MaxConns)
	}
	return opts, nil
}

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
