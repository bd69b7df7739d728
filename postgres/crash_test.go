package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
)

// counters is a load of workers that each count in a row of their own. Since
// nobody else writes it, a conflict means that a commit was done twice, and a
// number that is not the last one acknowledged that one was lost.
type counters struct {
	tenant *Tenant
	total  atomic.Int64
	acked  []int
	errs   []error
	stop   context.CancelFunc
	wg     sync.WaitGroup
}

func startCounters(t *testing.T, tenant *Tenant, workers int) *counters {
	ctx, stop := context.WithCancel(t.Context())
	c := &counters{tenant: tenant, acked: make([]int, workers), errs: make([]error, workers), stop: stop}
	for i := range workers {
		c.wg.Go(func() {
			for ctx.Err() == nil && c.errs[i] == nil {
				c.errs[i] = c.count(t.Context(), i)
			}
		})
	}
	return c
}

func (c *counters) count(ctx context.Context, i int) error {
	key := fmt.Sprintf("counter %d", i)
	row, err := c.tenant.Rows().Get(ctx, key)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	if c.acked[i] > 0 && string(row.Value) != strconv.Itoa(c.acked[i]) {
		return fmt.Errorf("%d was acknowledged, the row holds %q", c.acked[i], row.Value)
	}
	next := c.acked[i] + 1
	b := blob.New(fmt.Appendf(nil, "blob of %s at %d", key, next))
	if err := c.tenant.Blobs().Put(ctx, b); err != nil {
		return err
	}
	err = c.tenant.Rows().Commit(ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: key, Version: row.Version}},
		Set: []kv.Set{
			{Key: key, Value: []byte(strconv.Itoa(next))},
			{Key: fmt.Sprintf("%s at %d", key, next), Value: []byte(b.ID.String())},
		},
		Refs: []blob.ID{b.ID},
	})
	if err == nil {
		c.acked[i] = next
		c.total.Add(1)
	}
	return err
}

// progress waits until this many more commits were acknowledged.
func (c *counters) progress(t *testing.T, more int64) {
	t.Helper()
	want := c.total.Load() + more
	for deadline := time.Now().Add(time.Minute); c.total.Load() < want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d commits are missing after a minute", want-c.total.Load())
		}
	}
}

// check ends the load and compares what is stored with what was acknowledged.
func (c *counters) check(t *testing.T) {
	t.Helper()
	c.stop()
	c.wg.Wait()
	if err := errors.Join(c.errs...); err != nil {
		t.Fatal(err)
	}
	lost := 0
	for i, acked := range c.acked {
		key := fmt.Sprintf("counter %d", i)
		wantRow(t, c.tenant.Rows(), key, strconv.Itoa(acked))
		for n := 1; n <= acked; n++ {
			row, err := c.tenant.Rows().Get(t.Context(), fmt.Sprintf("%s at %d", key, n))
			if err != nil {
				lost++
				continue
			}
			id, _ := blob.ParseID(string(row.Value))
			if data, err := c.tenant.Blobs().Get(t.Context(), id); err != nil || blob.Sum(data) != id {
				lost++
			}
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged commits are lost", lost, c.total.Load())
	}
	t.Logf("%d commits acknowledged, none lost", c.total.Load())
}

// TestKilledServer kills the server again and again while commits go on.
func TestKilledServer(t *testing.T) { onEveryVersion(t, killServer) }

// onEveryVersion runs a test on Debian's server and, in a full run, on the newest.
func onEveryVersion(t *testing.T, fn func(t *testing.T, version int)) {
	for _, version := range realservers.PostgresVersions() {
		t.Run(fmt.Sprint("postgres ", version), func(t *testing.T) { fn(t, version) })
	}
}

func killServer(t *testing.T, version int) {
	server := realservers.Postgres(t, realservers.PostgresOptions{Version: version, Fsync: true, Own: true})
	db := openNode(t, server.NewDatabase(t), &Options{RetryFor: time.Minute})
	load := startCounters(t, newTenant(t, db), 8)
	for range testenv.Scale(3, 100) {
		load.progress(t, 100)
		server.Kill(t)
		server.Start(t)
	}
	load.progress(t, 100)
	load.check(t)
}

// TestFailOver loses the primary and goes on with its synchronous standby.
func TestFailOver(t *testing.T) { onEveryVersion(t, failOver) }

func failOver(t *testing.T, version int) {
	primary := realservers.Postgres(t, realservers.PostgresOptions{Version: version, Fsync: true, Own: true})
	dsn := primary.NewDatabase(t)
	standby := primary.Standby(t)
	both := strings.Replace(dsn, primary.Addr(), primary.Addr()+","+standby.Addr(), 1) + "&target_session_attrs=read-write"
	db := openNode(t, both, &Options{RetryFor: time.Minute})
	load := startCounters(t, newTenant(t, db), 8)
	load.progress(t, 100)
	primary.Kill(t)
	standby.Promote(t)
	load.progress(t, 100)
	load.check(t)
	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("ping after the fail-over: %v", err)
	}
}
