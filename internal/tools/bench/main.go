// Command bench runs the benchmarks that compare us with a baseline and prints
// their ratios beside the targets.
//
//	go run ./internal/tools/bench            all of them
//	go run ./internal/tools/bench -match Put those whose name fits
//	go run ./internal/tools/bench -import 1024 import 1 GB of sessions instead of 64 MB
//
// Only ratios count: ours and the baseline are measured alternately in one run,
// because machines are shared and noisy. Nothing here fails a build.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
)

// suite is one run of `go test -bench`.
type suite struct {
	pkg, bench, count string
}

var suites = []suite{
	{".", "DurablePut|CachedGet|Reput|Encrypted", "200x"},
	{".", "GrowingList", "50x"},
	{".", "ThousandTurns|ThousandFrames", "1x"},
	{".", "ManyConversations", "1x"},
	{"./conversation", ".", "200x"},
	{"./workspace", ".", "3x"},
	{"./checkpoint", ".", "3x"},
	{"./blame", "Blame", "11x"},
	{"./internal/room", "Room|Bisect", "5x"},
	{"./internal/scenario", "Load", "3000x"},
	{"./internal/scenario", "Followers", "100x"},
	{"./internal/scenario", "AcrossNodes", "300x"},
	{"./postgres", "Commit", "10x"},
	{"./postgres", "Wake", "300x"},
	{"./search/pgsearch", "Search", "100x"},
	{"./linediff", "HugeTexts", "1x"},
	{"./fleet", "ArchivedCost", "3x"},
	{"./internal/cli", "Hook", "100x"},
	{"./internal/cli", "Start", "50x"},
	{"./internal/cli", "Try|Adopt|Prove", "11x"},
	{"./internal/cli", "Import", "1x"},
	{"./internal/suites", "Savers", "1x"},
	{"./internal/suites", "Streams", "1x"},
}

// targets are the target metrics of benchmarks; the first match counts.
var targets = []struct {
	name   *regexp.Regexp
	metric string
	want   string
}{
	{regexp.MustCompile(`DurablePut/raw-driver`), "ratio", "≥ 0.8"},
	{regexp.MustCompile(`DurablePut/plain-files`), "ratio", "≥ 0.6"},
	{regexp.MustCompile(`CachedGet`), "ratio", "≥ 5"},
	{regexp.MustCompile(`Encrypted`), "ratio", "≥ 0.6"},
	{regexp.MustCompile(`GrowingList`), "B/entry", "< 200"},
	{regexp.MustCompile(`ThousandTurns`), "stored/content", "≤ 1.1"},
	{regexp.MustCompile(`ThousandFrames`), "stored/content", "≤ 1.2"},
	{regexp.MustCompile(`^Savers`), "files/sqlite", "≤ 0.05"},
	{regexp.MustCompile(`^Streams`), "ratio-16", "≥ 1"},
	{regexp.MustCompile(`ManyConversations/(list|filter|search)`), "many-ms", "≤ 200"},
	{regexp.MustCompile(`^Save/`), "ratio", "≤ 1.5"},
	{regexp.MustCompile(`SaveDurable`), "ratio", "≤ 2.5"},
	{regexp.MustCompile(`SaveTogether`), "speedup", "≥ 8"},
	{regexp.MustCompile(`^Hydrate/`), "ratio", "≥ 10"},
	{regexp.MustCompile(`Load/busy`), "p99-ms", "≤ 250"},
	{regexp.MustCompile(`Load`), "p99-ms", "≤ 50"},
	{regexp.MustCompile(`^Search`), "ratio", "≤ 2"},
	{regexp.MustCompile(`^HugeTexts`), "ours/git", "≤ 1"},
	{regexp.MustCompile(`^Followers`), "ratio", "≤ 1.5"},
	{regexp.MustCompile(`^Commit/`), "ratio", "≥ 0.7"},
	{regexp.MustCompile(`AcrossNodes|^Wake`), "p99-ms", "≤ 50"},
	{regexp.MustCompile(`ArchivedCost`), "rows-after/conv", "≤ 4"},
	{regexp.MustCompile(`^Hook`), "p50-ms", "≤ 10; ours/git ≤ 5"},
	{regexp.MustCompile(`^Blame`), "p50-ms", "≤ 100"},
	{regexp.MustCompile(`^Start/version`), "best-ms", "≤ 7"},
	{regexp.MustCompile(`^Start/stet-hook`), "best-ms", "≤ 3"},
	{regexp.MustCompile(`^Room`), "x-git-worktree", "≤ 1"},
	{regexp.MustCompile(`^Bisect`), "x-plain-copy", "≤ 2"},
	{regexp.MustCompile(`^Import`), "over-MiB", "≤ 64"},
	{regexp.MustCompile(`FirstCapture|First`), "ours/git", "≤ 0.25"},
	{regexp.MustCompile(`Rewind/files=1000/`), "ours/git", "≤ 0.8"},
	{regexp.MustCompile(`Rewind.*changed=1000$`), "ours/git", "≤ 0.6"},
	{regexp.MustCompile(`Rewind`), "ours/git", "≤ 0.35"},
	{regexp.MustCompile(`^Back/.*files=20000`), "ours/git", "≤ 0.7"},
	{regexp.MustCompile(`Scan`), "ours/git", "≤ 0.3"},
	{regexp.MustCompile(`Command/files=1000/`), "ours/git", "≤ 0.6"},
	{regexp.MustCompile(`Command/files=50000/`), "ours/git", "≤ 0.2"},
	{regexp.MustCompile(`Command`), "ours/git", "≤ 0.4"},
	{regexp.MustCompile(`^Run`), "run/checkpoint", "≤ 2; checkpoint/status ≤ 1.2"},
}

func main() {
	match := flag.String("match", "", "run only benchmarks whose name matches this expression")
	imported := flag.Int("import", 64, "import sessions of this many MB")
	flag.Parse()
	os.Setenv("STET_IMPORT_MB", strconv.Itoa(*imported))
	if err := run(*match); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(match string) error {
	filter, err := regexp.Compile(match)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "benchmark\tfigures\ttarget")
	for _, s := range suites {
		if match != "" && !filter.MatchString(s.bench) && s.bench != "." {
			continue
		}
		if err := s.run(out, filter); err != nil {
			return err
		}
		out.Flush()
	}
	return nil
}

func (s suite) run(out *tabwriter.Writer, filter *regexp.Regexp) error {
	var stdout bytes.Buffer
	cmd := exec.Command("go", "test", "-run", "^$", "-bench", s.bench, "-benchtime", s.count, "-timeout", "60m", s.pkg)
	cmd.Env = append(os.Environ(), "STET_LONG=1") // trees of 50,000 files too
	cmd.Stdout, cmd.Stderr = &stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", s.pkg, err, stdout.String())
	}
	lines := bufio.NewScanner(&stdout)
	for lines.Scan() {
		name, metrics, ok := parse(lines.Text())
		if ok && filter.MatchString(name) {
			fmt.Fprintf(out, "%s %s\t%s\t%s\n", s.pkg, name, strings.Join(metrics, "  "), target(name, metrics))
		}
	}
	return lines.Err()
}

var cpus = regexp.MustCompile(`-\d+$`)

// parse reads a line of the benchmark's output: name, rounds, then pairs of value
// and unit.
func parse(line string) (name string, metrics []string, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
		return "", nil, false
	}
	name = cpus.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
	for i := 2; i+1 < len(fields); i += 2 {
		if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
			metrics = append(metrics, fmt.Sprintf("%.4g %s", value, fields[i+1]))
		}
	}
	return name, metrics, true
}

// target returns the target of a benchmark, if it has one and reports the metric.
func target(name string, metrics []string) string {
	for _, t := range targets {
		if !t.name.MatchString(name) {
			continue
		}
		for _, m := range metrics {
			if strings.HasSuffix(m, " "+t.metric) {
				return t.metric + " " + t.want
			}
		}
	}
	return ""
}
