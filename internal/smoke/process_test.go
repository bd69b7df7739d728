package smoke

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// started starts a command and returns its output, and its input.
func (m *machine) started(cmd *exec.Cmd) (*bufio.Reader, io.WriteCloser) {
	m.t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill() // fails if it has ended
		_ = cmd.Wait()
	})
	return bufio.NewReader(out), in
}

// address reads the line in which a server says where it listens.
func (m *machine) address(out *bufio.Reader) string {
	m.t.Helper()
	line, err := out.ReadString('\n')
	if err != nil {
		m.t.Fatalf("it says %q, %v", line, err)
	}
	var said struct {
		Address string `json:"address"`
	}
	if err := json.Unmarshal([]byte(line), &said); err != nil {
		m.t.Fatalf("%q: %v", line, err)
	}
	return said.Address
}

// interrupt does what Ctrl-C does to a program, which ends.
func (m *machine) interrupt(cmd *exec.Cmd, out *bufio.Reader) {
	m.t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		m.t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		m.t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code is the caller's
}

// needsInterrupts skips a test where one process cannot interrupt another.
func needsInterrupts(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a console interrupts programs here; internal/supervise tries that")
	}
}

func TestProgramServes(t *testing.T) {
	needsInterrupts(t)
	m := newMachine(t)
	cmd := m.command("serve", "--listen", "127.0.0.1:0", "--json")
	out, _ := m.started(cmd)
	address := m.address(out)
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "", "/": "<title>"} {
		answer, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("GET %s: %s, %v, %.200q", path, answer.Status, err, body)
		}
	}
	m.interrupt(cmd, out)
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
	m.stet("fsck", "--read-data")
}

// Ctrl-C ends the command of run and what that has started, and the run is in the log.
func TestProgramIsInterrupted(t *testing.T) {
	needsInterrupts(t)
	m := newMachine(t)
	program := seen(os.Getenv("STET_PROGRAM"))
	args := []string{"--store", filepath.Join(m.dir, "other"), "serve", "--listen", "127.0.0.1:0", "--json"}
	run := append([]string{"run", "--", program}, args...)
	if shell := strings.Fields(os.Getenv("STET_PROGRAM_SHELL")); len(shell) > 0 { // the server is the child of a child
		args[1] = seen(args[1])
		run = append(append([]string{"run", "--"}, shell...), append([]string{program}, args...)...)
	}
	m.write("a.txt", "one")
	cmd := m.command(run...)
	out, _ := m.started(cmd)
	address := m.address(out)
	m.write("made.txt", "two")
	m.interrupt(cmd, out)
	where, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", where.Host); err == nil {
		conn.Close()
		t.Error("the server that the command started still listens")
	}
	if log := m.stet("log", "--json"); !strings.Contains(log, `"side":"after"`) {
		t.Errorf("the log lacks the run:\n%s", log)
	}
	m.stet("rewind", "c1", "--exact", "-y")
	m.want("before the run", map[string]string{"a.txt": "one"})
}

// A run that is killed leaves a store that can be used, and the files.
func TestProgramIsKilled(t *testing.T) {
	m := newMachine(t)
	m.write("a.txt", "one")
	cmd := m.command(inShell("echo begun; echo two > a.txt; read x", "echo begun& echo two> a.txt& set /p x=")...)
	out, in := m.started(cmd)
	if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, "begun") {
		t.Fatalf("it says %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	in.Close() // which ends the command
	_ = cmd.Wait()
	m.stet("checkpoint", "-m", "later")
	m.stet("fsck", "--read-data")
	if log := m.stet("log", "--json"); !strings.Contains(log, "later") {
		t.Errorf("the log lacks the checkpoint:\n%s", log)
	}
}
