package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/kv"
)

// maxTries limits how often a transaction loses to others before its callers get
// kv.ErrBusy.
const maxTries = 100

// run writes the group and answers all its requests.
func (g *group) run() {
	err := g.write()
	if err != nil && len(g.reqs) > 1 && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUnknownOutcome) && g.t.db.ctx.Err() == nil {
		g.runApart(err)
		return
	}
	g.t.conclude(g, err)
	g.discardUnused()
	for _, r := range g.reqs {
		g.answer(r, err)
	}
}

// runApart handles a group that the database refuses although each of its batches
// looked valid: one of them may be at fault, and the others must not fail with it.
func (g *group) runApart(err error) {
	if len(g.recs) > 0 {
		blobs := newGroup(g.t)
		blobs.recs, blobs.carries = g.recs, true
		err = blobs.write()
		g.recs, g.lost = blobs.recs, append(g.lost, blobs.lost...)
		g.t.conclude(g, err)
		blobs.discardUnused()
	} else {
		g.t.conclude(g, nil)
	}
	for _, r := range g.reqs {
		if r.batch == nil {
			g.answer(r, err)
			continue
		}
		single := newGroup(g.t)
		single.admit(r)
		single.carries = false // its blobs are stored, or it fails because they are missing
		rowErr := single.write()
		if len(single.reqs) > 0 { // otherwise it is answered
			single.answer(r, rowErr)
		}
	}
}

// answer sends the result to one request.
func (g *group) answer(r *request, err error) {
	switch {
	case err != nil:
		r.done <- err
	case r.batch == nil:
		r.done <- nil
	default:
		g.t.db.watch.committed(g.t.name, r.batch)
		r.done <- nil
	}
}

// write runs the transaction until it succeeds or fails for good. Requests whose
// conditions do not hold are answered and leave the group.
func (g *group) write() error {
	db := g.t.db
	deadline := time.Now().Add(db.opts.RetryFor)
	for try := 0; ; try++ {
		if !g.writes() {
			return nil
		}
		a := db.newAttempt()
		err := g.try(a)
		if err == nil {
			return nil
		}
		g.unused = nil // the answer may be cut short
		switch again, err := g.recover(a, err, deadline); {
		case err != nil:
			return err
		case !again:
			return nil
		}
		if try == maxTries {
			return fmt.Errorf("commit: %w: lost against other commits %d times", kv.ErrBusy, try)
		}
	}
}

// writes reports whether there is anything to do.
func (g *group) writes() bool {
	if len(g.recs) > 0 {
		return true
	}
	for _, r := range g.reqs {
		if r.batch != nil {
			return true
		}
	}
	return false
}

var (
	// errNotSent marks an attempt that did not reach the database.
	errNotSent = errors.New("not sent")
	// errCondition says that a condition did not hold, so that nothing was changed.
	errCondition = fault.New(fault.Conflict, "a condition does not hold")
)

// try sends the transaction once.
func (g *group) try(a attempt) error {
	db := g.t.db
	conn, generation, err := g.connect()
	if err != nil {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	defer conn.Release()
	ctx, cancel := context.WithTimeout(db.ctx, 2*db.opts.StatementTimeout)
	defer cancel()
	if g.outrun >= maxOutrun {
		return g.tryHeld(ctx, conn, a)
	}
	held := false
	var batch *pgx.Batch
	if !g.general {
		batch = g.once(a, generation, &held)
	}
	if batch == nil {
		g.general = true
		batch = g.pipeline(a, generation, false, &held)
	}
	err = conn.SendBatch(ctx, batch).Close()
	if err == nil && !held {
		err = errCondition
	}
	return err
}

// maxOutrun is how often the generation may change during an attempt before it is
// locked first, which takes a second round trip.
const maxOutrun = 2

// tryHeld is for a node whose known generation keeps being outdated by collectors.
func (g *group) tryHeld(ctx context.Context, conn *pgxpool.Conn, a attempt) error {
	var generation int64
	b, db := &pgx.Batch{}, g.t.db
	b.Queue(`BEGIN`)
	b.Queue(db.sql(sqlHold), g.t.name).QueryRow(func(row pgx.Row) error { return row.Scan(&generation) })
	err := conn.SendBatch(ctx, b).Close()
	if err != nil {
		err = fmt.Errorf("%w: %w", errNotSent, err)
	} else {
		held := false
		b = g.pipeline(a, generation, true, &held)
		b.Queue(`COMMIT`)
		if err = conn.SendBatch(ctx, b).Close(); err == nil && !held {
			return errCondition
		}
	}
	if err != nil && !conn.Conn().IsClosed() {
		if _, rollback := conn.Exec(ctx, `ROLLBACK`); rollback != nil {
			conn.Conn().Close(ctx) // closing also rolls back
		}
	}
	return err
}

// connect returns a connection for the transaction and its generation.
func (g *group) connect() (*pgxpool.Conn, int64, error) {
	db := g.t.db
	ctx, cancel := context.WithTimeout(db.ctx, 2*db.opts.ConnectTimeout)
	defer cancel()
	generation, err := g.t.prepare(ctx)
	if err != nil {
		return nil, 0, err
	}
	conn, err := db.pool.Acquire(ctx)
	return conn, generation, err
}

// discardUnused removes the objects of blobs that were already stored. It must run after
// conclude: a reader that finds a pending record would take its missing object for
// damage. If it fails, the objects become orphans for a later sweep.
func (g *group) discardUnused() {
	if len(g.unused) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(g.t.db.ctx, g.t.db.opts.StatementTimeout)
	defer cancel()
	_ = g.t.db.opts.Objects.RemoveObjects(ctx, g.unused...)
}

// recover decides about a failed attempt: retry with the rest of the group, treat it as
// done after all, or return an error for all requests.
func (g *group) recover(a attempt, err error, deadline time.Time) (again bool, _ error) {
	db := g.t.db
	switch code := pgCode(err); {
	case db.ctx.Err() != nil:
		return false, blob.ErrClosed
	case errors.Is(err, errCondition):
		return true, g.judge(deadline)
	case errors.Is(err, pgx.ErrNoRows): // the generation was removed while we waited for it
		return true, db.pause(time.Millisecond)
	case code == codeReadOnly || errors.Is(err, errNotSent):
		if code == codeReadOnly { // no longer the primary
			db.pool.Reset()
		}
		if time.Now().After(deadline) || code != "" && !transient(code) {
			return false, db.wrap(db.ctx, "commit", err)
		}
		return true, db.pause(100 * time.Millisecond)
	case refused(err) && (code == codeDivision || code == codeUnique || code == codeNull):
		return true, g.judge(deadline)
	case refused(err) && (code == codeSerialization || code == codeDeadlock):
		return true, db.pause(5 * time.Millisecond)
	case refused(err):
		return false, db.wrap(db.ctx, "commit", err)
	}
	happened, err := db.happened(a, deadline)
	return !happened, err
}

// transient reports whether a refusal may be temporary.
func transient(code string) bool {
	return code == codeReadOnly || code == codeTooMany || code == codeSerialization || code == codeDeadlock || code[:2] == "57"
}

// pause waits about d, or until the DB is closed.
func (db *DB) pause(d time.Duration) error {
	select {
	case <-time.After(d/2 + rand.N(d)):
		return nil
	case <-db.ctx.Done():
		return blob.ErrClosed
	}
}

// happened determines whether an attempt without an answer happened. It inserts the
// attempt's name itself: if that works, the attempt did not happen and no longer can, even
// if it is still on its way; if the name exists, it did. The answer to this can be lost
// too, so a mark is inserted with the name: a name with a mark comes from an earlier
// lookup.
func (db *DB) happened(a attempt, deadline time.Time) (bool, error) {
	for {
		happened, err := db.lookFor(a)
		if err == nil || errors.Is(err, ErrUnknownOutcome) {
			return happened, err
		}
		if pgCode(err) == codeReadOnly {
			db.pool.Reset()
		}
		if db.ctx.Err() != nil || time.Now().After(deadline) {
			return false, fmt.Errorf("%w: %w", ErrUnknownOutcome, db.wrap(context.WithoutCancel(db.ctx), "check whether a commit happened", err))
		}
		if err := db.pause(100 * time.Millisecond); err != nil {
			return false, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		}
	}
}

// lookFor is one attempt of happened.
func (db *DB) lookFor(a attempt) (happened bool, _ error) {
	ctx, cancel := context.WithTimeout(db.ctx, db.opts.StatementTimeout)
	defer cancel()
	tag, err := db.pool.Exec(ctx, db.sql(sqlTake), a.minute, [][]byte{a.id, a.mark()}, int64(commitsFound/time.Minute))
	if err == nil && tag.RowsAffected() == 0 {
		return false, fmt.Errorf("%w: its name may have been removed since", ErrUnknownOutcome)
	}
	if pgCode(err) != codeUnique {
		return false, err
	}
	var marked int64
	err = db.pool.QueryRow(ctx, db.sql(sqlCommitted), a.minute, a.mark()).Scan(&marked)
	return marked == 0, err
}

const (
	// commitsKept is how long the names of transactions are kept: longer than any of them
	// can take.
	commitsKept = 30 * time.Minute
	// commitsFound is how long a missing name means that its transaction did not happen.
	// It is shorter, since clocks are compared only from time to time.
	commitsFound = 20 * time.Minute
)

// forgetCommits removes the names of old transactions from time to time.
func (db *DB) forgetCommits() {
	for {
		// Spread out nodes that start together.
		if db.pause(5*time.Minute) != nil {
			return
		}
		// The next round tries again.
		if db.readClock(db.ctx) == nil {
			_ = db.dropCommits(db.now().Add(-commitsKept))
		}
	}
}

// Now returns the current time, for leases of other packages.
func (db *DB) Now() time.Time { return db.now() }

// now estimates the time by the database's clock. Names are created and removed by
// that one clock, so that a node with a wrong clock cannot remove names that others
// still need or lose its own.
func (db *DB) now() time.Time { return time.Now().Add(time.Duration(db.skew.Load())) }

// readClock compares the database's clock with ours.
func (db *DB) readClock(ctx context.Context) error {
	var micros int64
	before := time.Now()
	err := db.pool.QueryRow(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`).Scan(&micros)
	if err == nil {
		db.skew.Store(int64(time.UnixMicro(micros).Sub(before)))
	}
	return err
}

// dropCommits removes the names of transactions before a time, a minute at a
// time, so that no statement takes long.
func (db *DB) dropCommits(before time.Time) error {
	for {
		tag, err := db.pool.Exec(db.ctx, db.sql(`DELETE FROM @commits WHERE minute = (SELECT min(minute) FROM @commits) AND minute < $1`), before.Unix()/60)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
	}
}
