package langgraph

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/internal/suites/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// savers has the tests of the specification and those for delta channels.
var savers = suite.Suite{Name: "LangGraph", Dir: "../../../clients/langgraph", Total: 718 + 8}

func TestConformance(t *testing.T) {
	at := savers.Embedded(t)
	build(t)
	savers.Run(t, at)
}

func TestConformanceOfAFleet(t *testing.T) {
	at := savers.Fleet(t)
	build(t)
	savers.Run(t, at)
}

// build compiles the client that the saver uses, and the saver, which checks its types.
func build(t *testing.T) {
	t.Helper()
	link := savers.Dir + "/node_modules/@stet-dev/client"
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../../typescript", link); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	for _, dir := range []string{"../../../clients/typescript", savers.Dir} {
		if out, err := exec.CommandContext(t.Context(), "../../tools/tsc.sh", dir).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", dir, err, out)
		}
	}
}
