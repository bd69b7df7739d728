package checkpoint

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/workspace"
)

// killedIn names the variable that makes this test the process that is killed.
const killedIn = "STET_TEST_KILLED_IN"

// A process that goes to and fro between two trees is killed at any time, over
// the store and the file system that users have. The process that opens the workspace
// next finds exactly one of the two trees, the one that the store says.
func TestKilledProcess(t *testing.T) {
	if dir := os.Getenv(killedIn); dir != "" {
		toAndFro(t, dir)
		return
	}
	dir := t.TempDir()
	trees := make([]map[string]string, 2)
	targets := make([]string, 2)
	onDisk(t, dir, func(f *fixture) {
		f.write("keep", "kept\n", ".gitignore", "out/\n", "out/ignored", "ignored\n")
		for i := range 40 {
			f.write(fmt.Sprintf("d%d/f%d", i%4, i), strings.Repeat(fmt.Sprintf("old %d\n", i), 20*i))
		}
		if testenv.Links(t) {
			must(t, os.Symlink("keep", f.path("link")))
		}
		targets[0], trees[0] = f.save(Request{Conversation: "c", Side: Before}).ID, testenv.Snapshot(t, f.dir)
		for i := range 20 {
			f.write(fmt.Sprintf("d%d/f%d", i%4, i), fmt.Sprintf("new %d\n", i), fmt.Sprintf("new/%d/x", i), "made\n")
		}
		must(t, os.RemoveAll(f.path("link")))
		f.remove("d3")
		f.write("link/now/a", "directory\n")
		must(t, os.Chmod(f.path("d1/f1"), 0o700))
		targets[1], trees[1] = f.save(Request{Conversation: "c", Side: After}).ID, testenv.Snapshot(t, f.dir)
	})
	rnd := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	var seen [2]int
	recovered := 0
	for n := range testenv.Scale(30, 2000) {
		killChild(t, dir, targets, time.Duration(rnd.IntN(100_000))*time.Microsecond)
		onDisk(t, dir, func(f *fixture) {
			if f.w.Recovered() != nil {
				recovered++
			}
			seen[isOneOf(t, n, f, trees)]++
		})
	}
	t.Logf("found the old tree %d times, the new one %d times; finished or took back %d rewinds", seen[0], seen[1], recovered)
	onDisk(t, dir, func(f *fixture) { // and it still works
		for i := range targets {
			f.rewind(RewindRequest{To: targets[i]})
			f.expect(trees[i])
		}
	})
}

// onDisk opens the workspace as a process of its own would.
func onDisk(t *testing.T, dir string, fn func(*fixture)) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "store"), nil)
	must(t, err)
	f := &fixture{t: t, dir: filepath.Join(dir, "tree"), blobs: blob.Checked(db.Blobs()), rows: db.Rows()}
	f.opts.IndexDir = filepath.Join(dir, "index")
	must(t, os.MkdirAll(f.dir, 0o755))
	must(t, os.MkdirAll(f.opts.IndexDir, 0o755))
	f.reopen()
	fn(f)
	must(t, f.w.Close())
	must(t, db.Close())
}

// toAndFro is what the killed process does.
func toAndFro(t *testing.T, dir string) {
	onDisk(t, dir, func(f *fixture) {
		targets := strings.Fields(os.Getenv(killedIn + "_TO"))
		i := 0
		if _, err := os.Lstat(f.path("d3")); err == nil { // only the old tree has it
			i = 1
		}
		fmt.Println("ready")
		for ; ; i++ {
			f.rewind(RewindRequest{To: targets[i%2]})
		}
	})
}

// killChild starts the process and kills it some time after it is ready.
func killChild(t *testing.T, dir string, targets []string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledProcess$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), killedIn+"="+dir, killedIn+"_TO="+strings.Join(targets, " "))
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	ready := lines.Scan() && lines.Text() == "ready"
	time.Sleep(after)
	must(t, cmd.Process.Kill())
	if !ready {
		t.Errorf("the process did not get ready: %q", lines.Text())
	}
	for lines.Scan() { // it should not have come to an end by itself
		t.Errorf("the process says %q", lines.Text())
	}
	must(t, lines.Err())
	// On Windows a process that is killed has an exit code.
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() && runtime.GOOS != "windows" {
		t.Fatalf("the process ended by itself: %v", err)
	}
}

// isOneOf finds out which tree is there, and that the store knows it.
func isOneOf(t *testing.T, n int, f *fixture, trees []map[string]string) int {
	t.Helper()
	now := testenv.Snapshot(t, f.dir)
	for name := range now {
		if strings.HasPrefix(name, workspace.StagePrefix) {
			t.Errorf("kill %d left %s", n, name)
		}
	}
	for i := range trees {
		if len(testenv.Differ(now, trees[i])) > 0 {
			continue
		}
		st, err := f.w.load(t.Context())
		must(t, err)
		fresh, err := workspace.Scan(t.Context(), f.blobs, f.dir, nil, nil)
		must(t, err)
		if fresh.Tree != st.tip.Tree {
			t.Errorf("kill %d: the latest checkpoint has another tree than the directory", n)
		}
		return i
	}
	t.Fatalf("kill %d left a mixed tree:\n%s\nand\n%s", n,
		strings.Join(testenv.Differ(now, trees[0]), "\n"), strings.Join(testenv.Differ(now, trees[1]), "\n"))
	return 0
}
