package suites

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/internal/realservers"
)

// place is where servers keep their data, one after the other.
type place struct {
	env, args []string
	dir       string // of an embedded store
	owner     string // token for a shared one
}

// embedded returns a place for an embedded store.
func embedded(t testing.TB) place {
	dir := t.TempDir()
	return place{dir: dir, env: []string{"STET_STORE=" + dir}}
}

// shared returns a place in a database and a bucket.
func shared(t testing.TB) place {
	t.Helper()
	database := realservers.Postgres(t, realservers.PostgresOptions{}).NewDatabase(t)
	bucket := realservers.S3(t)
	key, secret := bucket.Keys()
	t.Setenv("AWS_ACCESS_KEY_ID", key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	config := fleet.Config{Database: database, Blobs: bucket.URL(bucket.NewBucket(t))}
	f, err := fleet.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	token, _, err := f.Tokens().Create(access.Grant{Tenant: "shop", Scope: access.Write})
	if err != nil {
		t.Fatal(err)
	}
	return place{owner: token, env: []string{"STET_STORE=" + config.Database, "STET_BLOBS=" + config.Blobs}, args: []string{"--mode", "server"}}
}

// token is that of a server which has started.
func (p place) token(t testing.TB) string {
	t.Helper()
	if p.dir == "" {
		return p.owner
	}
	token, err := os.ReadFile(filepath.Join(p.dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(token))
}

// process is a server that can be killed.
type process struct {
	server
	cmd *exec.Cmd
}

// start runs a server until it is killed or stopped.
func (p place) start(t testing.TB) *process {
	t.Helper()
	cmd, address := suite{}.start(t, p.env, p.args...)
	return &process{server{address, p.token(t)}, cmd}
}

// kill ends the server between any two instructions, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only if it is gone
	_ = p.cmd.Wait()         // reports the signal
}
