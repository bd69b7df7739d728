package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

const (
	// leaseTime is how long a lease lasts without being renewed: how long work waits
	// after its node was killed.
	leaseTime = 30 * time.Second
	// leaseRenewal is how often a lease is renewed. Two renewals may fail.
	leaseRenewal = 9 * time.Second
)

// errLeaseLost is the cause of a context whose lease was not renewed in time.
var errLeaseLost = fault.New(fault.Conflict, "another node has taken over")

// Lease is the right to do something that only one node of a fleet should do at a
// time. It is a row of the database and uses the database's clock. It avoids
// duplicate work but is not a lock: a node that was frozen may continue for a moment
// after another has taken over, so the work must be safe on two nodes at once.
type Lease struct {
	f    *Fleet
	key  string
	time time.Duration
	wait func(context.Context, time.Duration) error // replaced by tests
}

// Lease returns the lease with a name.
func (f *Fleet) Lease(name string) *Lease {
	return &Lease{f: f, key: keyspace.Setting("lease:" + name), time: leaseTime, wait: sleep}
}

// leaseRow is the content of its row.
type leaseRow struct {
	Node  string `json:"node"`
	Until int64  `json:"until"` // milliseconds since 1970, by the database's clock
}

// Holder returns the node that has the lease, or "".
func (l *Lease) Holder(ctx context.Context) (string, error) {
	held, _, err := l.read(ctx)
	if err != nil || held.Until <= l.f.db.Now().UnixMilli() {
		return "", err
	}
	return held.Node, nil
}

// Hold runs do if no other node has the lease, and reports whether it did. The
// context of do ends if the lease cannot be renewed in time.
func (l *Lease) Hold(ctx context.Context, do func(context.Context) error) (held bool, err error) {
	version, until, err := l.take(ctx)
	if err != nil || version == 0 {
		return false, err
	}
	work, lost := context.WithCancelCause(ctx)
	renewed := make(chan uint64)
	go func() { renewed <- l.renew(work, version, until, lost) }()
	err = do(work)
	if cause := context.Cause(work); errors.Is(cause, errLeaseLost) {
		err = errors.Join(err, cause)
	}
	lost(context.Canceled)
	l.release(context.WithoutCancel(ctx), <-renewed)
	return true, err
}

// read returns the content and the version of the row; both are zero if there is none.
func (l *Lease) read(ctx context.Context) (held leaseRow, version uint64, err error) {
	row, err := l.f.system.Get(ctx, l.key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return leaseRow{}, 0, nil
	case err != nil:
		return leaseRow{}, 0, fmt.Errorf("read lease: %w", err)
	}
	if err := json.Unmarshal(row.Value, &held); err != nil {
		return leaseRow{}, row.Version, nil // nobody can renew it
	}
	return held, row.Version, nil
}

// take takes the lease if it is free. It returns the version of its row, or 0.
func (l *Lease) take(ctx context.Context) (version uint64, until time.Time, err error) {
	held, version, err := l.read(ctx)
	if err != nil || held.Until > l.f.db.Now().UnixMilli() {
		return 0, until, err
	}
	version, until, err = l.write(ctx, version)
	if errors.Is(err, kv.ErrConflict) {
		return 0, until, nil // another node was faster
	}
	return version, until, err
}

// write extends the lease, and returns the new version and when it ends by our clock.
func (l *Lease) write(ctx context.Context, version uint64) (uint64, time.Time, error) {
	began := time.Now()
	value, err := json.Marshal(leaseRow{Node: l.f.node, Until: l.f.db.Now().Add(l.time).UnixMilli()})
	if err == nil {
		err = l.f.system.Commit(ctx, &kv.Batch{
			Expect: []kv.Expect{{Key: l.key, Version: version}}, Set: []kv.Set{{Key: l.key, Value: value}},
		})
	}
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("write lease: %w", err)
	}
	row, err := l.f.system.Get(ctx, l.key)
	if err == nil && string(row.Value) != string(value) {
		err = kv.ErrConflict
	}
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("write lease: %w", err)
	}
	return row.Version, began.Add(l.time), nil
}

// renew keeps the lease until ctx is done, and returns the version of its row, or 0 if
// another node has it.
func (l *Lease) renew(ctx context.Context, version uint64, until time.Time, lost context.CancelCauseFunc) uint64 {
	for l.wait(ctx, leaseRenewal) == nil {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseRenewal)
		next, end, err := l.write(call, version)
		cancel()
		switch {
		case err == nil:
			version, until = next, end
		case errors.Is(err, kv.ErrConflict):
			lost(errLeaseLost)
			return 0
		case !time.Now().Add(leaseRenewal).Before(until):
			lost(errLeaseLost)
			return version
		}
	}
	return version
}

// release frees the lease for another node. If that fails, the lease runs out.
func (l *Lease) release(ctx context.Context, version uint64) {
	if version == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaseRenewal)
	defer cancel()
	_ = l.f.system.Commit(ctx, &kv.Batch{Expect: []kv.Expect{{Key: l.key, Version: version}}, Delete: []string{l.key}})
}

// sleep waits, or returns the error of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// nodeName identifies a node for people: the host and the process.
func nodeName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
