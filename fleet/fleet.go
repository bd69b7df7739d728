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
	"github.com/stet-dev/stet/postgres"
	"github.com/stet-dev/stet/server"
)

// Shards is the number of logical shards that tenants belong to. One database
// holds all of them today; the number is reserved so that tenants can be moved
// to several without being spread anew.
const Shards = postgres.Shards

// Config says where the data of a fleet is. Only Database is needed.
type Config struct {
	// Database is the address of the database, postgres://…, with several hosts
	// where there is a standby.
	Database string
	// Blobs is the address of the bucket, s3://…; empty keeps everything in the
	// database, and then nothing can be sealed.
	Blobs string
	// Keyring is the file with the keys of an encrypted fleet, a copy of which each
	// node has; empty for one that is not encrypted. Unlock opens it.
	Keyring string
	Unlock  *keyring.Unlock
	// Options shape the stores of tenants. Tenant and Unlock are set for each.
	Options stet.Options
	// Postgres and S3 shape the drivers; Postgres.Objects is set here.
	Postgres postgres.Options
	S3       *s3blob.Options
}

// Fleet is the backend of a node. It is safe for concurrent use.
type Fleet struct {
	config Config
	db     *postgres.DB
	bucket *s3blob.Bucket // nil where there is none
	ring   *keyring.Ring  // nil unless encrypted
	tokens *access.Tokens
	marked atomic.Bool // the fleet is encrypted, and the database says so

	ready readiness
	words words

	mu   sync.Mutex // guards open
	open map[*stet.DB]*postgres.Tenant
}

var _ server.Tenants = (*Fleet)(nil)

// IsAddress tells whether the place of a store is the address of a fleet's
// database.
func IsAddress(place string) bool {
	return strings.HasPrefix(place, "postgres://") || strings.HasPrefix(place, "postgresql://")
}

// Open connects to the database, makes or renews its tables, and asks the bucket
// whether it can be used. It refuses a database with a newer format.
func Open(ctx context.Context, config Config) (*Fleet, error) {
	if !IsAddress(config.Database) {
		return nil, fmt.Errorf("open fleet: %w: want postgres://user@host/database", postgres.ErrInvalidDSN)
	}
	f := &Fleet{config: config, open: make(map[*stet.DB]*postgres.Tenant)}
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
	var err error
	if f.db, err = postgres.Open(ctx, config.Database, &opts); err != nil {
		return nil, fmt.Errorf("open fleet: %w", err)
	}
	if f.tokens, err = f.openTokens(); err != nil {
		return nil, errors.Join(err, f.db.Close())
	}
	f.ready.probe = f.probe
	return f, nil
}

// bucketTime bounds the first question to the bucket, so that a wrong address
// shows soon.
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

// Bucket returns the bucket, or nil where there is none.
func (f *Fleet) Bucket() *s3blob.Bucket { return f.bucket }

// Encrypted reports whether the fleet has a keyring.
func (f *Fleet) Encrypted() bool { return f.ring != nil }

// Tokens returns the tokens of callers, which all nodes share. A change is seen by
// the others within two seconds.
func (f *Fleet) Tokens() *access.Tokens { return f.tokens }

// Close ends the connections. Stores that are open fail from then on; close them
// before.
func (f *Fleet) Close() error {
	f.ready.wait()
	f.words.close()
	return f.db.Close()
}
