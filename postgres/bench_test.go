package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/kv"
)

// benchRound is how many commits each worker makes before the other side has its
// turn.
const benchRound = 50

// BenchmarkCommit compares a commit of a row and the small blob that it refers to
// with plain inserts of one row of the same bytes, by as many workers over as
// many connections, in turns on one server with fsync on.
func BenchmarkCommit(b *testing.B) {
	for _, workers := range []int{1, 32} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) { benchCommit(b, workers) })
	}
}

func benchCommit(b *testing.B, workers int) {
	dsn := realservers.Postgres(b, realservers.PostgresOptions{Fsync: true}).NewDatabase(b)
	db := openNode(b, dsn, &Options{MaxConns: 32})
	tenant := newTenant(b, db)
	plain := plainTable(b, dsn, workers)
	var number int
	ours := func(ctx context.Context, key string, content []byte) error {
		made := blob.New(content)
		if err := tenant.Blobs().Put(ctx, made); err != nil {
			return err
		}
		return tenant.Rows().Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: key, Value: made.ID[:]}}, Refs: []blob.ID{made.ID}})
	}
	base := func(ctx context.Context, key string, content []byte) error {
		_, err := plain.Exec(ctx, `INSERT INTO plain (key, value) VALUES ($1, $2)`, key, content)
		return err
	}
	var took [2]time.Duration
	for b.Loop() {
		number++
		for side, commit := range []func(context.Context, string, []byte) error{ours, base} {
			took[side] += benchSide(b, workers, number, commit)
		}
	}
	n := float64(b.N * workers * benchRound)
	b.ReportMetric(n/took[0].Seconds(), "ours/s")
	b.ReportMetric(n/took[1].Seconds(), "base/s")
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "ratio")
}

func plainTable(b *testing.B, dsn string, workers int) *pgxpool.Pool {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = int32(workers)
	plain, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(plain.Close)
	if _, err := plain.Exec(b.Context(), `CREATE TABLE plain (key text PRIMARY KEY, value bytea NOT NULL)`); err != nil {
		b.Fatal(err)
	}
	return plain
}

func benchSide(b *testing.B, workers, round int, commit func(context.Context, string, []byte) error) time.Duration {
	contents := make([][]byte, workers)
	for i := range contents {
		contents[i] = make([]byte, 300)
		for k := range contents[i] {
			contents[i][k] = byte(rand.Uint32())
		}
	}
	start := time.Now()
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range benchRound {
				binary.BigEndian.PutUint64(contents[w], uint64(round)<<32|uint64(w)<<16|uint64(i))
				if err := commit(b.Context(), fmt.Sprintf("conversation:%d:%d:%d", round, w, i), contents[w]); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// BenchmarkWake measures how long after a commit on one node a watcher on
// another is woken.
func BenchmarkWake(b *testing.B) {
	dsn := realservers.Postgres(b, realservers.PostgresOptions{Fsync: true}).NewDatabase(b)
	// No polling, so that what wakes is the notification.
	opts := &Options{PollInterval: time.Hour}
	tenant := newTenant(b, openNode(b, dsn, opts))
	other := tenantOf(b, openNode(b, dsn, opts), tenant.Name())
	wake := other.Rows().Watch(b.Context(), kv.Range{Start: "w"})
	var took []time.Duration
	for b.Loop() {
		select {
		case <-wake: // a leftover
		default:
		}
		mustCommit(b, tenant.Rows(), set("w", "1"))
		start := time.Now()
		<-wake
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
