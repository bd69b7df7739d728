// Command othersystems checks packages and their tests for other systems.
//
//	go run ./internal/tools/othersystems -types linux/arm64 -vet darwin/arm64,windows/amd64 ./...
//
// It checks the types of all packages from their sources and generates no code: compiling
// the same packages for one system takes minutes. For the targets of -vet it also runs the
// analyzers of go vet, which would compile all dependencies first. What only the linker or
// the assembler finds is left to make release.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/packages"
)

func main() {
	onlyTypes := flag.String("types", "", "check types for these systems and processors, such as darwin/amd64,linux/arm64")
	vetted := flag.String("vet", "", "check types and run the analyzers of go vet for these")
	flag.Parse()
	failed := false
	for _, targets := range []struct {
		list string
		vet  bool
	}{{*onlyTypes, false}, {*vetted, true}} {
		for target := range strings.FieldsFuncSeq(targets.list, func(r rune) bool { return r == ',' }) {
			goos, goarch, _ := strings.Cut(target, "/")
			n, err := check(".", goos, goarch, targets.vet, flag.Args())
			if err != nil {
				failed = true
				fmt.Fprintf(os.Stderr, "%s:\n%v\n", target, err)
				continue
			}
			fmt.Printf("%s: %d packages\n", target, n)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check checks packages of a module in dir with their tests, and returns how many.
func check(dir, goos, goarch string, vetted bool, patterns []string) (int, error) {
	loaded, err := packages.Load(&packages.Config{
		// Without NeedDeps types would come from compiled packages.
		Mode: packages.LoadAllSyntax,
		Dir:  dir, Tests: true,
		Env: append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
	}, patterns...)
	if err != nil {
		return 0, err
	}
	// The main program that go writes for a test is not ours.
	loaded = slices.DeleteFunc(loaded, func(p *packages.Package) bool { return strings.HasSuffix(p.PkgPath, ".test") })
	for _, p := range loaded {
		for _, e := range p.Errors {
			err = errors.Join(err, e)
		}
	}
	if err == nil && vetted {
		err = vetPackages(loaded)
	}
	return len(loaded), err
}

func vetPackages(loaded []*packages.Package) error {
	graph, err := checker.Analyze(vet.Suite, loaded, nil)
	if err != nil {
		return err
	}
	// A package is also part of its own tests, so most findings are made twice.
	var findings []string
	for _, action := range graph.Roots {
		if action.Err != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", action, action.Err))
		}
		for _, d := range action.Diagnostics {
			findings = append(findings, fmt.Sprintf("%s: %s", action.Package.Fset.Position(d.Pos), d.Message))
		}
	}
	slices.Sort(findings)
	for _, f := range slices.Compact(findings) {
		err = errors.Join(err, errors.New(f))
	}
	return err
}
