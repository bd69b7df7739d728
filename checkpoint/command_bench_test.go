//go:build unix

package checkpoint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkCommand makes checkpoints with the program, its start and end included,
// beside git's add and commit, which are programs too.
func BenchmarkCommand(b *testing.B) {
	bin := filepath.Join(b.TempDir(), "stet")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", bin, "../cmd/stet")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build the program: %v\n%s", err, out)
	}
	for _, files := range benchSizes() {
		for _, changed := range []int{1, 10, 1000} {
			b.Run(fmt.Sprintf("files=%d/changed=%d", files, changed), func(b *testing.B) {
				x := newBench(b, files)
				home, store := b.TempDir(), filepath.Join(b.TempDir(), "store")
				run := func(verb string) {
					cmd := exec.CommandContext(b.Context(), bin, "--store", store, "-C", x.dir, "-q", verb)
					cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home)
					if out, err := cmd.CombinedOutput(); err != nil {
						b.Fatalf("stet %s: %v\n%s", verb, err, out)
					}
				}
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
