package realagents

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/scriptedmodel"
)

// limit is the time that a run of an agent may take on a busy machine.
const limit = 2 * time.Minute

// Box is a home, a workspace and a model for one agent.
type Box struct {
	tb    testing.TB
	agent Agent
	bin   string // of the agent's programs

	// Home and Workspace are directories of the box.
	Home, Workspace string
	// Others is the file to which the hooks of others write.
	Others string
	// StetPath is the program that is connected.
	StetPath string
	// URL is where the model is asked.
	URL   string
	Model *scriptedmodel.Model
	// Store is given to stet with --store if it is not "".
	Store string
}

// NewBox returns a box in which the agent was never started. The test is skipped if the
// agent is not installed.
func NewBox(tb testing.TB, agent Agent) *Box {
	tb.Helper()
	b := &Box{tb: tb, agent: agent, bin: agent.bin(tb)}
	dir, err := filepath.EvalSymlinks(b.dir())
	b.check(err)
	b.Home, b.Workspace = filepath.Join(dir, "home"), filepath.Join(dir, "work")
	b.Others, b.StetPath = filepath.Join(dir, "others.txt"), filepath.Join(dir, "bin", "stet")
	b.Model = scriptedmodel.New(b.Workspace)
	server := httptest.NewServer(b.Model)
	tb.Cleanup(server.Close)
	b.URL = server.URL
	for name, text := range agent.files(b) {
		b.Write(filepath.Join(b.Home, filepath.FromSlash(name)), text)
	}
	b.check(os.MkdirAll(filepath.Dir(b.StetPath), 0o755))
	b.check(os.Link(stetProgram(tb), b.StetPath))
	if agent.Name == "opencode" {
		b.check(b.openCodePlugin())
	}
	b.Write(filepath.Join(b.Workspace, "README.md"), "sample\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "begin"}} {
		out, err := b.command("git", args...).CombinedOutput()
		if err != nil {
			tb.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}
	return b
}

// dir returns the directory of a box: below the one that STET_AGENTS_KEEP names, for a
// look at what an agent left, or one that goes with the test.
func (b *Box) dir() string {
	keep := os.Getenv("STET_AGENTS_KEEP")
	if keep == "" {
		return b.tb.TempDir()
	}
	dir := filepath.Join(keep, strings.ReplaceAll(b.tb.Name(), "/", "-"))
	b.check(os.RemoveAll(dir))
	b.check(os.MkdirAll(dir, 0o755))
	return dir
}

// openCodePlugin gives OpenCode the packages that it would otherwise try to install at
// each start.
func (b *Box) openCodePlugin() error {
	from, to := filepath.Join(filepath.Dir(filepath.Dir(b.bin)), "plugin"), filepath.Join(b.Home, ".config", "opencode")
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case d.IsDir():
			return os.MkdirAll(name, 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			return errors.Join(err, os.Symlink(target, name))
		}
		data, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(name, data, 0o644))
	})
}

// In returns the box for a part of its test: failures are those of the part.
func (b *Box) In(tb testing.TB) *Box {
	part := *b
	part.tb = tb
	return &part
}

func (b *Box) check(err error) {
	b.tb.Helper()
	if err != nil {
		b.tb.Fatal(err)
	}
}

// Write writes a file and makes its directory.
func (b *Box) Write(path, text string) {
	b.tb.Helper()
	b.check(os.MkdirAll(filepath.Dir(path), 0o755))
	b.check(os.WriteFile(path, []byte(text), 0o644))
}

// environment is all that programs of the box see.
func (b *Box) environment() []string {
	path := filepath.Dir(b.StetPath) + ":" + b.bin + ":" + os.Getenv("PATH")
	env := []string{"PATH=" + path, "HOME=" + b.Home, "TERM=dumb", "LANG=C.UTF-8", "SHELL=/bin/bash", "TMPDIR=" + os.TempDir(),
		"STET_COMPACT_BACKGROUND=false"} // nothing runs when the box goes
	if !Isolated() {
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
			env = append(env, name+"=http://127.0.0.1:9", strings.ToLower(name)+"=http://127.0.0.1:9")
		}
		env = append(env, "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost")
	}
	return append(env, b.agent.env(b)...)
}

// command returns a command in the workspace.
func (b *Box) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = b.Workspace, b.environment()
	return cmd
}

// Stet runs stet in the workspace and returns what it prints. A failure ends the test.
func (b *Box) Stet(args ...string) string {
	b.tb.Helper()
	if b.Store != "" {
		args = append([]string{"--store", b.Store}, args...)
	}
	var out, errs bytes.Buffer
	cmd := b.command(b.StetPath, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		b.tb.Fatalf("stet %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

// Prompt runs the agent with a prompt, in a session that resume continues or in a new
// one, until it has answered. A failure ends the test.
func (b *Box) Prompt(resume []string, prompt string) string {
	b.tb.Helper()
	run := b.Start(resume, prompt)
	out, err := run.Wait()
	if err != nil {
		b.tb.Fatalf("%s: %v\n%s", b.agent.Name, err, out)
	}
	b.awaitHooks()
	return out
}

// awaitHooks waits until no hook of the box runs: OpenCode does not wait for its hooks
// when it ends, and words that are recorded late are copied behind the agent.
func (b *Box) awaitHooks() {
	b.tb.Helper()
	end := time.Now().Add(limit)
	for b.hookRuns() {
		if time.Now().After(end) {
			b.tb.Fatalf("a hook runs for more than %v", limit)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// hookRuns reports whether a process is a hook of the box. It is false where processes
// cannot be listed.
func (b *Box) hookRuns() bool {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		line, err := os.ReadFile(name)
		args := strings.Split(string(line), "\x00")
		if err == nil && args[0] == b.StetPath && slices.Contains(args, "hook") {
			return true
		}
	}
	return false
}

// Do runs a program of the agent that is not a prompt. A failure ends the test.
func (b *Box) Do(program string, args ...string) {
	b.tb.Helper()
	out, err := b.start(b.command(filepath.Join(b.bin, filepath.Base(program)), args...)).Wait()
	if err != nil {
		b.tb.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// Command returns a command with a program of the agent.
func (b *Box) Command(program string, args ...string) *exec.Cmd {
	return b.command(filepath.Join(b.bin, program), args...)
}

// Run is an agent at work.
type Run struct {
	Cmd  *exec.Cmd
	out  *bytes.Buffer
	done chan error
}

// Start starts the agent with a prompt, as the leader of a process group.
func (b *Box) Start(resume []string, prompt string) *Run {
	b.tb.Helper()
	return b.start(b.command(filepath.Join(b.bin, b.agent.program), b.agent.args(resume, prompt)...))
}

func (b *Box) start(cmd *exec.Cmd) *Run {
	b.tb.Helper()
	r := &Run{Cmd: cmd, out: new(bytes.Buffer), done: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = r.out, r.out
	cmd.WaitDelay = 10 * time.Second // what the agent leaves behind may hold the output
	ownGroup(cmd)
	b.check(cmd.Start())
	b.tb.Cleanup(func() { killGroup(cmd) })
	go func() { r.done <- cmd.Wait() }()
	return r
}

// Wait waits until the agent has ended and returns what it printed.
func (r *Run) Wait() (string, error) {
	select {
	case err := <-r.done:
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil
		}
		return r.out.String(), err
	case <-time.After(limit):
		killGroup(r.Cmd)
		return "", context.DeadlineExceeded
	}
}

// Until waits until a condition is met, while the agent runs.
func (r *Run) Until(tb testing.TB, what string, met func() bool) {
	tb.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(limit)
	for !met() {
		select {
		case err := <-r.done:
			tb.Fatalf("the agent ended before %s: %v\n%s", what, err, r.out.String())
		case <-end:
			tb.Fatalf("no %s within %v", what, limit)
		case <-tick.C:
		}
	}
}

// Tree returns the files of the workspace without those of Git, as "name: content".
func (b *Box) Tree() []string {
	b.tb.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(b.Workspace)
	b.check(err)
	for _, e := range entries {
		if e.IsDir() {
			if e.Name() != ".git" {
				files[e.Name()+"/"] = ""
			}
			continue
		}
		data, err := os.ReadFile(filepath.Join(b.Workspace, e.Name()))
		b.check(err)
		files[e.Name()] = strings.TrimSpace(string(data))
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, name+": "+files[name])
	}
	return out
}
