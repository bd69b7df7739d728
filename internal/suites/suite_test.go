package suites

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

	"github.com/stet-dev/stet/internal/cli"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
)

// asCommand makes the test binary the command line.
const asCommand = "STET_SUITE_COMMAND"

// run is TestMain.
func run(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(realservers.Run(m))
}

// whole reports whether all of each suite is wanted.
func whole() bool { return os.Getenv("STET_SUITES") == "1" }

// onlyWhole skips what a quick run leaves out.
func onlyWhole(t *testing.T) {
	t.Helper()
	if !whole() {
		t.Skip("make test-suites runs this")
	}
}

// suite is a suite that others publish.
type suite struct {
	// name is for people.
	name string
	// dir has package.json and the tests.
	dir string
	// total is the number of its tests.
	total int
	// quick selects the tests of a quick run by their names; empty means all of them.
	quick string
	// env is added to the environment of the suite and of its servers.
	env []string
	// python is set for tests in Python, which need no modules.
	python bool
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

// test runs the suite against a server.
func (s suite) test(t *testing.T, at server) {
	t.Helper()
	s.install(t)
	report := filepath.Join(t.TempDir(), "report.json")
	args := []string{"node_modules/vitest/vitest.mjs", "run", "--reporter=json", "--outputFile=" + report}
	cut := s.quick != "" && !whole()
	if cut {
		args = append(args, "-t", s.quick)
	}
	cmd := exec.CommandContext(t.Context(), node(t), args...)
	cmd.Dir = s.dir
	cmd.Env = append(append(os.Environ(), "STET_URL="+at.address, "STET_TOKEN="+at.token), s.env...)
	out, runErr := cmd.CombinedOutput()
	data, err := os.ReadFile(report)
	var got result
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil {
		t.Fatalf("the suite reported nothing: %v, %v\n%s", err, runErr, out)
	}
	t.Logf("%s: %d passed, %d failed, %d skipped of %d", s.name, got.Passed, got.Failed, got.Skipped, got.Total)
	for _, file := range got.Files {
		for _, test := range file.Tests {
			if test.Status == "failed" {
				t.Errorf("%s: %s", test.Name, strings.Join(test.Messages, "\n"))
			}
		}
	}
	if runErr != nil || got.Total != s.total || got.Passed < s.total/2 || !cut && got.Passed != s.total {
		t.Errorf("%d of %d tests passed, want %d: %v\n%s", got.Passed, got.Total, s.total, runErr, out)
	}
}

// install brings the modules of the suite.
func (s suite) install(t *testing.T) {
	t.Helper()
	if s.python {
		testenv.Need(t, "python")
		return
	}
	testenv.Need(t, "node", "suites")
	if out, err := exec.CommandContext(t.Context(), "../tools/npm.sh", s.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// node returns the node that the suites were made for: some need a later one than Debian
// has, so it comes with the modules. Elsewhere it is the installed one.
func node(t *testing.T) string {
	t.Helper()
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	path, err := filepath.Abs("durablestreams/node_modules/node-" + runtime.GOOS + "-" + arch + "/bin/node")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return "node"
	}
	return path
}

// server is a running server.
type server struct{ address, token string }

// embedded serves a new embedded store until the test ends.
func (s suite) embedded(t *testing.T) server {
	t.Helper()
	s.install(t)
	in := embedded(t)
	return server{s.serve(t, in.env), in.token(t)}
}

// fleet serves a database and a bucket until the test ends, for the token of a tenant.
// Only make test-suites runs such tests.
func (s suite) fleet(t *testing.T) server {
	t.Helper()
	onlyWhole(t)
	s.install(t)
	in := shared(t)
	return server{s.serve(t, in.env, in.args...), in.token(t)}
}

// serve runs 'stet serve' until the test ends, and returns its address.
func (s suite) serve(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd, address := s.start(t, env, args...)
	t.Cleanup(func() { stop(t, cmd) })
	return address
}

// stop asks a server to end, and waits until it has.
func stop(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// start runs 'stet serve' and returns its address. The caller ends it.
func (s suite) start(t testing.TB, env []string, args ...string) (*exec.Cmd, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.Command(self, append([]string{"serve", "--json", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "XDG_DATA_HOME="+home,
		// A process that compresses after the server has ended would write while its directory is removed.
		"STET_COMPACT_BACKGROUND=false")
	cmd.Env = append(append(cmd.Env, s.env...), env...)
	cmd.Stderr = os.Stderr
	testenv.EndWithTests(cmd, syscall.SIGKILL)
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // if the test failed before its end
	line, err := bufio.NewReader(stdout).ReadString('\n')
	var said struct{ Address string }
	if err == nil {
		err = json.Unmarshal([]byte(line), &said)
	}
	if err != nil {
		t.Fatalf("the server did not start: %v", err)
	}
	return cmd, strings.TrimSuffix(said.Address, "/")
}
