// Command stress repeats the tests of packages on a machine that is kept busy, to find tests
// that depend on time or on luck.
//
//	go run ./internal/tools/stress -rounds 20 ./...
//
// Every package is compiled once, for the race detector. In each round every package runs
// once, those that take longest first, several at a time, so that each is a load for the
// others. GOMAXPROCS is 1, 2 and 8 in turn. A ledger records each run, so that a call
// resumes where an interrupted one ended, unless the tests have changed. The output of failed
// runs is kept beside the ledger.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/stet-dev/stet/internal/abreast"
)

type options struct {
	rounds int
	beside int
	limit  time.Duration
	flags  []string // of go test -c
	dir    string
}

func main() {
	var opts options
	flag.IntVar(&opts.rounds, "rounds", 20, "run every package this many times")
	flag.IntVar(&opts.beside, "beside", 3*runtime.NumCPU(), "run this many packages at a time")
	flag.DurationVar(&opts.limit, "limit", 30*time.Minute, "end a run that takes longer; it failed")
	flag.StringVar(&opts.dir, "dir", ".cache/stress", "keep programs, ledger and output here")
	compile := flag.String("compile", "-race", "flags of the compiler, separated by spaces")
	flag.Parse()
	opts.flags = strings.Fields(*compile)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, opts, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options, patterns []string) error {
	if err := os.MkdirAll(opts.dir, 0o755); err != nil {
		return err
	}
	packages, err := list(ctx, patterns)
	if err != nil {
		return err
	}
	programs, err := compile(ctx, opts, packages)
	if err != nil {
		return err
	}
	book, err := openLedger(filepath.Join(opts.dir, "ledger"))
	if err != nil {
		return err
	}
	defer book.close()
	s := &stress{options: opts, book: book}
	if err := s.all(ctx, programs); err != nil {
		return err
	}
	return s.report(programs)
}

// pkg is a package that has tests.
type pkg struct{ path, dir string }

func list(ctx context.Context, patterns []string) ([]pkg, error) {
	args := append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var all []pkg
	for line := range strings.Lines(string(out)) {
		if path, dir, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all = append(all, pkg{path: path, dir: dir})
		}
	}
	return all, nil
}

// program is the compiled tests of a package.
type program struct {
	pkg
	file string
	sum  string // of the file: other tests begin with round 1 again
}

func compile(ctx context.Context, opts options, packages []pkg) ([]program, error) {
	dir, err := filepath.Abs(opts.dir)
	if err != nil {
		return nil, err
	}
	return abreast.All(packages, runtime.NumCPU(), func(p pkg) (program, error) {
		file := filepath.Join(dir, strings.ReplaceAll(p.path, "/", "_")+".test")
		args := append(append([]string{"test", "-c", "-vet=off", "-o", file}, opts.flags...), p.path)
		if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
			return program{}, fmt.Errorf("compile the tests of %s: %w\n%s", p.path, err, out)
		}
		sum, err := sumOf(file)
		return program{pkg: p, file: file, sum: sum}, err
	})
}

type stress struct {
	options
	book *ledger
}

// threads are the values of GOMAXPROCS, in turns.
var threads = []int{1, 2, 8}

// all runs what the ledger does not have, one round after the other. A round does not wait for
// the slowest of the one before, so the machine is busy to the end.
func (s *stress) all(ctx context.Context, programs []program) error {
	slices.SortStableFunc(programs, func(a, b program) int { return int(s.book.took(b.path) - s.book.took(a.path)) })
	type job struct {
		program
		round int
	}
	var jobs []job
	for round := range s.rounds {
		for _, p := range programs {
			if s.book.runs(p.path, p.sum) <= round {
				jobs = append(jobs, job{p, round})
			}
		}
	}
	_, err := abreast.All(jobs, s.beside, func(j job) (struct{}, error) {
		e := s.once(ctx, j.round, j.program)
		if ctx.Err() != nil {
			return struct{}{}, ctx.Err()
		}
		fmt.Println(e)
		return struct{}{}, s.book.add(e)
	})
	return err
}

// once runs the tests of a package in a directory of their own for temporary files.
func (s *stress) once(ctx context.Context, round int, p program) entry {
	e := entry{path: p.path, sum: p.sum, threads: threads[round%len(threads)]}
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	temp, err := os.MkdirTemp("", "stress-")
	if err != nil {
		return e
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o755); err != nil { // a database server runs as another user
		return e
	}
	cmd := exec.CommandContext(ctx, p.file, "-test.timeout", "0")
	cmd.Dir = p.dir
	// Without GORACE every program of the race detector sleeps for a second at its end.
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, fmt.Sprintf("GOMAXPROCS=%d", e.threads), "GORACE=atexit_sleep_ms=0")
	cmd.WaitDelay = 10 * time.Second
	start := time.Now()
	out, err := cmd.CombinedOutput()
	e.took, e.ok = time.Since(start), err == nil
	if !e.ok && ctx.Err() != context.Canceled {
		e.output = filepath.Join(s.dir, fmt.Sprintf("%s.%d.failed", filepath.Base(p.file), round+1))
		out = fmt.Appendf(out, "\n%v after %s, GOMAXPROCS=%d\n", err, e.took.Round(time.Second), e.threads)
		if err := os.WriteFile(e.output, out, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "stress:", err)
		}
	}
	return e
}

// report prints how often each package ran, and fails if one of these runs did.
func (s *stress) report(programs []program) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "package\truns\tfailed\tlongest")
	runs, failed := 0, 0
	for _, p := range programs {
		mine := s.book.of(p.path, p.sum)
		bad, longest := 0, time.Duration(0)
		for _, e := range mine {
			longest = max(longest, e.took)
			if !e.ok {
				bad++
			}
		}
		fmt.Fprintf(out, "%s\t%d\t%d\t%s\n", p.path, len(mine), bad, longest.Round(100*time.Millisecond))
		runs, failed = runs+len(mine), failed+bad
	}
	if err := out.Flush(); err != nil {
		return err
	}
	fmt.Printf("%d packages, %d runs, %d failed\n", len(programs), runs, failed)
	if failed > 0 {
		return fmt.Errorf("%d runs failed; their output is in %s/*.failed", failed, s.dir)
	}
	return nil
}
