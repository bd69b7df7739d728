package durablestreams

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/internal/cli"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
)

// asCommand makes this binary the command line.
const asCommand = "STET_SUITE_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(realservers.Run(m))
}

// whole reports whether all of the suite is wanted.
func whole() bool { return os.Getenv("STET_SUITES") == "1" }

const (
	// total is the number of tests of the suite, with subscriptions.
	total = 338
	// quick leaves out what sleeps for seconds or tries many random inputs.
	quick = `^(?!.*(TTL Expiration|TTL and Expiry|Property-Based|Chunking)).*$`
	// wait is how long the server lets a live read wait, in milliseconds: a few tests wait
	// for that to end.
	wait = "800"
)

// result is what the suite reports.
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

// run runs the suite against a server.
func run(t *testing.T, address, token string) {
	t.Helper()
	install(t)
	report := filepath.Join(t.TempDir(), "report.json")
	args := []string{"node_modules/vitest/vitest.mjs", "run", "--reporter=json", "--outputFile=" + report}
	if !whole() {
		args = append(args, "-t", quick)
	}
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Env = append(os.Environ(), "STET_URL="+address, "STET_TOKEN="+token, "STET_SERVE_STREAM_WAIT_MS="+wait)
	out, runErr := cmd.CombinedOutput()
	data, err := os.ReadFile(report)
	var got result
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil {
		t.Fatalf("the suite reported nothing: %v, %v\n%s", err, runErr, out)
	}
	t.Logf("Durable Streams: %d passed, %d failed, %d skipped of %d", got.Passed, got.Failed, got.Skipped, got.Total)
	for _, file := range got.Files {
		for _, test := range file.Tests {
			if test.Status == "failed" {
				t.Errorf("%s: %s", test.Name, strings.Join(test.Messages, "\n"))
			}
		}
	}
	if runErr != nil || got.Total != total || got.Passed < total/2 || whole() && got.Passed != total {
		t.Errorf("%+v of %d tests, %v", got.Passed, total, runErr)
	}
}

// install brings the modules of the suite.
func install(t *testing.T) {
	t.Helper()
	testenv.Need(t, "node", "suites")
	if out, err := exec.CommandContext(t.Context(), "../../tools/npm.sh", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// serve runs 'stet serve' until the test ends, and returns its address.
func serve(t *testing.T, env []string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.Command(self, append([]string{"serve", "--json", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(append(os.Environ(), asCommand+"=1", "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home,
		"XDG_DATA_HOME="+home, "STET_SERVE_STREAM_WAIT_MS="+wait, "STET_SERVE_LOCAL_WEBHOOKS=true"), env...)
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

func TestConformance(t *testing.T) {
	install(t)
	dir := t.TempDir()
	address := serve(t, []string{"STET_STORE=" + dir})
	token, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	run(t, address, strings.TrimSpace(string(token)))
}

// The same on a database and a bucket, with the token of a tenant.
func TestConformanceOfAFleet(t *testing.T) {
	if !whole() {
		t.Skip("make test-suites runs this")
	}
	install(t)
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
	env := []string{"STET_STORE=" + config.Database, "STET_BLOBS=" + config.Blobs}
	run(t, serve(t, env, "--mode", "server"), token)
}
