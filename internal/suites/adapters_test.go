package suites

import (
	"bufio"
	"bytes"
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
	// cut has the files of a quick run and few their tests; without files it is the whole.
	cut []string
	few int
}

// claude has the contracts of the SDK for its session stores, what the SDK's functions
// give with its own store, and tests of the package.
var claude = adapter{
	suite: suite{name: "Claude Agent SDK", dir: "../../clients/claude-agent-sdk", total: 13 + 16},
	calls: 5000, cut: []string{"conformance.test.ts", "sdk.test.ts"}, few: 13 + 3,
}

func TestClaudeAgentSDK(t *testing.T) {
	if !whole() {
		testenv.OnlyFull(t)
	}
	claude.test(t, claude.embedded(t))
}

func TestClaudeAgentSDKOnAFleet(t *testing.T) { claude.test(t, claude.fleet(t)) }

func TestClaudeAgentSDKOfAKilledServer(t *testing.T) {
	onlyWhole(t)
	claude.testKilled(t)
}

// openai makes random calls of the SDK's session in memory and of the adapter, and has
// tests of the package.
var openai = adapter{suite: suite{name: "OpenAI Agents", dir: "../../clients/openai-agents", total: 1 + 14}, calls: 10_000}

func TestOpenAIAgents(t *testing.T) {
	needFrameworks(t)
	openai.test(t, openai.embedded(t))
}

func TestOpenAIAgentsOnAFleet(t *testing.T) {
	needFrameworks(t)
	openai.test(t, openai.fleet(t))
}

func TestOpenAIAgentsOfAKilledServer(t *testing.T) {
	onlyWhole(t)
	needFrameworks(t)
	openai.testKilled(t)
}

// cursor makes random calls of the SDK's own store and of the adapter, and has tests of
// the package.
var cursor = adapter{suite: suite{name: "Cursor SDK", dir: "../../clients/cursor-sdk", total: 1 + 8}, calls: 10_000}

func TestCursorSDK(t *testing.T) {
	needFrameworks(t)
	cursor.test(t, cursor.embedded(t))
}

func TestCursorSDKOnAFleet(t *testing.T) {
	needFrameworks(t)
	cursor.test(t, cursor.fleet(t))
}

func TestCursorSDKOfAKilledServer(t *testing.T) {
	onlyWhole(t)
	needFrameworks(t)
	cursor.testKilled(t)
}

// needFrameworks skips make test, which does not download those modules. They need the Node
// of the streams.
func needFrameworks(t *testing.T) {
	t.Helper()
	if !whole() {
		testenv.OnlyFull(t)
	}
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
	want := a.total
	if !whole() && a.cut != nil {
		sources, want = a.cut, a.few
	}
	args := []string{"--test", "--test-reporter=tap"}
	for _, source := range sources {
		args = append(args, "dist/test/"+strings.TrimSuffix(filepath.Base(source), ".ts")+".js")
	}
	cmd := a.node(t, at, args...)
	if whole() {
		cmd.Env = append(cmd.Env, "STET_CALLS="+strconv.Itoa(a.calls))
	}
	out, err := cmd.CombinedOutput()
	passed, failed, skipped, total := count(out, "pass"), count(out, "fail"), count(out, "skipped"), count(out, "tests")
	t.Logf("%s: %d passed, %d failed, %d skipped of %d%s", a.name, passed, failed, skipped, total, said(out))
	if err != nil || passed != want || total != want {
		t.Errorf("%d of %d tests passed, want %d: %v\n%s", passed, total, want, err, out)
	}
}

// testKilled kills a server while the package writes to it. All that returned must be there,
// once, when the store is served again.
func (a adapter) testKilled(t *testing.T) {
	t.Helper()
	a.install(t)
	build(t, a.dir)
	in := embedded(t)
	first := in.start(t)
	load := a.node(t, first.server, "dist/test/kill.js", "load")
	load.Stderr = os.Stderr
	out, err := load.StdoutPipe()
	if err == nil {
		err = load.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	const before = 60
	var returned bytes.Buffer
	n := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		returned.WriteString(lines.Text() + "\n")
		if n++; n == before {
			first.kill()
		}
	}
	if err := load.Wait(); err != nil || n < before {
		t.Fatalf("the load ended after %d calls: %v", n, err)
	}
	check := a.node(t, server{a.serve(t, in.env), in.token(t)}, "dist/test/kill.js", "check")
	check.Stdin = &returned
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	t.Logf("%s: %d calls that returned are there, once", a.name, n)
}

// node returns a command that runs a program of the package with a server.
func (a adapter) node(t *testing.T, at server, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), node(t), args...)
	cmd.Dir = a.dir
	cmd.Env = append(os.Environ(), "STET_URL="+at.address, "STET_TOKEN="+at.token)
	return cmd
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
func build(t testing.TB, dir string) {
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
