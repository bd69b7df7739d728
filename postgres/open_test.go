package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/kv"
)

// execute runs a statement beside the package.
func execute(t *testing.T, dsn, sql string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if _, err := c.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestFirstOpensTogether(t *testing.T) {
	dsn := newDatabase(t, 15)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			db, err := Open(t.Context(), dsn, nil)
			if err != nil {
				t.Error(err)
				return
			}
			tenant, err := db.Tenant("t")
			if err == nil {
				err = tenant.Rows().Commit(t.Context(), set("a", "1"))
			}
			if err := errors.Join(err, db.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestOpenRefuses(t *testing.T) {
	made := func(t *testing.T, dsn string) { openNode(t, dsn, nil).Close() }
	for name, c := range map[string]struct {
		before func(t *testing.T, dsn string)
		sql    string
		want   error
	}{
		"a newer version":     {made, `UPDATE stet.meta SET value = '99' WHERE key = 'version'`, ErrNewerFormat},
		"other shards":        {made, `UPDATE stet.meta SET value = '2048' WHERE key = 'shards'`, ErrNewerFormat},
		"a broken version":    {made, `UPDATE stet.meta SET value = 'x' WHERE key = 'version'`, ErrForeign},
		"another's meta":      {nil, `CREATE SCHEMA stet; CREATE TABLE stet.meta (key text, value text)`, ErrForeign},
		"another's form":      {nil, `CREATE SCHEMA stet; CREATE TABLE stet.meta (name text)`, ErrForeign},
		"another's tables":    {nil, `CREATE SCHEMA stet; CREATE TABLE stet.rows (x int)`, ErrForeign},
		"a product of others": {made, `UPDATE stet.meta SET value = 'other' WHERE key = 'product'`, ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := newDatabase(t, 15)
			if c.before != nil {
				c.before(t, dsn)
			}
			execute(t, dsn, c.sql)
			db, err := Open(t.Context(), dsn, nil)
			if !errors.Is(err, c.want) {
				t.Errorf("open gave %v, want %v", err, c.want)
			}
			if err == nil {
				db.Close()
			}
		})
	}
}

func TestSchemasAreApart(t *testing.T) {
	dsn := newDatabase(t, 15)
	first := tenantOf(t, openNode(t, dsn, nil), "t")
	second := tenantOf(t, openNode(t, dsn, &Options{Schema: "second"}), "t")
	mustCommit(t, first.Rows(), set("a", "1"))
	if _, err := second.Rows().Get(t.Context(), "a"); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("a row of another schema: got %v, want none", err)
	}
	for _, bad := range []string{`x"; DROP TABLE y`, "Ä", strings.Repeat("x", 64)} {
		if _, err := Open(t.Context(), dsn, &Options{Schema: bad}); err == nil {
			t.Errorf("schema %q: got no error", bad)
		}
	}
}

func TestTenantsAreApart(t *testing.T) {
	db := openNode(t, newDatabase(t, 15), nil)
	a, b := newTenant(t, db), newTenant(t, db)
	secret := blob.New([]byte("secret"))
	if err := a.Blobs().Put(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	batch := set("a", "12345")
	batch.Refs = []blob.ID{secret.ID}
	mustCommit(t, a.Rows(), batch)
	if _, err := b.Rows().Get(t.Context(), "a"); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("a row of another tenant: got %v, want none", err)
	}
	if has, err := b.Blobs().Has(t.Context(), secret.ID); err != nil || has[0] {
		t.Errorf("a blob of another tenant: got %v, %v, want none", has, err)
	}
	if err := b.Rows().Commit(t.Context(), batch); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a reference to a blob of another tenant: got %v, want ErrNotFound", err)
	}
	for tenant, want := range map[*Tenant]int64{a: 6 + 1 + 5, b: 0} {
		if got, err := tenant.Usage(t.Context()); err != nil || got != want {
			t.Errorf("usage: got %d, %v, want %d", got, err, want)
		}
	}
	for _, bad := range []string{"", "a\x00b", "\xff", strings.Repeat("x", 256)} {
		if _, err := db.Tenant(bad); !errors.Is(err, ErrTenant) {
			t.Errorf("tenant %.20q: got %v, want ErrTenant", bad, err)
		}
	}
}

func TestEpoch(t *testing.T) {
	a, b := twoNodes(t, nil)
	first, err := a.Epoch(t.Context())
	if err != nil || first == 0 {
		t.Fatalf("epoch: got %d, %v", first, err)
	}
	if second, err := b.BumpEpoch(t.Context()); err != nil || second != first+1 {
		t.Errorf("the next epoch: got %d, %v, want %d", second, err, first+1)
	}
	if got, err := a.Epoch(t.Context()); err != nil || got != first+1 {
		t.Errorf("epoch on the other node: got %d, %v, want %d", got, err, first+1)
	}
}

// TestErrorsHaveTypesAndNoSecrets goes through what can be wrong with a
// connection, each time with a password that must not turn up.
func TestErrorsHaveTypesAndNoSecrets(t *testing.T) {
	const canary = "canary+4711"
	server := realservers.Postgres(t, realservers.PostgresOptions{Own: true})
	server.AddUser(t, "guarded", canary)
	login := "postgres://guarded:" + canary + "@"
	open := func(dsn string) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		db, err := Open(ctx, dsn, &Options{RetryFor: 50 * time.Millisecond})
		if err == nil {
			err = db.Close()
		}
		return err
	}
	if err := open(login + server.Addr() + "/postgres?sslmode=disable"); err != nil {
		t.Fatalf("open with the right password: %v", err)
	}
	for name, c := range map[string]struct {
		dsn  string
		want error
	}{
		"wrong password": {"postgres://guarded:not-" + canary + "@" + server.Addr() + "/postgres?sslmode=disable", ErrDenied},
		"no database":    {login + server.Addr() + "/absent?sslmode=disable", ErrUnavailable},
		"nobody there":   {login + "127.0.0.1:1/postgres?sslmode=disable", ErrUnavailable},
		"no such host":   {login + "host.invalid/postgres?sslmode=disable", ErrUnavailable},
		"bad port":       {login + "127.0.0.1:port/postgres", ErrInvalidDSN},
		"bad option":     {login + "127.0.0.1/postgres?sslmode=" + canary, ErrInvalidDSN},
		"bad pairs":      {"host=127.0.0.1 password=" + canary + " sslmode=bad", ErrInvalidDSN},
		"no string":      {"postgres://guarded:" + canary + "%zz@127.0.0.1/", ErrInvalidDSN},
	} {
		err := open(c.dsn)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if text := fmt.Sprintf("%v %+v %q %#v", e, e, e, e); strings.Contains(text, canary) {
				t.Errorf("%s: the password is in %q", name, text)
			}
		}
	}
}

func TestReadOnlyServer(t *testing.T) {
	dsn := newDatabase(t, 15)
	mustCommit(t, tenantOf(t, openNode(t, dsn, nil), "t").Rows(), set("a", "1"))
	db := openNode(t, dsn+"&default_transaction_read_only=on", &Options{RetryFor: 50 * time.Millisecond})
	rows := tenantOf(t, db, "t").Rows()
	wantRow(t, rows, "a", "1")
	if err := rows.Commit(t.Context(), set("a", "2")); !errors.Is(err, blob.ErrReadOnly) {
		t.Errorf("commit gave %v, want ErrReadOnly", err)
	}
	if err := db.Ping(t.Context()); !errors.Is(err, blob.ErrReadOnly) {
		t.Errorf("ping gave %v, want ErrReadOnly", err)
	}
}

// TestHeldRow has another client sit on a row for longer than we wait.
func TestHeldRow(t *testing.T) {
	dsn := newDatabase(t, 15)
	db := openNode(t, dsn, &Options{LockTimeout: 50 * time.Millisecond})
	tenant := tenantOf(t, db, "t")
	mustCommit(t, tenant.Rows(), set("held", "1"))
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	tx, err := c.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `SELECT * FROM stet.rows FOR UPDATE`)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := tenant.Rows().Commit(t.Context(), set("held", "2")); !errors.Is(err, kv.ErrBusy) {
		t.Errorf("commit of a row that another holds: got %v, want ErrBusy", err)
	}
	mustCommit(t, tenant.Rows(), set("free", "1"))
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantRow(t, tenant.Rows(), "held", "1")
	mustCommit(t, tenant.Rows(), set("held", "2"))
}

func TestFewConnections(t *testing.T) {
	dsn := newDatabase(t, 15)
	db := openNode(t, dsn, &Options{MaxConns: 4})
	tenants := []*Tenant{newTenant(t, db), newTenant(t, db), newTenant(t, db)}
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			rows, key := tenants[i%3].Rows(), fmt.Sprint(i)
			for range 5 {
				if err := rows.Commit(t.Context(), set(key, key)); err != nil {
					t.Error(err)
				}
				if _, err := rows.Get(t.Context(), key); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var open int
	err := db.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'stet'`).Scan(&open)
	if err != nil || open > 5 { // one of them listens
		t.Errorf("%d connections, %v, want at most 5", open, err)
	}
	if _, err := Open(t.Context(), dsn, &Options{MaxConns: 1}); err == nil {
		t.Error("one connection: got no error")
	}
}

func TestClosed(t *testing.T) {
	dsn := newDatabase(t, 15)
	db, err := Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	tenant := tenantOf(t, db, "t")
	unflushed := blob.New([]byte("unflushed"))
	if err := tenant.Blobs().Put(t.Context(), unflushed); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	_, get := tenant.Rows().Get(t.Context(), "a")
	_, has := tenant.Blobs().Has(t.Context(), blob.Sum(nil))
	for name, err := range map[string]error{
		"get": get, "has": has,
		"commit": tenant.Rows().Commit(t.Context(), set("a", "1")),
		"put":    tenant.Blobs().Put(t.Context(), blob.New([]byte("late"))),
		"flush":  tenant.Blobs().Flush(t.Context()),
		"ping":   db.Ping(t.Context()),
	} {
		if !errors.Is(err, blob.ErrClosed) {
			t.Errorf("%s after Close: got %v, want ErrClosed", name, err)
		}
	}
	again := tenantOf(t, openNode(t, dsn, nil), "t")
	if has, err := again.Blobs().Has(t.Context(), unflushed.ID); err != nil || !has[0] {
		t.Errorf("a blob that was put before Close: got %v, %v", has, err)
	}
}
