package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/blob/s3blob"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/postgres"
	"github.com/stet-dev/stet/server"
)

// Shards is the number of logical shards that tenants belong to. One database holds
// all of them today; the number is fixed so that tenants can later be moved to
// several databases without resharding.
const Shards = postgres.Shards

// Config locates the data of a fleet. Only Database is required.
type Config struct {
	// Database is the address of the database, postgres://…, with several hosts if
	// there is a standby.
	Database string
	// Blobs is the address of the bucket, s3://…; empty keeps everything in the
	// database, and then nothing can be archived.
	Blobs string
	// Keyring is the file with the keys of an encrypted fleet; each node has a copy.
	// Empty means not encrypted. Unlock opens it.
	Keyring string
	Unlock  *keyring.Unlock
	// Options configure the stores of tenants. Tenant and Unlock are set for each.
	// Without a provider of meters they report to OpenTelemetry's global one.
	Options stet.Options
	// Postgres and S3 configure the drivers; Postgres.Objects is set here.
	Postgres postgres.Options
	S3       *s3blob.Options
}

// Fleet is the backend of a node. It is safe for concurrent use.
type Fleet struct {
	config Config
	db     *postgres.DB
	bucket *s3blob.Bucket // nil if there is none
	ring   *keyring.Ring  // nil unless encrypted
	tokens *access.Tokens

	node     string      // the name of this node, for people
	system   kv.Store    // rows that belong to no tenant
	tokenRow *tokenRow   // of tokens
	marked   atomic.Bool // the fleet is encrypted, and the database records it

	ready readiness
	words words

	mu   sync.Mutex // guards open
	open map[*stet.DB]*postgres.Tenant
}

var _ server.Tenants = (*Fleet)(nil)

// IsAddress reports whether the location of a store is the address of a fleet's
// database.
func IsAddress(place string) bool {
	return strings.HasPrefix(place, "postgres://") || strings.HasPrefix(place, "postgresql://")
}

// Open connects to the database, creates or upgrades its tables, and checks that the
// bucket can be used. It rejects a database with a newer format.
func Open(ctx context.Context, config Config) (*Fleet, error) {
	if !IsAddress(config.Database) {
		return nil, fmt.Errorf("open fleet: %w: want postgres://user@host/database", postgres.ErrInvalidDSN)
	}
	f := &Fleet{config: config, node: nodeName(), open: make(map[*stet.DB]*postgres.Tenant)}
	if err := f.openRing(); err != nil {
		return nil, fmt.Errorf("open fleet: %w", err)
	}
	opts := config.Postgres
	if config.Blobs != "" {
		bucket, err := s3blob.Open(ctx, config.Blobs, config.S3)
		if err != nil {
			return nil, fmt.Errorf("open fleet: %w", err)
		}
		if err := f.checkBucket(ctx, bucket); err != nil {
			return nil, fmt.Errorf("open fleet: %w", err)
		}
		f.bucket, opts.Objects = bucket, bucket
	}
	if f.ring == nil {
		opts.Beside = f.words.beside
	}
	var err error
	if f.db, err = postgres.Open(ctx, config.Database, &opts); err != nil {
		return nil, fmt.Errorf("open fleet: %w", err)
	}
	if f.ring == nil {
		f.words.prepare(ctx, f.db)
	}
	if f.tokens, err = f.openTokens(); err != nil {
		return nil, errors.Join(err, f.db.Close())
	}
	f.ready.probe = f.probe
	return f, nil
}

// bucketTime limits the first request to the bucket, so that a wrong address fails
// soon.
const bucketTime = 15 * time.Second

func (f *Fleet) checkBucket(ctx context.Context, bucket *s3blob.Bucket) error {
	ctx, cancel := context.WithTimeout(ctx, bucketTime)
	defer cancel()
	return bucket.Check(ctx)
}

func (f *Fleet) openRing() (err error) {
	if f.config.Keyring == "" {
		return nil
	}
	if f.config.Unlock == nil {
		return stet.ErrLocked
	}
	f.ring, err = keyring.Open(f.config.Keyring, *f.config.Unlock)
	return err
}

// Postgres returns the database.
func (f *Fleet) Postgres() *postgres.DB { return f.db }

// Bucket returns the bucket, or nil.
func (f *Fleet) Bucket() *s3blob.Bucket { return f.bucket }

// Encrypted reports whether the fleet has a keyring.
func (f *Fleet) Encrypted() bool { return f.ring != nil }

// Tokens returns the tokens of callers, which all nodes share. Other nodes see a
// change within two seconds.
func (f *Fleet) Tokens() *access.Tokens { return f.tokens }

// Close ends the connections. Open stores fail afterwards; close them first.
func (f *Fleet) Close() error {
	f.ready.wait()
	f.words.close()
	return f.db.Close()
}
