package stet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// buildTags are those that internal/tools/build.sh builds the program with.
const buildTags = "grpcnotrace,nopgxregisterdefaulttypes"

// imports are the packages of a program, with what each imports.
type imports struct {
	root string
	of   map[string][]string
}

func importsOf(t *testing.T, pkg string) imports {
	t.Helper()
	im := imports{of: make(map[string][]string)}
	for line := range strings.Lines(string(goCommand(t, "list", "-deps", "-tags", buildTags, "-f", `{{.ImportPath}} {{join .Imports " "}}`, pkg))) {
		fields := strings.Fields(line)
		im.root = fields[0] // it comes last
		im.of[fields[0]] = fields[1:]
	}
	return im
}

// chain returns how the program comes to a package, as in "a → b → c".
func (im imports) chain(to string) string { return chain(im.of, []string{im.root}, to) }

// chain returns a shortest way from one of the beginnings to the end, or "".
func chain(edges map[string][]string, from []string, to string) string {
	by := make(map[string]string)
	for _, f := range from {
		by[f] = ""
	}
	for queue := slices.Clone(from); len(queue) > 0; queue = queue[1:] {
		for _, next := range edges[queue[0]] {
			if _, known := by[next]; !known {
				by[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	if _, found := by[to]; !found {
		return ""
	}
	way := to
	for at := by[to]; at != ""; at = by[at] {
		way = at + " → " + way
	}
	return way
}

// TestProgramLinksNoTemplates: a package that finds methods by name makes the linker keep
// every exported method, which costs 13 MB. TestNothingFindsMethodsByName has the linker's
// own word for all packages.
func TestProgramLinksNoTemplates(t *testing.T) {
	program := importsOf(t, "./cmd/stet")
	for _, name := range []string{"html/template", "golang.org/x/net/trace"} {
		if way := program.chain(name); way != "" {
			t.Errorf("the program links %s: %s", name, way)
		}
	}
	for pkg, imported := range program.of {
		// cobra calls it only for templates of usage texts, which we do not set.
		if slices.Contains(imported, "text/template") && pkg != "github.com/spf13/cobra" {
			t.Errorf("the program links text/template: %s → text/template", program.chain(pkg))
		}
	}
}

// TestEmbeddersLinkAStoreOnly: a program that embeds a store has no use for what serves
// it, keeps it in a cloud or shows it.
func TestEmbeddersLinkAStoreOnly(t *testing.T) {
	program := importsOf(t, "./examples/embedded")
	for pkg := range program.of {
		for _, prefix := range []string{
			module + "/server", module + "/fleet", module + "/postgres", module + "/client", module + "/web", module + "/foreign",
			module + "/kvstream", module + "/internal/cli", module + "/internal/highlight", module + "/blob/s3blob", module + "/internal/s3api", module + "/internal/awsconfig", module + "/meter/otelmeter",
			"go.opentelemetry.io", "github.com/alecthomas/chroma", "github.com/prometheus", "github.com/jackc",
			"github.com/spf13", "connectrpc.com", "google.golang.org/grpc", "net/http", "html/template", "text/template",
		} {
			if pkg == prefix || strings.HasPrefix(pkg, prefix+"/") {
				t.Errorf("a program that embeds a store links %s: %s", pkg, program.chain(pkg))
			}
		}
	}
}

// TestNothingFindsMethodsByName asks the linker which functions can call any method by its
// name, and how the program comes to them.
func TestNothingFindsMethodsByName(t *testing.T) {
	testenv.OnlyFull(t)
	for _, p := range []struct {
		pkg   string
		limit int64
	}{
		// Somewhat more than they have. What seldom runs is not optimized for tests, so the
		// program is 3 MB larger than a released one, which make test-release measures.
		{"./cmd/stet", 48_000_000}, {"./examples/embedded", 16_000_000},
	} {
		t.Run(p.pkg, func(t *testing.T) {
			size, ways := linked(t, p.pkg)
			for _, way := range ways {
				t.Errorf("the linker keeps every exported method because of %s", way)
			}
			if size > p.limit {
				t.Errorf("%s has %d bytes, which is more than %d; see 'go tool nm -size -sort size'", p.pkg, size, p.limit)
			}
			t.Logf("%s has %d bytes", p.pkg, size)
		})
	}
	t.Run("a template is found", func(t *testing.T) {
		source := filepath.Join(t.TempDir(), "main.go")
		text := "package main\n\nimport (\n\t\"os\"\n\t\"text/template\"\n)\n\nfunc main() { _ = template.Must(template.New(\"\").Parse(\"{{.X}}\")).Execute(os.Stdout, os.Args) }\n"
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, ways := linked(t, source)
		if len(ways) == 0 || !strings.Contains(ways[0], "main.main → ") || !strings.HasSuffix(ways[0], "text/template.(*state).evalField") {
			t.Errorf("the ways are %q", ways)
		}
	})
}

// linked links a program from what was compiled for tests, and returns its size and how it
// comes to functions that find methods by name. Compiling all of it as releases are compiled
// would take more than a minute of two cores.
func linked(t *testing.T, pkg string) (size int64, ways []string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", buildTags, "-ldflags", "-s -w -dumpdep", "-o", program, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%.2000s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size(), reflectMethods(string(out))
}

// reflectMethods reads what the linker says with -dumpdep: lines of "from -> to", in which
// a symbol may have attributes.
func reflectMethods(dump string) []string {
	const attribute = "<ReflectMethod>"
	edges := make(map[string][]string)
	var found []string
	name := func(symbol string) string { symbol, _, _ = strings.Cut(symbol, " <"); return symbol }
	for line := range strings.Lines(dump) {
		from, to, ok := strings.Cut(strings.TrimSpace(line), " -> ")
		if !ok {
			continue
		}
		for _, symbol := range []string{from, to} {
			if strings.Contains(symbol, attribute) && !slices.Contains(found, name(symbol)) {
				found = append(found, name(symbol))
			}
		}
		edges[name(from)] = append(edges[name(from)], name(to))
	}
	for i, symbol := range found {
		if way := chain(edges, []string{"_", "main.main", "main..inittask"}, symbol); way != "" {
			found[i] = way
		}
	}
	return found
}

func TestChainsAreNamed(t *testing.T) {
	dump := "main.main -> a.F\na.F -> text/template.(*state).evalField <ReflectMethod>\ntext/template.(*state).evalField <ReflectMethod> -> reflect.Value.MethodByName\n"
	want := "[main.main → a.F → text/template.(*state).evalField]"
	if got := fmt.Sprint(reflectMethods(dump)); got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}
