package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fleet"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/populate"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/search"
	"github.com/stet-dev/stet/upkeep"
)

// What docs/OPERATIONS.md says about a conversation of one turn, in bytes. The benchmark
// fails if it is wrong by more than a quarter.
const (
	documentedLive   = 3_500
	documentedBucket = 1_070
)

// BenchmarkScale grows a tenant to each of the sizes in STET_FLEET_SIZES, and prints what
// it takes and how long calls take. Conversations are made by the library in memory and
// copied into the tables as they are stored. 'make bench-fleet' runs it.
func BenchmarkScale(b *testing.B) {
	sizes := os.Getenv("STET_FLEET_SIZES")
	if sizes == "" {
		b.Skip("set STET_FLEET_SIZES, as in 1000,10000,100000,1000000")
	}
	s3 := realservers.S3(b)
	useKeys(b, s3)
	f := node(b, fleet.Config{
		Database: realservers.Postgres(b, realservers.PostgresOptions{Fsync: true, Own: true}).NewDatabase(b), Blobs: s3.URL(s3.NewBucket(b)),
	})
	db := open(b, f, "shop")
	if _, err := talk(b.Context(), db, "first", 1); err != nil { // makes the tenant's own rows
		b.Fatal(err)
	}
	fmt.Printf("\n%-10s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s %11s\n",
		"talks", "db/talk", "rows", "blobs", "get p50", "get p99", "list p50", "filter", "search", "save p50", "fsck/s", "archive/s", "archive cpu")
	have := 0
	for _, text := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		for ; have < n; have = min(n, have+5_000) {
			if err := fill(b.Context(), f, have, min(n, have+5_000)); err != nil {
				b.Fatal(err)
			}
		}
		scaleLine(b, f, db, n)
	}
	archiveCost(b, f)
}

// fill copies the conversations from one number up to another into the tables.
func fill(ctx context.Context, f *fleet.Fleet, from, to int) error {
	t, err := f.Postgres().Tenant("shop")
	if err != nil {
		return err
	}
	mem := memblob.New()
	rows := memkv.New(mem)
	// Lists by workspace and agent depend on a salt.
	salt, err := t.Rows().Get(ctx, keyspace.Setting("filters"))
	salted := err == nil
	if salted {
		err = rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: salt.Key, Value: salt.Value}}})
	} else if errors.Is(err, kv.ErrNotFound) {
		err = nil
	}
	if err != nil {
		return err
	}
	db, err := stet.New(ctx, stet.Backend{Blobs: mem, Rows: rows}, nil, &stet.Options{Tenant: "shop"})
	if err != nil {
		return err
	}
	if err := populate.Some(ctx, db.Conversations(), from, to); err != nil {
		return err
	}
	var rowTable, blobTable [][]any
	for row, err := range rows.Scan(ctx, kv.Range{}, kv.ScanOptions{}) {
		if err != nil {
			return err
		}
		if row.Key == keyspace.Setting("filters") && !salted || !strings.HasPrefix(row.Key, "stet:setting:") {
			rowTable = append(rowTable, []any{"shop", []byte(row.Key), rand.Int64()>>1 + 1, row.Value})
		}
	}
	err = mem.List(ctx, blob.ID{}, func(i blob.Info) error {
		kept, err := mem.Kept(ctx, i.ID)
		var base []byte
		if !kept.Base.IsZero() {
			base = kept.Base.Bytes()
		}
		blobTable = append(blobTable, []any{"shop", i.ID.Bytes(), base, int64(len(kept.Data)), int64(1), time.Now().Unix(), nil, kept.Data})
		return err
	})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	pool := f.Postgres().Pool()
	// Contents that an earlier part had, too, are there already.
	if blobTable, err = withoutKnown(ctx, t.Blobs(), blobTable); err != nil {
		return err
	}
	_, err = pool.CopyFrom(ctx, pgx.Identifier{"stet", "blobs"}, []string{"tenant", "id", "base", "size", "generation", "stored_at", "object", "data"}, pgx.CopyFromRows(blobTable))
	if err == nil {
		_, err = pool.CopyFrom(ctx, pgx.Identifier{"stet", "rows"}, []string{"tenant", "key", "version", "value"}, pgx.CopyFromRows(rowTable))
	}
	return errors.Join(err, db.Close())
}

func withoutKnown(ctx context.Context, blobs blob.Store, table [][]any) ([][]any, error) {
	ids := make([]blob.ID, len(table))
	for i, row := range table {
		ids[i] = blob.ID(row[1].([]byte))
	}
	has, err := blobs.Has(ctx, ids...)
	var fresh [][]any
	for i, row := range table {
		if err == nil && !has[i] {
			fresh = append(fresh, row)
		}
	}
	return fresh, err
}

// quantiles runs fn some times and returns the middle and the slow end, in milliseconds.
func quantiles(b *testing.B, times int, fn func(n int) error) (p50, p99 float64) {
	b.Helper()
	took := make([]float64, times)
	for n := range took {
		start := time.Now()
		if err := fn(n); err != nil {
			b.Fatal(err)
		}
		took[n] = float64(time.Since(start).Microseconds()) / 1000
	}
	slices.Sort(took)
	return took[times/2], took[times*99/100]
}

// tableBytes returns what the tables of rows and of blobs take, with their indexes.
func tableBytes(b *testing.B, f *fleet.Fleet) (rows, blobs int64) {
	b.Helper()
	for _, sql := range []string{`VACUUM ANALYZE stet.rows`, `VACUUM ANALYZE stet.blobs`} {
		if _, err := f.Postgres().Pool().Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	err := f.Postgres().Pool().QueryRow(b.Context(), `SELECT pg_total_relation_size('stet.rows'), pg_total_relation_size('stet.blobs')`).Scan(&rows, &blobs)
	if err != nil {
		b.Fatal(err)
	}
	return rows, blobs
}

func scaleLine(b *testing.B, f *fleet.Fleet, db *stet.DB, n int) {
	b.Helper()
	ctx := b.Context()
	rows, blobs := tableBytes(b, f)
	var ids []string
	page, err := db.Conversations().List(ctx, &conversation.ListOptions{Limit: 500})
	if err != nil {
		b.Fatal(err)
	}
	for _, info := range page.Conversations {
		ids = append(ids, info.ID)
	}
	get50, get99 := quantiles(b, 200, func(int) error {
		_, err := db.Conversations().Get(ctx, ids[rand.IntN(len(ids))])
		return err
	})
	list50, _ := quantiles(b, 20, func(int) error {
		_, err := db.Conversations().List(ctx, nil)
		return err
	})
	filter50, _ := quantiles(b, 11, func(n int) error {
		opts := conversation.ListOptions{Agent: populate.Agent(n)}
		if n%2 == 0 {
			opts.Workspace = populate.Workspace(n)
		}
		_, err := db.Conversations().List(ctx, &opts)
		return err
	})
	found := "-"
	if n <= 10_000 || os.Getenv("STET_FLEET_SEARCH") != "" {
		once := func(int) error {
			index, err := db.Search(ctx)
			if err == nil {
				_, err = index.Search(ctx, "retry timeout", &search.SearchOptions{Limit: 20})
			}
			return err
		}
		index, err := db.Search(ctx)
		if err == nil {
			_, err = index.Update(ctx)
		}
		if err != nil {
			b.Fatal(err)
		}
		p50, _ := quantiles(b, 10, once)
		found = fmt.Sprintf("%.1f", p50)
	}
	c, err := db.Conversations().Create(ctx, conversation.Info{ID: fmt.Sprint("saved at ", n)})
	if err != nil {
		b.Fatal(err)
	}
	save50, _ := quantiles(b, 50, func(k int) error {
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: fmt.Sprint("question ", k)})
		if err == nil {
			err = c.AppendTurn(ctx, turn)
		}
		if err == nil {
			_, err = c.Save(ctx, nil)
		}
		return err
	})
	start := time.Now()
	report, err := db.Check(ctx, nil)
	if err != nil || !report.OK() {
		b.Fatalf("%+v, %v", report, err)
	}
	checked := float64(report.Rows) / time.Since(start).Seconds()
	start, cpu, limit := time.Now(), treeCPU(), min(n/4, 2_000)
	archived, err := db.ArchiveIdle(ctx, &upkeep.ArchiveOptions{IdleFor: -1, Limit: limit, Workers: fleet.ArchiveWorkers})
	if err != nil || archived.Archived != limit {
		b.Fatalf("%+v, %v", archived, err)
	}
	fmt.Printf("%-10d %9.0f %9.0f %9.0f %9.1f %9.1f %9.1f %9.1f %9s %9.1f %9.0f %9.0f %8.2f ms\n", n, float64(rows+blobs)/float64(n), float64(rows)/float64(n), float64(blobs)/float64(n),
		get50, get99, list50, filter50, found, save50, checked, float64(limit)/time.Since(start).Seconds(), (treeCPU()-cpu).Seconds()*1000/float64(limit))
	if each := float64(rows+blobs) / float64(n); n >= 10_000 && (each < documentedLive*0.75 || each > documentedLive*1.25) {
		b.Errorf("a conversation takes %.0f bytes of the database, docs/OPERATIONS.md says %d", each, documentedLive)
	}
}

// archiveCost prints what the archived conversations take.
func archiveCost(b *testing.B, f *fleet.Fleet) {
	b.Helper()
	ctx := b.Context()
	counted := func() (n, bytes int64) {
		err := f.Bucket().ListObjects(ctx, "", "", func(o blob.ObjectInfo) error {
			n, bytes = n+1, bytes+o.Size
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		return n, bytes
	}
	objects, bytes := counted()
	var left int64
	err := f.Postgres().Pool().QueryRow(ctx, `SELECT coalesce(sum(length(key) + length(value) + 100), 0)::bigint FROM stet.rows
		WHERE encode(key, 'escape') LIKE 'stet:pack:%'`).Scan(&left)
	if err != nil {
		b.Fatal(err)
	}
	stored, catalog := float64(bytes)/float64(objects), float64(left)/float64(objects)
	fmt.Printf("archived: %d objects, %.0f bytes of the bucket each, %.0f bytes of the catalog each\n", objects, stored, catalog)
	if stored < documentedBucket*0.75 || stored > documentedBucket*1.25 {
		b.Errorf("an archived conversation takes %.0f bytes of the bucket, docs/OPERATIONS.md says %d", stored, documentedBucket)
	}
}
