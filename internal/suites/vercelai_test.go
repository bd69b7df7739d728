package suites

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// TestVercelAI drives the example chat of the Vercel AI SDK in a browser. In the middle of
// an answer the page is reloaded and the servers are killed.
func TestVercelAI(t *testing.T) {
	needFrameworks(t)
	testenv.Need(t, "browser", "page")
	const dir = "../../examples/vercel-ai"
	for _, modules := range []string{dir, "../../web/app"} {
		if out, err := exec.CommandContext(t.Context(), "../tools/npm.sh", modules).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node(t), "--test", "--test-reporter=tap", "test/reload.test.mjs")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asCommand+"=1", "STET_BIN="+self, "STET_CHROMIUM="+testenv.Browser(t), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	passed, failed, total := count(out, "pass"), count(out, "fail"), count(out, "tests")
	t.Logf("Vercel AI SDK: %d passed, %d failed of %d", passed, failed, total)
	if err != nil || passed != 8 || total != 8 {
		t.Errorf("%d of %d tests passed, want 8: %v\n%s", passed, total, err, out)
	}
}
