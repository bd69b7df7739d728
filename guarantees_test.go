package stet

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// evidence matches what a promise is shown by: a package, a test or a script. A test
// whose name ends in … stands for all that begin so.
var evidence = regexp.MustCompile("`([a-z0-9/]+)`|\\b(root):|\\b((?:Test|Benchmark|Fuzz)[A-Z]\\w*)(…)?|\\b([a-z-]+\\.txtar)")

// TestGuaranteesNameTests checks that every test and script that docs/GUARANTEES.md
// names exists, in the package that it names.
func TestGuaranteesNameTests(t *testing.T) {
	page, err := os.ReadFile("docs/GUARANTEES.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, found := map[string][]string{}, 0
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(string(page), "\n|", "\n\n|"), "\n\n") {
		pkg := ""
		for _, m := range evidence.FindAllStringSubmatch(paragraph, -1) {
			dir, root, test, more, script := m[1], m[2], m[3], m[4], m[5]
			switch {
			case root != "":
				pkg = "."
			case dir != "":
				if info, err := os.Stat(dir); err == nil && info.IsDir() {
					pkg = dir
				}
			case pkg == "":
				t.Errorf("%s has no package in %q", test+script, paragraph)
			case script != "":
				found++
				if _, err := os.Stat(filepath.Join(pkg, "testdata/script", script)); err != nil {
					t.Errorf("%s: %v", pkg, err)
				}
			default:
				found++
				if tests[pkg] == nil {
					tests[pkg] = testsOf(t, pkg)
				}
				if !namedTest(tests[pkg], test, more != "") {
					t.Errorf("%s has no %s", pkg, test)
				}
			}
		}
	}
	if found < 60 {
		t.Errorf("the page names %d tests and scripts; the pattern misses most of them", found)
	}
}

func namedTest(tests []string, name string, prefix bool) bool {
	for _, test := range tests {
		if test == name || prefix && strings.HasPrefix(test, name) {
			return true
		}
	}
	return false
}

// testsOf returns the functions of a package's test files.
func testsOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}
