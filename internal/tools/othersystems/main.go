// Command othersystems checks that packages and their tests compile for other systems.
//
//	go run ./internal/tools/othersystems -targets darwin/arm64,windows/amd64 ./...
//
// It checks the types of all packages that they are made of, from their sources, and makes no
// code: compiling the same packages for one system takes minutes. What only the linker or the
// assembler finds is left to make release.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

func main() {
	targets := flag.String("targets", "", "systems and processors, such as darwin/arm64,windows/amd64")
	flag.Parse()
	failed := false
	for target := range strings.SplitSeq(*targets, ",") {
		goos, goarch, _ := strings.Cut(target, "/")
		n, err := check(".", goos, goarch, flag.Args())
		if err != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "%s:\n%v\n", target, err)
			continue
		}
		fmt.Printf("%s: %d packages\n", target, n)
	}
	if failed {
		os.Exit(1)
	}
}

// pkg is a package as go list prints it. A package whose tests replace files of it is there
// twice; ImportMap names the one that is meant.
type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	ImportMap  map[string]string
	DepOnly    bool
	Module     *struct{ GoVersion string }
	Error      *struct{ Err string }

	done  chan struct{}
	types *types.Package
	errs  []error
}

// check checks packages of a module in dir with their tests, and returns how many.
func check(dir, goos, goarch string, patterns []string) (int, error) {
	packages, err := list(dir, goos, goarch, patterns)
	if err != nil {
		return 0, err
	}
	byPath := make(map[string]*pkg)
	for _, p := range packages {
		p.done = make(chan struct{})
		byPath[p.ImportPath] = p
	}
	// Dependencies come first in the list, so a goroutine that waits never keeps another
	// from a place that it needs.
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	sizes := types.SizesFor("gc", goarch)
	var work sync.WaitGroup
	for _, p := range packages {
		places <- struct{}{}
		work.Go(func() {
			defer func() { close(p.done); <-places }()
			p.check(byPath, sizes)
		})
	}
	work.Wait()
	n := 0
	for _, p := range packages {
		if !p.DepOnly {
			n++
			err = errors.Join(err, errors.Join(p.errs...))
		}
	}
	return n, err
}

// list asks go for packages, their tests, and all that these import, in the order of imports.
func list(dir, goos, goarch string, patterns []string) ([]*pkg, error) {
	args := []string{"list", "-deps", "-test", "-e", "-json=ImportPath,Dir,GoFiles,Imports,ImportMap,DepOnly,Module,Error"}
	cmd := exec.Command("go", append(args, patterns...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var packages []*pkg
	for from := json.NewDecoder(out); ; {
		p := new(pkg)
		if err = from.Decode(p); err != nil {
			break
		}
		switch {
		case p.Error != nil && !p.DepOnly:
			return nil, fmt.Errorf("%s: %s", p.ImportPath, p.Error.Err)
		case !strings.HasSuffix(p.ImportPath, ".test"): // the main program that go writes for a test
			packages = append(packages, p)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return packages, cmp.Or(cmd.Wait(), err)
}

// check checks a package, after those that it imports. Of packages that were not asked for,
// only the declarations count.
func (p *pkg) check(all map[string]*pkg, sizes types.Sizes) {
	if p.ImportPath == "unsafe" {
		p.types = types.Unsafe
		return
	}
	fset := token.NewFileSet()
	files := make([]*ast.File, 0, len(p.GoFiles))
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			p.errs = append(p.errs, err)
		}
		files = append(files, f)
	}
	conf := types.Config{
		Importer: importer{p, all}, Sizes: sizes, IgnoreFuncBodies: p.DepOnly, FakeImportC: true,
		Error: func(err error) { p.errs = append(p.errs, err) },
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		conf.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")    // without the test that it is for
	p.types, _ = conf.Check(path, fset, files, nil) // errors are in p.errs
}

// importer finds what a package imports.
type importer struct {
	of  *pkg
	all map[string]*pkg
}

func (i importer) Import(path string) (*types.Package, error) {
	if mapped, ok := i.of.ImportMap[path]; ok {
		path = mapped
	}
	p, ok := i.all[path]
	if !ok {
		return nil, fmt.Errorf("package %s is not there", path)
	}
	<-p.done
	if p.types == nil {
		return nil, fmt.Errorf("package %s cannot be checked", path)
	}
	return p.types, nil
}
