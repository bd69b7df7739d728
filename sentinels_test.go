package stet

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stet-dev/stet/fault"
)

// unclassed are sentinels that need no class, and why. An error that a caller can get
// is not among them.
var unclassed = map[string]string{
	"stet.errEnough":                   "ends a walk, and its caller takes it away",
	"blob/compressed.errFar":           "postpones a comparison, and its caller takes it away",
	"blob/encrypted.errEnough":         "ends a walk, and its caller takes it away",
	"blob/encrypted.errPageFull":       "ends a walk, and its caller takes it away",
	"cloudagent.errUnchanged":          "ends an update, and its caller takes it away",
	"server/streams.errSilent":         "ends a wait, and its caller takes it away",
	"stream.errUnchanged":              "ends a write, and its caller takes it away",
	"pack.errEnough":                   "ends a walk, and its caller takes it away",
	"postgres.errNotSent":              "marks another error, which has the class",
	"search.errFar":                    "ends a walk, and its caller takes it away",
	"sqlite.errSync":                   "marks another error, which has the class",
	"upkeep.errEnough":                 "ends a walk, and its caller takes it away",
	"usage.errEnough":                  "ends a walk, and its caller takes it away",
	"transcript.errStop":               "ends a walk, and its caller takes it away",
	"blob/blobtest.ErrInjected":        "stands for a failure that nobody foresaw",
	"blob/blobtest/contract.errSource": "stands for a failure that nobody foresaw",
}

var sentinelName = regexp.MustCompile(`^[eE]rr[A-Z]`)

// Every sentinel has a class of package fault, or wraps one that has.
func TestSentinelsHaveClasses(t *testing.T) {
	seen := make(map[string]bool)
	eachSentinel(t, func(pkg, name string, call *ast.CallExpr) {
		full := pkg + "." + name
		if classOrCause(call) {
			return
		}
		seen[full] = true
		if unclassed[full] == "" {
			t.Errorf("%s has no class: make it with fault.New or fault.Named", full)
		}
	})
	for full := range unclassed {
		if !seen[full] {
			t.Errorf("%s is listed as a sentinel without a class, and is not one", full)
		}
	}
}

// classOrCause reports whether a sentinel is made in a way that gives it a class.
func classOrCause(call *ast.CallExpr) bool {
	switch callee(call) {
	case "errors.New":
		return false
	case "fmt.Errorf":
		return strings.Contains(literal(call, 0), "%w")
	}
	return true
}

var kebab = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

// Reasons are identities: to errors.Is, sentinels with the same one are the same.
func TestReasonsAreUnique(t *testing.T) {
	owner := make(map[string]string)
	for reason, names := range reasonsOfSentinels(t) {
		if !kebab.MatchString(reason) {
			t.Errorf("%s has the reason %q, want words with hyphens", names[0], reason)
		}
		if len(names) > 1 {
			t.Errorf("the reason %q is that of %q", reason, names)
		}
		owner[reason] = names[0]
	}
	if len(owner) == 0 {
		t.Error("no reasons were found")
	}
}

var (
	quotedTS  = regexp.MustCompile(`(?m)^  "([a-z-]+)",$`)
	errorsRow = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| [A-Z_, ]+ \\|[^|]*\\| ?(.*) \\|$")
)

// The TypeScript client and the page about the server list the classes and reasons.
func TestReasonsAreListed(t *testing.T) {
	var want []string
	for _, class := range fault.Classes() {
		want = append(want, class.String())
	}
	want = append(want, slices.Sorted(maps.Keys(reasonsOfSentinels(t)))...)
	var typescript []string
	for _, m := range quotedTS.FindAllStringSubmatch(read(t, "clients/typescript/src/errors.ts"), -1) {
		typescript = append(typescript, m[1])
	}
	compareLists(t, "clients/typescript/src/errors.ts", typescript, want)

	var classes, reasons []string
	for _, m := range errorsRow.FindAllStringSubmatch(read(t, "docs/SERVER.md"), -1) {
		classes = append(classes, m[1])
		for reason := range strings.SplitSeq(m[2], ", ") {
			if reason != "" {
				reasons = append(reasons, strings.Trim(reason, "` "))
			}
		}
	}
	slices.Sort(reasons)
	compareLists(t, "docs/SERVER.md", append(classes, reasons...), want)
}

func compareLists(t *testing.T, file string, got, want []string) {
	t.Helper()
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s lacks %q", file, name)
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("%s lists %q, which is not a class or reason", file, name)
		}
	}
	if !t.Failed() && !slices.Equal(got, want) {
		t.Errorf("%s lists classes or reasons twice or in another order", file)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// reasonsOfSentinels returns the sentinels of each reason.
func reasonsOfSentinels(t *testing.T) map[string][]string {
	t.Helper()
	reasons := make(map[string][]string)
	eachSentinel(t, func(pkg, name string, call *ast.CallExpr) {
		if callee(call) == "fault.Named" || callee(call) == "fault.Under" && literal(call, 1) != "" {
			reasons[literal(call, 1)] = append(reasons[literal(call, 1)], pkg+"."+name)
		}
	})
	return reasons
}

// eachSentinel calls fn for every variable of a package that is named like a
// sentinel and made by a call.
func eachSentinel(t *testing.T, fn func(pkg, name string, call *ast.CallExpr)) {
	t.Helper()
	eachFile(t, func(pkg, file string, fset *token.FileSet) {
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if pkg == "." {
			pkg = "stet"
		}
		for _, decl := range f.Decls {
			vars, ok := decl.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR {
				continue
			}
			for _, spec := range vars.Specs {
				value := spec.(*ast.ValueSpec)
				for i, name := range value.Names {
					if call, ok := valueAt(value, i).(*ast.CallExpr); ok && sentinelName.MatchString(name.Name) {
						fn(pkg, name.Name, call)
					}
				}
			}
		}
	})
}

func valueAt(spec *ast.ValueSpec, i int) ast.Expr {
	if i < len(spec.Values) {
		return spec.Values[i]
	}
	return nil
}

// callee returns the function of a call, such as "errors.New".
func callee(call *ast.CallExpr) string {
	if s, ok := call.Fun.(*ast.SelectorExpr); ok {
		if pkg, ok := s.X.(*ast.Ident); ok {
			return pkg.Name + "." + s.Sel.Name
		}
	}
	return ""
}

// literal returns an argument that is a string in the source, or "".
func literal(call *ast.CallExpr, i int) string {
	if i >= len(call.Args) {
		return ""
	}
	lit, ok := call.Args[i].(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return text
}
