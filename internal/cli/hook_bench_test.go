package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// buildProgram builds a program as releases are built.
func buildProgram(b *testing.B, pkg string) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), filepath.Base(pkg))
	const release = "github.com/stet-dev/stet/internal/cli/shortcut.Release=v0.0.0-bench"
	cmd := exec.Command("../tools/build.sh", "-o", program, pkg)
	cmd.Env = append(os.Environ(), "LINK=-buildid= -X "+release)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return program
}

// hookSession is a directory with a session of an agent, and how its events are sent.
type hookSession struct{ home string }

func (h hookSession) payload(event string) string {
	return fmt.Sprintf(`{"session_id":"s","cwd":%q,"prompt_id":"p","hook_event_name":%q,"tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t"}`, h.home, event)
}

// run returns how long a program took.
func (h hookSession) run(b *testing.B, in string, args ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+h.home, "STET_STORE="+filepath.Join(h.home, "store"))
	cmd.Stdin = strings.NewReader(in)
	began := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatal(args, err)
	}
	return time.Since(began)
}

// BenchmarkStart has the best start of the program and of the hook client, each in turn
// with git --version.
func BenchmarkStart(b *testing.B) {
	stet, hook := buildProgram(b, "../../cmd/stet"), buildProgram(b, "../../cmd/stet-hook")
	h := hookSession{b.TempDir()}
	h.run(b, h.payload("SessionStart"), stet, "hook", "claude-code", "SessionStart")
	for _, c := range []struct {
		name, in string
		args     []string
	}{
		{"version", "", []string{stet, "version"}},
		{"stet-hook", h.payload("PreToolUse"), []string{hook, "hook", "claude-code", "PreToolUse"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var ours, git []time.Duration
			for b.Loop() {
				ours = append(ours, h.run(b, c.in, c.args...))
				git = append(git, h.run(b, "", "git", "--version"))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(slices.Min(ours).Seconds()*1000, "best-ms")
			b.ReportMetric(slices.Min(git).Seconds()*1000, "git-best-ms")
		})
	}
}

// BenchmarkHook compares the hook client inside a turn with git --version and with a Go
// program that does nothing, one after the other.
func BenchmarkHook(b *testing.B) {
	stet := buildProgram(b, "../../cmd/stet")
	noop := filepath.Join(b.TempDir(), "noop.go")
	if err := os.WriteFile(noop, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	noop = buildProgram(b, noop)
	h := hookSession{b.TempDir()}
	h.run(b, h.payload("SessionStart"), stet, "hook", "claude-code", "SessionStart")
	var ours, git, nothing []time.Duration
	for b.Loop() {
		ours = append(ours, h.run(b, h.payload("PreToolUse"), stet, "hook", "claude-code", "PreToolUse"))
		git = append(git, h.run(b, "", "git", "--version"))
		nothing = append(nothing, h.run(b, "", noop))
	}
	ms := func(times []time.Duration, share int) float64 {
		slices.Sort(times)
		return times[(len(times)-1)*share/100].Seconds() * 1000
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(ours, 50), "p50-ms")
	b.ReportMetric(ms(ours, 99), "p99-ms")
	b.ReportMetric(ms(git, 50), "git-p50-ms")
	b.ReportMetric(ms(git, 99), "git-p99-ms")
	b.ReportMetric(ms(nothing, 50), "noop-p50-ms")
	b.ReportMetric(ms(ours, 50)/ms(git, 50), "ours/git")
}
