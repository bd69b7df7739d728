package suites

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// adapter is a package of clients/ that keeps the state of a framework in a server. Its
// own tests compare it with the framework's store; Node runs them.
type adapter struct {
	suite
	// calls is the number of random calls in a whole run.
	calls int
}

// claude has the contracts of the SDK for its session stores, what the SDK's functions
// give with its own store, and tests of the package.
var claude = adapter{suite{name: "Claude Agent SDK", dir: "../../clients/claude-agent-sdk", total: 13 + 14}, 5000}

func TestClaudeAgentSDK(t *testing.T) { claude.test(t, claude.embedded(t)) }

func TestClaudeAgentSDKOnAFleet(t *testing.T) { claude.test(t, claude.fleet(t)) }

// cursor makes random calls of the SDK's own store and of the adapter, and has tests of
// the package.
var cursor = adapter{suite{name: "Cursor SDK", dir: "../../clients/cursor-sdk", total: 1 + 8}, 10_000}

func TestCursorSDK(t *testing.T) {
	needFrameworks(t)
	cursor.test(t, cursor.embedded(t))
}

func TestCursorSDKOnAFleet(t *testing.T) {
	needFrameworks(t)
	cursor.test(t, cursor.fleet(t))
}

// needFrameworks skips a quick run: only make test-suites downloads those modules. They
// need the Node of the streams.
func needFrameworks(t *testing.T) {
	t.Helper()
	onlyWhole(t)
	testenv.Need(t, "frameworks")
	streams.install(t)
}

// test builds the package and runs its tests against a server.
func (a adapter) test(t *testing.T, at server) {
	t.Helper()
	build(t, a.dir)
	// By the sources, since the output may have tests that are gone.
	sources, err := filepath.Glob(a.dir + "/test/*.test.ts")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--test", "--test-reporter=tap"}
	for _, source := range sources {
		args = append(args, "dist/test/"+strings.TrimSuffix(filepath.Base(source), ".ts")+".js")
	}
	cmd := exec.CommandContext(t.Context(), node(t), args...)
	cmd.Dir = a.dir
	cmd.Env = append(os.Environ(), "STET_URL="+at.address, "STET_TOKEN="+at.token)
	if whole() {
		cmd.Env = append(cmd.Env, "STET_CALLS="+strconv.Itoa(a.calls))
	}
	out, err := cmd.CombinedOutput()
	passed, failed, skipped, total := count(out, "pass"), count(out, "fail"), count(out, "skipped"), count(out, "tests")
	t.Logf("%s: %d passed, %d failed, %d skipped of %d%s", a.name, passed, failed, skipped, total, said(out))
	if err != nil || passed != a.total || total != a.total {
		t.Errorf("%d of %d tests passed, want %d: %v\n%s", passed, total, a.total, err, out)
	}
}

// count returns a number of the summary that Node prints, or -1 if there is none.
func count(out []byte, name string) int {
	m := regexp.MustCompile(`(?m)^# ` + name + ` (\d+)$`).FindSubmatch(out)
	if m == nil {
		return -1
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return -1
	}
	return n
}

// said returns the lines that tests print about their random calls.
func said(out []byte) string {
	var lines string
	for _, line := range regexp.MustCompile(`(?m)^# (seed .*)$`).FindAllSubmatch(out, -1) {
		lines += "\n" + string(line[1])
	}
	return lines
}

// build compiles the client for TypeScript, and a package that uses it, which checks the
// types of both.
func build(t *testing.T, dir string) {
	t.Helper()
	link := dir + "/node_modules/@stet-dev/client"
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../../typescript", link); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	for _, dir := range []string{"../../clients/typescript", dir} {
		if built[dir] {
			continue
		}
		if out, err := exec.CommandContext(t.Context(), "../tools/tsc.sh", dir).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", dir, err, out)
		}
		built[dir] = true
	}
}

// built has the packages that were compiled in this run.
var built = make(map[string]bool)
