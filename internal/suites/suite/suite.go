// Package suite runs the conformance suites that others publish against 'stet serve' as
// a process of its own. The suites come from npm and are run by vitest; a test of a
// package below internal/suites names one, starts a server and reads what it reports.
//
//	func TestMain(m *testing.M) { suite.Main(m) }
//
//	func TestConformance(t *testing.T) { protocol.Run(t, protocol.Embedded(t)) }
//
// `make test` runs a quick cut of each on the embedded store, `make test-suites` all of
// it on every kind of store.
package suite

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/internal/cli"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
)

// asCommand makes the test binary the command line.
const asCommand = "STET_SUITE_COMMAND"

// Main is the TestMain of a package that runs a suite.
func Main(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(realservers.Run(m))
}

// Whole reports whether all of the suites is wanted.
func Whole() bool { return os.Getenv("STET_SUITES") == "1" }

// Suite is a suite that others publish.
type Suite struct {
	// Name is for people.
	Name string
	// Dir has package.json and the tests, relative to the package that runs them.
	Dir string
	// Total is the number of its tests.
	Total int
	// Quick selects the tests of a quick run by their names; empty means all of them.
	Quick string
	// Env is added to the environment of the suite and of its servers.
	Env []string
}

// result is what vitest reports.
type result struct {
	Total   int `json:"numTotalTests"`
	Passed  int `json:"numPassedTests"`
	Failed  int `json:"numFailedTests"`
	Skipped int `json:"numPendingTests"`
	Files   []struct {
		Tests []struct {
			Name     string   `json:"fullName"`
			Status   string   `json:"status"`
			Messages []string `json:"failureMessages"`
		} `json:"assertionResults"`
	} `json:"testResults"`
}

// Run runs the suite against a server.
func (s Suite) Run(t *testing.T, at Server) {
	t.Helper()
	s.install(t)
	report := filepath.Join(t.TempDir(), "report.json")
	args := []string{"node_modules/vitest/vitest.mjs", "run", "--reporter=json", "--outputFile=" + report}
	quick := s.Quick != "" && !Whole()
	if quick {
		args = append(args, "-t", s.Quick)
	}
	cmd := exec.CommandContext(t.Context(), node(t), args...)
	cmd.Dir = s.Dir
	cmd.Env = append(append(os.Environ(), "STET_URL="+at.Address, "STET_TOKEN="+at.Token), s.Env...)
	out, runErr := cmd.CombinedOutput()
	data, err := os.ReadFile(report)
	var got result
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil {
		t.Fatalf("the suite reported nothing: %v, %v\n%s", err, runErr, out)
	}
	t.Logf("%s: %d passed, %d failed, %d skipped of %d", s.Name, got.Passed, got.Failed, got.Skipped, got.Total)
	for _, file := range got.Files {
		for _, test := range file.Tests {
			if test.Status == "failed" {
				t.Errorf("%s: %s", test.Name, strings.Join(test.Messages, "\n"))
			}
		}
	}
	if runErr != nil || got.Total != s.Total || got.Passed < s.Total/2 || !quick && got.Passed != s.Total {
		t.Errorf("%d of %d tests passed, want %d: %v\n%s", got.Passed, got.Total, s.Total, runErr, out)
	}
}

// install brings the modules of the suite.
func (s Suite) install(t *testing.T) {
	t.Helper()
	testenv.Need(t, "node", "suites")
	if out, err := exec.CommandContext(t.Context(), "../../tools/npm.sh", s.Dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// node returns the node that the suites were made for: some need a later one than Debian
// has, so it comes with the modules. Elsewhere it is the installed one.
func node(t *testing.T) string {
	t.Helper()
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	path, err := filepath.Abs("../durablestreams/node_modules/node-" + runtime.GOOS + "-" + arch + "/bin/node")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return "node"
	}
	return path
}

// Server is a running server.
type Server struct{ Address, Token string }

// Embedded serves a new embedded store until the test ends.
func (s Suite) Embedded(t *testing.T) Server {
	t.Helper()
	s.install(t)
	dir := t.TempDir()
	address := s.serve(t, []string{"STET_STORE=" + dir})
	token, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	return Server{address, strings.TrimSpace(string(token))}
}

// Fleet serves a database and a bucket until the test ends, for the token of a tenant.
// Only make test-suites runs such tests.
func (s Suite) Fleet(t *testing.T) Server {
	t.Helper()
	if !Whole() {
		t.Skip("make test-suites runs this")
	}
	s.install(t)
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
	return Server{s.serve(t, []string{"STET_STORE=" + config.Database, "STET_BLOBS=" + config.Blobs}, "--mode", "server"), token}
}

// serve runs 'stet serve' until the test ends, and returns its address.
func (s Suite) serve(t *testing.T, env []string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.Command(self, append([]string{"serve", "--json", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(append(append(os.Environ(), asCommand+"=1", "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "XDG_DATA_HOME="+home), s.Env...), env...)
	cmd.Stderr = os.Stderr
	// Whatever happens to the tests, the server does not outlive them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	var said struct{ Address string }
	if err == nil {
		err = json.Unmarshal([]byte(line), &said)
	}
	if err != nil {
		t.Fatalf("the server did not start: %v", err)
	}
	return strings.TrimSuffix(said.Address, "/")
}
