// Command growth measures what operations cost at growing sizes, and writes a table and
// plots of it into the documentation.
//
//	go run ./internal/tools/growth                 as far as ten minutes go
//	go run ./internal/tools/growth -time 2h        further
//	go run ./internal/tools/growth -only followers one curve, without writing anything
//
// Each curve has a share of the time and stops before a size that would not fit into it;
// what it did not reach is extrapolated, and the table says so. The exponent of a curve is
// the slope of its logarithms between the last sizes: 0 is a constant cost, 1 a linear one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"
)

func main() {
	limit := flag.Duration("time", 10*time.Minute, "for all curves together")
	most := flag.Int("max", 0, "the largest size of any curve; 0 means no limit")
	only := flag.String("only", "", "measure this group, and print its rows without writing files")
	docs := flag.String("docs", "docs", "directory of PERFORMANCE.md")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *limit, *most, *only, *docs); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, limit time.Duration, most int, only, docs string) error {
	work, err := os.MkdirTemp("", "stet-growth-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var found []*group
	for _, g := range groups() {
		if only != "" && g.name != only {
			continue
		}
		share := limit / time.Duration(len(groups()))
		if err := g.measure(ctx, work, share, most); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		found = append(found, g)
	}
	if len(found) == 0 {
		return fmt.Errorf("there is no group %q", only)
	}
	if only != "" {
		_, err := fmt.Print(table(found))
		return err
	}
	errs := []error{os.MkdirAll(filepath.Join(docs, "growth"), 0o755)}
	for _, g := range found {
		errs = append(errs, os.WriteFile(filepath.Join(docs, "growth", g.name+".svg"), plot(g), 0o644))
	}
	return errors.Join(append(errs, splice(filepath.Join(docs, "PERFORMANCE.md"), table(found)))...)
}

// group is what is measured at the same sizes: one plot.
type group struct {
	name  string
	title string
	axis  string // what the sizes count
	sizes []int
	// prepare makes what is measured at a size. The function that it returns measures it
	// once, and returns the cost of each curve in milliseconds.
	prepare func(ctx context.Context, dir string, size int) (measure func() ([]float64, error), done func() error, err error)
	curves  []string
	// why explains curves that grow faster than their sizes, by their names.
	why map[string]string

	points []point
}

// point is the costs at one size.
type point struct {
	size  int
	costs []float64
}

// rounds is how often something is measured. The best one counts: it is the one that other
// work of the machine disturbed least.
const rounds = 15

// measure goes through the sizes, and stops before one that would take too long.
func (g *group) measure(ctx context.Context, work string, share time.Duration, most int) error {
	begun, last := time.Now(), time.Duration(0)
	for i, size := range g.sizes {
		if most > 0 && size > most {
			break
		}
		if i > 0 {
			next := last * time.Duration(size) / time.Duration(g.sizes[i-1])
			if time.Since(begun)+next > share {
				break
			}
		}
		at := time.Now()
		if err := g.one(ctx, filepath.Join(work, fmt.Sprint(g.name, size)), size); err != nil {
			return fmt.Errorf("size %d: %w", size, err)
		}
		last = time.Since(at)
		fmt.Fprintf(os.Stderr, "%s %d: %.2f in %v\n", g.name, size, g.points[len(g.points)-1].costs, last.Round(time.Millisecond))
	}
	return ctx.Err()
}

func (g *group) one(ctx context.Context, dir string, size int) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	measure, done, err := g.prepare(ctx, dir, size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	all := make([][]float64, len(g.curves))
	for range rounds {
		costs, err := measure()
		if err != nil {
			return err
		}
		for i, cost := range costs {
			all[i] = append(all[i], cost)
		}
	}
	p := point{size: size}
	for _, costs := range all {
		p.costs = append(p.costs, slices.Min(costs))
	}
	g.points = append(g.points, p)
	return nil
}
