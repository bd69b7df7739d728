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
	program := filepath.Join(b.TempDir(), "program")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return program
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
	home := b.TempDir()
	env := append(os.Environ(), "HOME="+home, "STET_STORE="+filepath.Join(home, "store"))
	payload := func(event string) string {
		return fmt.Sprintf(`{"session_id":"s","cwd":%q,"prompt_id":"p","hook_event_name":%q,"tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t"}`, home, event)
	}
	run := func(in string, args ...string) time.Duration {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env, cmd.Stdin = env, strings.NewReader(in)
		began := time.Now()
		if err := cmd.Run(); err != nil {
			b.Fatal(args, err)
		}
		return time.Since(began)
	}
	run(payload("SessionStart"), stet, "hook", "claude-code", "SessionStart")
	var ours, git, nothing []time.Duration
	for b.Loop() {
		ours = append(ours, run(payload("PreToolUse"), stet, "hook", "claude-code", "PreToolUse"))
		git = append(git, run("", "git", "--version"))
		nothing = append(nothing, run("", noop))
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
