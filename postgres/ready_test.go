package postgres

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/internal/realservers"
)

// plainUser creates a role without special rights that may use a database, and returns
// its name and its connection string.
func plainUser(t *testing.T, dsn string) (role, login string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	database := strings.TrimPrefix(u.Path, "/")
	role = "user_" + database
	execute(t, dsn, `CREATE ROLE `+role+` LOGIN; GRANT CREATE ON DATABASE `+database+` TO `+role)
	u.User = url.User(role)
	return role, u.String()
}

// TestPingReadsTheTables takes from a node what its calls need.
func TestPingReadsTheTables(t *testing.T) {
	dsn := newDatabase(t, 15)
	role, login := plainUser(t, dsn)
	db := openNode(t, login, nil)
	if err := db.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	execute(t, dsn, `REVOKE USAGE ON SCHEMA stet FROM `+role)
	if err := db.Ping(t.Context()); !errors.Is(err, ErrDenied) {
		t.Errorf("without rights on the schema: %v", err)
	}
	execute(t, dsn, `GRANT USAGE ON SCHEMA stet TO `+role+`; REVOKE SELECT ON stet.blobs FROM `+role)
	if err := db.Ping(t.Context()); !errors.Is(err, ErrDenied) {
		t.Errorf("without rights on a table: %v", err)
	}
	execute(t, dsn, `GRANT SELECT ON stet.blobs TO `+role)
	for _, table := range []string{"rows", "blobs", "generations", "tenants", "commits"} {
		release := lockTable(t, dsn, table)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if err := db.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with %s locked: %v", table, err)
		}
		cancel()
		release()
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// lockTable keeps everybody from a table until the result is called.
func lockTable(t *testing.T, dsn, table string) func() {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err == nil {
		_, err = c.Exec(t.Context(), `BEGIN; LOCK TABLE stet.`+table+` IN ACCESS EXCLUSIVE MODE`)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() { c.Close(t.Context()) }
}

// TestCallsWaitForAConnection lets the server refuse connections for a while.
func TestCallsWaitForAConnection(t *testing.T) {
	server := realservers.Postgres(t, realservers.PostgresOptions{Own: true})
	dsn := server.NewDatabase(t)
	role, login := plainUser(t, dsn)
	db := openNode(t, login, nil)
	rows := tenantOf(t, db, "t").Rows()
	mustCommit(t, rows, set("a", "1"))
	execute(t, dsn, `ALTER ROLE `+role+` CONNECTION LIMIT 0`)
	execute(t, dsn, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '`+role+`'`)
	// The pool may still have broken connections, whose errors come first.
	var err error
	for err = db.Ping(t.Context()); !errors.Is(err, ErrNoConnection); err = db.Ping(t.Context()) {
		if err == nil {
			t.Fatal("a ping without a connection")
		}
	}
	refusals := func() int { return strings.Count(server.Log(t), "too many connections") }
	before, got := refusals(), make(chan error, 1)
	go func() {
		_, err := rows.Get(t.Context(), "a")
		got <- err
	}()
	for refusals() < before+3 { // it has tried more than once, beside the listener
		select {
		case err := <-got:
			t.Fatalf("the call did not wait: %v", err)
		default:
		}
	}
	execute(t, dsn, `ALTER ROLE `+role+` CONNECTION LIMIT -1`)
	if err := <-got; err != nil {
		t.Error(err)
	}
	wantRow(t, rows, "a", "1")
}
