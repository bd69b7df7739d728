package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/sealed"
)

const (
	// tokensAge is how old a node's copy of the tokens may be. It is the longest
	// delay of a revocation on another node.
	tokensAge = 400 * time.Millisecond
	// tokensTime limits a read of the tokens.
	tokensTime = 10 * time.Second
)

// tokensKey is the row with all tokens.
var tokensKey = keyspace.Setting("tokens")

// tokenRow keeps tokens in a row. It implements access.Keeper.
type tokenRow struct {
	rows kv.Store

	mu    sync.Mutex // guards what follows
	known kv.Row     // the zero row if there is none
	err   error      // why it could not be read
	until time.Time  // when it is read again
}

func (f *Fleet) openTokens() (*access.Tokens, error) {
	t, err := f.db.Tenant(system)
	if err != nil {
		return nil, err
	}
	opts := &sealed.Options{Tenant: system}
	if f.ring != nil { // write access to the database alone must not allow creating tokens
		opts.Ring = f.ring
	}
	f.system = sealed.New(t.Rows(), opts)
	f.tokenRow = &tokenRow{rows: f.system}
	return access.KeepTokens(f.tokenRow), nil
}

// Load implements access.Keeper.
func (r *tokenRow) Load() ([]byte, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().After(r.until) {
		// Errors are cached too: all calls of a node wait here.
		ctx, cancel := context.WithTimeout(context.Background(), tokensTime)
		r.known, r.err = r.read(ctx)
		cancel()
		r.until = time.Now().Add(tokensAge)
	}
	if r.err != nil {
		return nil, "", r.err // do not use the old ones: one may have been revoked
	}
	return r.known.Value, strconv.FormatUint(r.known.Version, 10), nil
}

func (r *tokenRow) read(ctx context.Context) (kv.Row, error) {
	row, err := r.rows.Get(ctx, tokensKey)
	if errors.Is(err, kv.ErrNotFound) {
		return kv.Row{}, nil
	}
	if err != nil {
		return kv.Row{}, fmt.Errorf("read tokens: %w", err)
	}
	return row, nil
}

// Change implements access.Keeper.
func (r *tokenRow) Change(do func(old []byte) ([]byte, error)) error {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), tokensTime)
		row, err := r.read(ctx)
		cancel()
		if err != nil {
			return err
		}
		data, err := do(row.Value)
		if err != nil {
			return err
		}
		ctx, cancel = context.WithTimeout(context.Background(), tokensTime)
		err = r.rows.Commit(ctx, &kv.Batch{
			Expect: []kv.Expect{{Key: tokensKey, Version: row.Version}},
			Set:    []kv.Set{{Key: tokensKey, Value: data}},
		})
		cancel()
		if errors.Is(err, kv.ErrConflict) {
			continue // another node was faster
		}
		r.mu.Lock()
		r.until = time.Time{}
		r.mu.Unlock()
		return err
	}
}
