package suites

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A server that is killed while the saver puts checkpoints has every one that it
// acknowledged, with its writes, once; what was under way can be repeated.
func TestLangGraphPythonSurvivesKills(t *testing.T) {
	s := pythonSavers
	s.install(t)
	watch(t, s.dir)
	kills := 3
	if whole() {
		kills = 20
	}
	store := []string{"STET_STORE=" + t.TempDir()}
	node, address := s.start(t, store)
	load := newLoad(t, s.dir, address, filepath.Join(strings.TrimPrefix(store[0], "STET_STORE="), "token"))
	acked := 0
	for range kills {
		acked += load.read("ack", 40)
		if err := node.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = node.Wait()                          // it was killed
		acked += load.readAlso("lost", 4, "ack") // each worker
		node, address = s.start(t, store)
		load.tell("on " + address)
		load.expect(acked)
	}
	acked += load.read("ack", 40)
	load.tell("stop")
	load.end(acked)
	stop(t, node)
	t.Logf("%d kills: %d acknowledged checkpoints are there, once", kills, load.there)
}

// load is tests/load.py.
type load struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.Writer
	out   *bufio.Scanner
	there int
}

func newLoad(t *testing.T, dir, address, tokenFile string) *load {
	t.Helper()
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "python3", "-B", "tests/load.py")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "STET_URL="+address, "STET_TOKEN="+strings.TrimSpace(string(token)))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &load{t: t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
}

// line returns the next line.
func (l *load) line() string {
	l.t.Helper()
	if !l.out.Scan() {
		l.t.Fatalf("the load ended: %v, %v", l.out.Err(), l.cmd.Wait())
	}
	return l.out.Text()
}

// read waits for a number of lines of a kind and returns it.
func (l *load) read(kind string, count int) int {
	l.t.Helper()
	for range count {
		if got := l.line(); got != kind {
			l.t.Fatalf("the load said %q, want %q", got, kind)
		}
	}
	return count
}

// readAlso waits for a number of lines of a kind, and returns how many of another kind came
// between them.
func (l *load) readAlso(kind string, count int, other string) int {
	l.t.Helper()
	others := 0
	for count > 0 {
		switch got := l.line(); got {
		case kind:
			count--
		case other:
			others++
		default:
			l.t.Fatalf("the load said %q, want %q or %q", got, kind, other)
		}
	}
	return others
}

func (l *load) tell(line string) {
	l.t.Helper()
	if _, err := fmt.Fprintln(l.in, line); err != nil {
		l.t.Fatal(err)
	}
}

// expect waits until the load has found everything that was acknowledged.
func (l *load) expect(acked int) {
	l.t.Helper()
	if got, want := l.line(), fmt.Sprintf("there %d", acked); got != want {
		l.t.Fatalf("the load said %q, want %q", got, want)
	}
	l.there = acked
}

// end waits for the end of the load, which may acknowledge a few more.
func (l *load) end(acked int) {
	l.t.Helper()
	for line := l.line(); ; line = l.line() {
		if line != "ack" {
			if want := fmt.Sprintf("there %d", acked); line != want {
				l.t.Fatalf("the load said %q, want %q", line, want)
			}
			break
		}
		acked++
	}
	if err := l.cmd.Wait(); err != nil {
		l.t.Fatal(err)
	}
	l.there = acked
}
