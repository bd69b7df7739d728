//go:build unix

package checkpoint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkCommand makes checkpoints with the program, its start and end included,
// beside git's add and commit, which are programs too.
func BenchmarkCommand(b *testing.B) {
	bin := buildProgram(b)
	for _, files := range benchSizes() {
		for _, changed := range []int{1, 10, 1000} {
			b.Run(fmt.Sprintf("files=%d/changed=%d", files, changed), func(b *testing.B) {
				x := newBench(b, files)
				run := x.program(b, bin)
				checkpoint := func() { run("checkpoint") }
				checkpoint()
				run("compact")
				x.shadowCommit()
				b.ResetTimer()
				for range b.N {
					x.edit(changed)
					timed(&x.ours, checkpoint)
					run("compact") // else what is left behind would slow git down
					timed(&x.theirs, x.shadowCommit)
				}
				x.report(b)
			})
		}
	}
}

// buildProgram builds the program as releases are built: what they leave out is missed at its
// start.
func buildProgram(b *testing.B) string {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "stet")
	build := exec.CommandContext(b.Context(), "../internal/tools/build.sh", "-o", bin, "../cmd/stet")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build the program: %v\n%s", err, out)
	}
	return bin
}

// program returns a function that calls the program with a store of its own and returns
// what it prints.
func (x *bench) program(b *testing.B, bin string) func(args ...string) string {
	b.Helper()
	home, store := b.TempDir(), filepath.Join(b.TempDir(), "store")
	return func(args ...string) string {
		cmd := exec.CommandContext(b.Context(), bin, append([]string{"--store", store, "-C", x.dir, "-q"}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home)
		out, err := cmd.CombinedOutput()
		if err != nil {
			b.Fatalf("stet %s: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
}

// BenchmarkRun runs a command that does nothing, beside a checkpoint that finds nothing
// changed and git's status, as programs.
func BenchmarkRun(b *testing.B) {
	x := newBench(b, 11480)
	run := x.program(b, buildProgram(b))
	run("checkpoint")
	run("compact")
	x.shadowCommit()
	var whole, checkpoint, status usage
	b.ResetTimer()
	for range b.N {
		timed(&whole, func() { run("run", "--", "true") })
		timed(&checkpoint, func() { run("checkpoint") })
		timed(&status, func() { x.shadow("status", "--porcelain") })
	}
	ms := func(u usage) float64 { return float64(u.wall.Microseconds()) / 1000 / float64(b.N) }
	b.ReportMetric(ms(whole), "ms/run")
	b.ReportMetric(ms(checkpoint), "ms/checkpoint")
	b.ReportMetric(ms(status), "ms/status")
	b.ReportMetric(ms(whole)/ms(checkpoint), "run/checkpoint")
	b.ReportMetric(ms(checkpoint)/ms(status), "checkpoint/status")
}

// BenchmarkBack rewinds with the program, beside git's reset and clean.
func BenchmarkBack(b *testing.B) {
	bin := buildProgram(b)
	for _, files := range []int{1000, 20000} {
		b.Run(fmt.Sprintf("files=%d/changed=10", files), func(b *testing.B) {
			x := newBench(b, files)
			run := x.program(b, bin)
			run("checkpoint")
			run("compact")
			b.ResetTimer()
			for range b.N {
				target := run("checkpoint")
				x.shadowCommit()
				paths := x.edit(10)
				run("checkpoint")
				x.shadowCommit()
				timed(&x.ours, func() { run("rewind", target, "--yes") })
				for _, p := range paths { // git has to do the same work
					must(b, os.WriteFile(x.path(p), []byte("changed"), 0o644))
				}
				timed(&x.theirs, func() {
					x.shadow("reset", "-q", "--hard", "HEAD~1")
					x.shadow("clean", "-fdq")
				})
			}
			x.report(b)
		})
	}
}
