package smoke

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine has a home, a store and a workspace of its own.
type machine struct {
	t                *testing.T
	dir, work, store string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if os.Getenv("STET_PROGRAM") == "" {
		t.Skip("STET_PROGRAM names no program")
	}
	dir, err := os.MkdirTemp(os.Getenv("STET_FOLDING"), "stet-smoke-") // "" is where temporary files are
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &machine{t: t, dir: dir, work: filepath.Join(dir, "work"), store: filepath.Join(dir, "store")}
	if err := os.Mkdir(m.work, 0o755); err != nil {
		t.Fatal(err)
	}
	return m
}

// command prepares a verb of the program.
func (m *machine) command(args ...string) *exec.Cmd {
	return m.commandOf(os.Getenv("STET_PROGRAM"), args...)
}

func (m *machine) commandOf(program string, args ...string) *exec.Cmd {
	all := append(strings.Fields(os.Getenv("STET_PROGRAM_WITH")), program)
	all = append(append(all, "--store", seen(m.store)), args...)
	cmd := exec.Command(all[0], all[1:]...)
	cmd.Dir = m.work
	cmd.Env = append(os.Environ(), "STET_COMPACT_BACKGROUND=false", "STET_HOOK_WAIT_MS=600000") // a slow machine must not leave work to the background
	return cmd
}

// seen returns a path as the program sees it: STET_PROGRAM_ROOT is what it has in the place
// of the root directory.
func seen(path string) string {
	root := os.Getenv("STET_PROGRAM_ROOT")
	if root == "" {
		return path
	}
	return root + strings.ReplaceAll(path, "/", `\`)
}

// inShell returns the verb that runs a command of the shell, which is cmd where the script
// for others is not given.
func inShell(sh, windows string) []string {
	if shell := strings.Fields(os.Getenv("STET_PROGRAM_SHELL")); len(shell) > 0 {
		return append(append([]string{"run", "--"}, shell...), windows)
	}
	return []string{"run", "--", "sh", "-c", sh}
}

// stet runs a verb and returns what it printed.
func (m *machine) stet(args ...string) string {
	m.t.Helper()
	return m.output(m.command(args...))
}

// output runs a command and returns what it printed.
func (m *machine) output(cmd *exec.Cmd) string {
	m.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		m.t.Fatalf("%q: %v\n%s%s", cmd.Args, err, &out, &errs)
	}
	return strings.ReplaceAll(out.String(), "\r\n", "\n")
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// want compares all files of the workspace.
func (m *machine) want(when string, want map[string]string) {
	m.t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(m.work, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(m.work, path)
		got[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	if len(got) != len(want) {
		m.t.Errorf("%s: files %q, want %q", when, got, want)
		return
	}
	for name, text := range want {
		if got[name] != text {
			m.t.Errorf("%s: %s is %q, want %q", when, name, got[name], text)
		}
	}
}

func TestProgramRewinds(t *testing.T) {
	m := newMachine(t)
	first := map[string]string{"a.txt": "one", "d/b.txt": "one", "Readme": "one"}
	for name, text := range first {
		m.write(name, text)
	}
	m.stet("checkpoint", "-m", "first")
	m.stet("pin", "start", "@")
	m.write("a.txt", "two")
	m.write("new/c.txt", "two")
	for _, name := range []string{"d/b.txt", "d", "Readme"} {
		if err := os.Remove(filepath.Join(m.work, name)); err != nil {
			t.Fatal(err)
		}
	}
	m.write("README", "two") // another spelling of a name
	second := map[string]string{"a.txt": "two", "new/c.txt": "two", "README": "two"}
	m.stet("checkpoint", "-m", "second")
	m.stet("rewind", "pin:start", "--exact", "-y")
	m.want("after the rewind", first)
	m.stet("undo")
	m.want("after the undo", second)
	m.stet("redo")
	m.want("after the redo", first)
	if log := m.stet("log"); !strings.Contains(log, "first") {
		t.Errorf("the log lacks the first checkpoint:\n%s", log)
	}
	m.stet("fsck", "--read-data")
}

func TestProgramRunsCommands(t *testing.T) {
	m := newMachine(t)
	m.write("a.txt", "one")
	const script = "echo two> made.txt"
	m.stet(inShell(script, script)...)
	got, err := os.ReadFile(filepath.Join(m.work, "made.txt"))
	if err != nil || strings.TrimSpace(string(got)) != "two" {
		t.Fatalf("the command wrote %q, %v", got, err)
	}
	if log := m.stet("log", "--json"); !strings.Contains(log, `"side":"after"`) {
		t.Errorf("the log lacks the run:\n%s", log)
	}
	code := m.command(inShell("exit 7", "exit 7")...)
	if err := code.Run(); code.ProcessState.ExitCode() != 7 {
		t.Errorf("exit code %d, %v; want 7", code.ProcessState.ExitCode(), err)
	}
}

func TestProgramCompletes(t *testing.T) {
	m := newMachine(t)
	if got := m.stet("completion", "powershell"); !strings.Contains(got, "Register-ArgumentCompleter") {
		t.Errorf("completion for PowerShell is %q", got)
	}
	if got := m.stet("doctor", "--quick"); !strings.Contains(got, "workspace") {
		t.Errorf("doctor says %q", got)
	}
}
