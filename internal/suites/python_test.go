package suites

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pythonSavers has the contracts of LangGraph's conformance suite for Python, which cannot
// be installed from Debian's packages: its tests are written again, one for each contract.
var pythonSavers = suite{name: "LangGraph in Python", dir: "../../clients/python", total: 89, python: true}

func TestLangGraphPython(t *testing.T) {
	// Only the server of this machine may change its directories.
	pythonSavers.testPython(t, pythonSavers.embedded(t), "STET_TEST_WORKSPACE="+t.TempDir())
}

func TestLangGraphPythonOnAFleet(t *testing.T) {
	pythonSavers.testPython(t, pythonSavers.fleet(t))
}

// pythonResult is what tests/run.py reports.
type pythonResult struct {
	Contracts, Tests struct{ Passed, Failed, Skipped int }
	Failures, Slow   []string
}

// testPython runs all tests of the client and the saver against a server.
func (s suite) testPython(t *testing.T, at server, env ...string) {
	t.Helper()
	watch(t, s.dir)
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.CommandContext(t.Context(), "python3", "-B", "-W", "error", "tests/run.py", report)
	cmd.Dir = s.dir
	cmd.Env = append(append(os.Environ(), "STET_URL="+at.address, "STET_TOKEN="+at.token), env...)
	out, runErr := cmd.CombinedOutput()
	data, err := os.ReadFile(report)
	var got pythonResult
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil {
		t.Fatalf("the tests reported nothing: %v, %v\n%s", err, runErr, out)
	}
	t.Logf("%s: %d contracts passed, %d failed, %d skipped of %d; %d other tests passed, %d failed, %d skipped", s.name,
		got.Contracts.Passed, got.Contracts.Failed, got.Contracts.Skipped, s.total,
		got.Tests.Passed, got.Tests.Failed, got.Tests.Skipped)
	for _, slow := range got.Slow {
		t.Log(slow)
	}
	if len(got.Failures) > 0 {
		t.Error(strings.Join(got.Failures, "\n"))
	}
	if runErr != nil || got.Contracts.Passed != s.total || got.Tests.Passed == 0 {
		t.Errorf("%d of %d contracts passed: %v\n%s", got.Contracts.Passed, s.total, runErr, out)
	}
}

// watch looks at all files below a directory: Go then knows that a result depends on them.
func watch(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
