package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/upkeep"
)

func testFleet(t *testing.T, config Config) *Fleet {
	t.Helper()
	s3 := realservers.S3(t)
	access, secret := s3.Keys()
	t.Setenv("AWS_ACCESS_KEY_ID", access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	if config.Database == "" {
		config.Database = realservers.Postgres(t, realservers.PostgresOptions{}).NewDatabase(t)
		config.Blobs = s3.URL(s3.NewBucket(t))
	}
	f, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// saveTalk saves a conversation after each of some turns.
func saveTalk(t *testing.T, db *stet.DB, id string, turns int) {
	t.Helper()
	ctx := t.Context()
	c, err := db.Conversations().Create(ctx, conversation.Info{ID: id, Title: "moved"})
	for n := 0; n < turns && err == nil; n++ {
		var turn conversation.Turn
		turn, err = conversation.NewTurn(&agentv1.UserMessage{Text: fmt.Sprint("turn ", n, strings.Repeat(" words", 50))})
		if err == nil {
			err = c.AppendTurn(ctx, turn)
		}
		if err == nil {
			_, err = c.Save(ctx, nil)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// embedded fills a store in a directory: conversations whose states are deltas, a
// large blob, and what nothing refers to.
func embedded(t *testing.T, dir string, turns, large int, opts *stet.Options) {
	t.Helper()
	ctx := t.Context()
	db, err := stet.Open(ctx, dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	saveTalk(t, db, "talk", turns)
	noise := make([]byte, large)
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(noise)
	if err := db.Blobs().Put(ctx, blob.New(noise)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Compact(ctx, nil), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func source(t *testing.T, dir string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), dir, &sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// mustBeWhole opens what was moved and reads all of it.
func mustBeWhole(t *testing.T, f *Fleet, tenant string, saves uint64) {
	t.Helper()
	db, err := f.Open(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	info, err := db.Conversations().Get(t.Context(), "talk")
	if err != nil || info.Title != "moved" || info.Save != saves {
		t.Errorf("after the migration: %+v, %v", info, err)
	}
	report, err := db.Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
	if err != nil || !report.OK() || report.Blobs == 0 {
		t.Errorf("check: %+v, %v", report, err)
	}
}

func TestMigrateMovesEverything(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir, 40, 3<<20, nil)
	f, from := testFleet(t, Config{}), source(t, dir)
	deltas := 0
	if err := from.Blobs().List(t.Context(), blob.ID{}, func(i blob.Info) error {
		if !i.Base.IsZero() {
			deltas++
		}
		return nil
	}); err != nil || deltas == 0 {
		t.Fatalf("%d blobs lean on others, %v", deltas, err)
	}
	stages := make(map[string]bool)
	result, err := f.Migrate(t.Context(), from, "", &MigrateOptions{Progress: func(doing string, _, _ int64) { stages[doing] = true }})
	if err != nil || result.Resumed || result.CopiedBlobs != result.Blobs || result.Wrote != result.Rows || !stages["copying blobs"] {
		t.Fatalf("%+v, %v, %v", result, err, stages)
	}
	mustBeWhole(t, f, "", 40)
	objects := 0
	if err := f.bucket.ListObjects(t.Context(), "", "", func(o blob.ObjectInfo) error {
		objects++
		return nil
	}); err != nil || objects != 1 {
		t.Errorf("%d objects in the bucket, %v", objects, err)
	}
	if _, err := f.Migrate(t.Context(), from, "", nil); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("into a store that is in use: %v", err)
	}
}

func TestMigrateKeepsAnEncryptedStoreEncrypted(t *testing.T) {
	dir := t.TempDir()
	unlock := keyring.Raw(bytes.Repeat([]byte{3}, 32))
	empty, err := sqlite.Open(t.Context(), dir, nil)
	if err == nil {
		err = empty.Close()
	}
	if err == nil {
		_, err = keyring.Create(filepath.Join(dir, stet.KeyringName), unlock)
	}
	if err != nil {
		t.Fatal(err)
	}
	embedded(t, dir, 5, 200_000, &stet.Options{Unlock: &unlock})
	bare := testFleet(t, Config{})
	if _, err := bare.Migrate(t.Context(), source(t, dir), "shop", &MigrateOptions{Encrypted: true}); !errors.Is(err, ErrOtherTenant) {
		t.Errorf("an encrypted store to a tenant: %v", err)
	}
	if _, err := bare.Migrate(t.Context(), source(t, dir), "", &MigrateOptions{Encrypted: true}); err != nil {
		t.Fatal(err)
	}
	if db, err := bare.Open(t.Context(), ""); err == nil {
		_, err = db.Conversations().Get(t.Context(), "talk")
		if err == nil || errors.Is(err, conversation.ErrNotFound) {
			t.Errorf("without the keyring: %v", err)
		}
		db.Close()
	}
	config := bare.config
	config.Keyring, config.Unlock = filepath.Join(dir, stet.KeyringName), &unlock
	mustBeWhole(t, testFleet(t, config), "", 5)
}

func TestMigrateRefusesAStrangersTarget(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	embedded(t, one, 2, 10, nil)
	embedded(t, other, 2, 10, nil)
	f := testFleet(t, Config{})
	// A migration that was cut.
	ctx, cancel := context.WithCancel(t.Context())
	_, err := f.Migrate(ctx, source(t, one), "", &MigrateOptions{Progress: func(string, int64, int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := f.Open(t.Context(), ""); !errors.Is(err, ErrMigrating) {
		t.Errorf("opened half of a store: %v", err)
	}
	if _, err := f.Migrate(t.Context(), source(t, other), "", nil); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("another store into half of one: %v", err)
	}
	if result, err := f.Migrate(t.Context(), source(t, one), "", nil); err != nil || !result.Resumed {
		t.Errorf("go on: %+v, %v", result, err)
	}
	mustBeWhole(t, f, "", 2)
}

// A migration that ends at any call goes on at the next try, whatever it had done.
func TestMigrateResumesAfterAnInterruptionAtEveryCall(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir, 2, 300_000, nil)
	f, from := testFleet(t, Config{}), source(t, dir)
	step := int64(testenv.Sizes(3, 1, 1))
	for n := int64(1); ; n += step {
		tenant := fmt.Sprint("t", n)
		ctx, cancel := context.WithCancel(t.Context())
		err := interruptible(t, f, from, tenant, &calls{left: n, cancel: cancel}).run(ctx)
		cancel()
		if err == nil {
			if n < 30 {
				t.Errorf("a migration takes %d calls only", n)
			}
			t.Logf("%d calls", n)
			mustBeWhole(t, f, tenant, 2)
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("call %d: %v", n, err)
		}
		again := interruptible(t, f, from, tenant, &calls{left: 1 << 40})
		if err := again.run(t.Context()); err != nil {
			t.Fatalf("after an interruption at call %d: %v", n, err)
		}
		mustBeWhole(t, f, tenant, 2)
	}
}

// What was written to the source, or removed from it, between two runs arrives.
func TestMigrateMakesUpForChangesOfTheSource(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir, 2, 10, nil)
	f := testFleet(t, Config{})
	db, err := stet.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	kept := func(key, value string) *kv.Batch {
		return &kv.Batch{Set: []kv.Set{{Key: key, Value: []byte(value)}}}
	}
	for _, key := range []string{"stet:setting:a", "stet:setting:b", "zz"} {
		if err := db.Rows().Commit(t.Context(), kept(key, "old")); err != nil {
			t.Fatal(err)
		}
	}
	m := interruptible(t, f, db.Engine(), "", &calls{left: 1 << 40})
	m.progress = func(doing string, _, _ int64) {
		if doing != "comparing blobs" {
			return
		}
		batch := kept("stet:setting:b", "new")
		batch.Delete = []string{"stet:setting:a", "zz"}
		if err := db.Rows().Commit(t.Context(), batch); err != nil {
			t.Error(err)
		}
	}
	if err := m.run(t.Context()); !errors.Is(err, ErrDiffers) {
		t.Fatalf("the source changed meanwhile: %v", err)
	}
	if result, err := f.Migrate(t.Context(), db.Engine(), "", nil); err != nil || result.CopiedBlobs != 0 || result.Wrote != 3 {
		t.Fatalf("the second run: %+v, %v", result, err)
	}
	mustBeWhole(t, f, "", 2)
}

func TestMigrateFindsADamagedTarget(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir, 2, 2<<20, nil)
	f := testFleet(t, Config{})
	m := interruptible(t, f, source(t, dir), "", &calls{left: 1 << 40})
	damage := `UPDATE stet.blobs SET data = overlay(data PLACING '\xff'::bytea FROM 1) WHERE data IS NOT NULL`
	if err := m.copyBlobs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.db.Pool().Exec(t.Context(), damage); err != nil {
		t.Fatal(err)
	}
	if err := m.compareBlobs(t.Context()); !errors.Is(err, ErrDiffers) {
		t.Errorf("a flipped byte: %v", err)
	}
	if _, err := f.db.Pool().Exec(t.Context(), `DELETE FROM stet.blobs WHERE size < 1000`); err != nil {
		t.Fatal(err)
	}
	if err := m.compareBlobs(t.Context()); !errors.Is(err, ErrDiffers) {
		t.Errorf("a lost blob: %v", err)
	}
}

// calls ends a context after a number of calls.
type calls struct {
	left   int64
	cancel context.CancelFunc
}

func (c *calls) one() {
	if atomic.AddInt64(&c.left, -1) == 0 {
		c.cancel()
	}
}

func interruptible(t *testing.T, f *Fleet, from *sqlite.DB, name string, c *calls) *migration {
	t.Helper()
	tenant, _, err := f.tenant(name)
	if err != nil {
		t.Fatal(err)
	}
	return &migration{
		source: from.ID(),
		from:   side{&countedBlobs{from.Blobs(), c}, &countedRows{from.Rows(), c}},
		to:     side{&countedBlobs{tenant.Blobs(), c}, &countedRows{tenant.Rows(), c}},
	}
}

type countedBlobs struct {
	driver
	*calls
}

func (b *countedBlobs) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	b.one()
	return b.driver.Get(ctx, id)
}

func (b *countedBlobs) Put(ctx context.Context, blobs ...blob.Blob) error {
	b.one()
	err := b.driver.Put(ctx, blobs...)
	b.one()
	return err
}

func (b *countedBlobs) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	b.one()
	return b.driver.Has(ctx, ids...)
}

func (b *countedBlobs) Flush(ctx context.Context) error {
	b.one()
	err := b.driver.Flush(ctx)
	b.one()
	return err
}

func (b *countedBlobs) PutFrom(ctx context.Context, id blob.ID, r io.Reader, size int64) error {
	b.one()
	return b.driver.PutFrom(ctx, id, r, size)
}

func (b *countedBlobs) List(ctx context.Context, after blob.ID, fn func(blob.Info) error) error {
	return b.driver.List(ctx, after, func(i blob.Info) error {
		b.one()
		return fn(i)
	})
}

type countedRows struct {
	kv.Store
	*calls
}

func (r *countedRows) Get(ctx context.Context, key string) (kv.Row, error) {
	r.one()
	return r.Store.Get(ctx, key)
}

func (r *countedRows) Scan(ctx context.Context, in kv.Range, opts kv.ScanOptions) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		for row, err := range r.Store.Scan(ctx, in, opts) {
			r.one()
			if !yield(row, err) {
				return
			}
		}
	}
}

func (r *countedRows) Commit(ctx context.Context, b *kv.Batch) error {
	r.one()
	err := r.Store.Commit(ctx, b)
	r.one()
	return err
}
