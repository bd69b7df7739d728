package realservers

import (
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { os.Exit(Run(m)) }

func TestPostgresVersions(t *testing.T) {
	for _, version := range PostgresVersions() {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			s := Postgres(t, PostgresOptions{Version: version})
			if again := Postgres(t, PostgresOptions{Version: version}); again != s {
				t.Error("a second server was started")
			}
			c, err := pgx.Connect(t.Context(), s.NewDatabase(t))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close(t.Context())
			var got string
			if err := c.QueryRow(t.Context(), "SHOW server_version").Scan(&got); err != nil || got < fmt.Sprint(version) { // Debian's may be newer than 15
				t.Errorf("the server says %q, %v, want at least version %d", got, err, version)
			}
		})
	}
}

// TestPostgresFailOver loses a primary and goes on with what its standby has.
func TestPostgresFailOver(t *testing.T) {
	primary := Postgres(t, PostgresOptions{Fsync: true, Own: true})
	standby := primary.Standby(t)
	if err := primary.Exec("postgres", "CREATE TABLE kept AS SELECT 1 AS n"); err != nil {
		t.Fatal(err)
	}
	primary.Kill(t)
	if err := primary.Exec("postgres", "SELECT 1"); err == nil {
		t.Fatal("a killed server answers")
	}
	standby.Promote(t)
	if err := standby.Exec("postgres", "INSERT INTO kept SELECT n + 1 FROM kept"); err != nil {
		t.Fatal(err)
	}
	primary.Start(t)
	if err := primary.Exec("postgres", "SELECT n FROM kept"); err != nil {
		t.Fatal(err)
	}
}
