package linediff

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkHugeTexts compares two texts of 500,000 lines without much in common, beside git's
// diff of the same, which is a program.
func BenchmarkHugeTexts(b *testing.B) {
	const lines = 500_000
	for _, words := range []int{40, 2 * lines} {
		b.Run(fmt.Sprintf("words=%d", words), func(b *testing.B) {
			texts, paths := [2][]byte{}, [2]string{}
			for i := range texts {
				texts[i], paths[i] = unrelated(uint64(i), lines, words), filepath.Join(b.TempDir(), "text")
				if err := os.WriteFile(paths[i], texts[i], 0o600); err != nil {
					b.Fatal(err)
				}
			}
			var took [2]time.Duration
			var coarse bool
			for b.Loop() {
				begun := time.Now()
				file, err := Texts(b.Context(), texts[0], texts[1])
				if err != nil {
					b.Fatal(err)
				}
				took[0], coarse = took[0]+time.Since(begun), file.Coarse
				begun = time.Now()
				git := exec.CommandContext(b.Context(), "git", "diff", "--no-index", "--numstat", paths[0], paths[1])
				if out, err := git.CombinedOutput(); git.ProcessState.ExitCode() != 1 { // they differ
					b.Fatalf("git: %v\n%s", err, out)
				}
				took[1] += time.Since(begun)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(took[0].Seconds()*1000/float64(b.N), "ms/ours")
			b.ReportMetric(took[1].Seconds()*1000/float64(b.N), "ms/git")
			b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "ours/git")
			if coarse {
				b.ReportMetric(1, "coarse")
			}
		})
	}
}
