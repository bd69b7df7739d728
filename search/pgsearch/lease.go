package pgsearch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/fault"
)

// Mode is what the index of a tenant holds.
type Mode string

// The modes. A tenant without one has On.
const (
	// Off keeps no index: searches fail with ErrOff.
	Off Mode = "off"
	// On keeps the words of conversations until they are archived.
	On Mode = "on"
	// Archived keeps those of archived conversations as well.
	Archived Mode = "archived"
)

// ParseMode reads the name of a mode.
func ParseMode(name string) (Mode, error) {
	switch m := Mode(name); m {
	case Off, On, Archived:
		return m, nil
	}
	return "", fmt.Errorf("%w: %q; use off, on or archived", ErrMode, name)
}

var (
	// ErrMode says that there is no such mode.
	ErrMode = fault.New(fault.Invalid, "invalid mode of search")
	// ErrOff says that the tenant has no index.
	ErrOff = fault.Named(fault.Unsupported, "search-off", "search is off for this tenant")
	// errLost means that the lease went to another process.
	errLost = fault.New(fault.Stale, "another process updates the search index")
)

// leaseTime is how long a process that ended keeps others from updating an index.
const leaseTime = 30 * time.Second

// state is the row of a tenant.
type state struct {
	mode     Mode
	salt     []byte
	next     int64  // number of the next run, and of the next segment
	complete bool   // every conversation was looked at
	place    string // otherwise: how far, in the order by time
	dropped  int64  // conversations that were removed since segments were last examined
}

// lease is the right to change the index of a tenant. Each transaction checks that it is
// still held, under a lock of the row, so that a process that lost it changes nothing.
type lease struct {
	*Index
	state
	holder string
}

// nowSQL is the database's clock, in milliseconds.
const nowSQL = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`

// ensure creates the row of the tenant.
func (ix *Index) ensure(ctx context.Context) error {
	salt := make([]byte, 8)
	rand.Read(salt)
	_, err := ix.db.pool.Exec(ctx, ix.db.sql(`INSERT INTO @tenant (tenant, mode, salt, next, complete, place, dropped, holder, until)
		VALUES ($1, 'on', $2, 1, false, '', 0, '', 0) ON CONFLICT (tenant) DO NOTHING`), ix.tenant, salt)
	return err
}

// load reads the row of the tenant; ok is false if there is none.
func (ix *Index) load(ctx context.Context, q queries) (s state, ok bool, err error) {
	return ix.readState(q.QueryRow(ctx, ix.db.sql(stateSQL), ix.tenant))
}

const stateSQL = `SELECT mode, salt, next, complete, place, dropped FROM @tenant WHERE tenant = $1`

func (ix *Index) readState(row pgx.Row) (s state, ok bool, err error) {
	var place []byte
	err = row.Scan(&s.mode, &s.salt, &s.next, &s.complete, &place, &s.dropped)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, false, nil
	}
	s.place = string(place)
	if err == nil {
		salt := s.salt
		ix.lastSalt.Store(&salt)
	}
	return s, err == nil, err
}

// queries is a pool or a transaction.
type queries interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// take returns the lease, or errLost if another process has it.
func (ix *Index) take(ctx context.Context) (*lease, error) {
	if err := ix.check(ctx); err != nil {
		return nil, err
	}
	if err := ix.ensure(ctx); err != nil {
		return nil, err
	}
	var before string
	if err := ix.db.pool.QueryRow(ctx, ix.db.sql(`SELECT holder FROM @tenant WHERE tenant = $1`), ix.tenant).Scan(&before); err != nil {
		return nil, err
	}
	name := make([]byte, 12)
	rand.Read(name)
	l := &lease{Index: ix, holder: hex.EncodeToString(name)}
	tag, err := ix.db.pool.Exec(ctx, ix.db.sql(`UPDATE @tenant SET holder = $2, until = `+nowSQL+` + $3
		WHERE tenant = $1 AND (holder = '' OR until < `+nowSQL+`)`), ix.tenant, l.holder, leaseTime.Milliseconds())
	if err == nil && tag.RowsAffected() == 0 {
		return nil, errLost
	}
	if err == nil {
		l.state, _, err = ix.load(ctx, ix.db.pool)
	}
	if err == nil && before != "" {
		err = l.sweep(ctx)
	}
	if err != nil {
		l.release(ctx)
		return nil, err
	}
	return l, nil
}

// sweep removes the blocks left by a process that was killed while it merged.
func (l *lease) sweep(ctx context.Context) error {
	return l.change(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, l.db.sql(`DELETE FROM @block WHERE tenant = $1 AND seg <> ALL(ARRAY(SELECT seg FROM @segment WHERE tenant = $1))`), l.tenant)
		return err
	})
}

// leaseLooks is how often a process checks whether a lease is free.
const leaseLooks = 50 * time.Millisecond

// wait is take, but waits for others.
func (ix *Index) wait(ctx context.Context) (*lease, error) {
	for {
		l, err := ix.take(ctx)
		if !errors.Is(err, errLost) {
			return l, err
		}
		select {
		case <-time.After(leaseLooks):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// release gives the lease back, even if ctx has ended.
func (l *lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	// If it fails, the lease ends by itself.
	_, _ = l.db.pool.Exec(ctx, l.db.sql(`UPDATE @tenant SET holder = '' WHERE tenant = $1 AND holder = $2`), l.tenant, l.holder)
}

// change runs a transaction while the lease is held, and prolongs it. A new mode also
// ends the lease.
func (l *lease) change(ctx context.Context, fn func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, l.db.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, l.db.sql(`UPDATE @tenant SET until = `+nowSQL+` + $3 WHERE tenant = $1 AND holder = $2 AND mode = $4`), l.tenant, l.holder, leaseTime.Milliseconds(), string(l.mode))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return errLost
		}
		return fn(tx)
	})
}

// note writes the state that this process changed.
func (l *lease) note(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, l.db.sql(`UPDATE @tenant SET next = $2, complete = $3, place = $4 WHERE tenant = $1`), l.tenant, l.next, l.complete, []byte(l.place))
	return err
}

// Mode returns what the index of the tenant holds.
func (ix *Index) Mode(ctx context.Context) (Mode, error) {
	s, ok, err := ix.load(ctx, ix.db.pool)
	if err != nil || !ok {
		return On, err
	}
	return s.mode, nil
}

// SetMode changes what the index holds. The next updates then remove or add the
// difference.
func (ix *Index) SetMode(ctx context.Context, m Mode) error {
	if _, err := ParseMode(string(m)); err != nil {
		return err
	}
	if err := ix.ensure(ctx); err != nil {
		return fmt.Errorf("set the mode of search: %w", err)
	}
	// A walk through all conversations finds what differs.
	_, err := ix.db.pool.Exec(ctx, ix.db.sql(`UPDATE @tenant SET mode = $2, complete = false, place = '' WHERE tenant = $1 AND mode <> $2`), ix.tenant, string(m))
	if err != nil {
		return fmt.Errorf("set the mode of search: %w", err)
	}
	return nil
}
