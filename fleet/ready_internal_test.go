package fleet

import (
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/postgres"
)

// TestReadinessIsThatOfCalls breaks what calls need, one after the other.
func TestReadinessIsThatOfCalls(t *testing.T) {
	dsn := realservers.Postgres(t, realservers.PostgresOptions{}).NewDatabase(t)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	role := "user_" + strings.TrimPrefix(u.Path, "/")
	admin, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context())
	execute := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	execute(`CREATE ROLE ` + role + ` LOGIN; GRANT CREATE ON DATABASE ` + strings.TrimPrefix(u.Path, "/") + ` TO ` + role)
	u.User = url.User(role)
	f, err := Open(t.Context(), Config{Database: u.String()})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, err := f.Tokens().Create(access.Grant{Tenant: "shop", Scope: access.Read}); err != nil {
		t.Fatal(err)
	}
	if err := f.probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ harm, mend, want string }{
		{`REVOKE USAGE ON SCHEMA stet FROM ` + role, `GRANT USAGE ON SCHEMA stet TO ` + role, "the database denies access"},
		{`UPDATE stet.rows SET value = 'x' || value WHERE tenant = ':system'`, `UPDATE stet.rows SET value = substring(value FROM 2) WHERE tenant = ':system'`, "the tokens cannot be read"},
	} {
		execute(c.harm)
		if err := f.probe(t.Context()); err == nil || err.Error() != c.want {
			t.Errorf("after %s: %v, want %q", c.harm, err, c.want)
		}
		execute(c.mend)
		if err := f.probe(t.Context()); err != nil {
			t.Errorf("after %s: %v", c.mend, err)
		}
	}
	if got := why(postgres.ErrNoConnection); got != "cannot be reached" {
		t.Errorf("without a connection left the database %s", got)
	}
}
