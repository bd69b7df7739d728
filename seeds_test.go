package stet

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// systems is how many systems docs/SEEDS.md lists.
const systems = 31

var (
	namedPackage = regexp.MustCompile("`([a-z0-9/]+)`")
	namedVerb    = regexp.MustCompile("`stet ([a-z]+)")
	namedCall    = regexp.MustCompile(`\b[A-Z]\w*Service/[A-Z]\w*`)
	namedSetting = regexp.MustCompile("`([a-z]+\\.[a-z0-9_]+)`")
	evidenceItem = regexp.MustCompile("`([a-z0-9/]+)`:|\\b(root):|\\b((?:Test|Fuzz)[A-Z]\\w*)|\\b([a-z_-]+\\.txtar)")
)

// TestSeedsAreInTheProduct checks that each system of docs/SEEDS.md has a package, a way
// to use it in the product and tests, and that all of them exist.
func TestSeedsAreInTheProduct(t *testing.T) {
	page, err := os.ReadFile("docs/SEEDS.md")
	if err != nil {
		t.Fatal(err)
	}
	p := &seedsPage{t: t, verbs: verbsOfCLI(t), calls: callsOfProtos(t), settings: textOf(t, "internal/cli", ".go"), tests: make(map[string][]string)}
	rows := 0
	for line := range strings.SplitSeq(string(page), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| #") {
			continue
		}
		if rows++; len(cells) != 5 {
			t.Errorf("a row has %d columns, want 5: %s", len(cells), line)
			continue
		}
		p.row(strings.TrimSpace(cells[0]), cells[2], cells[3], cells[4])
	}
	if rows != systems {
		t.Errorf("the page lists %d systems, want %d", rows, systems)
	}
}

type seedsPage struct {
	t        *testing.T
	verbs    []string
	calls    []string
	settings string
	tests    map[string][]string
}

func (p *seedsPage) row(number, packages, product, shown string) {
	named := namedPackage.FindAllStringSubmatch(packages, -1)
	for _, m := range named {
		if files, err := filepath.Glob(filepath.Join(m[1], "*.go")); err != nil || len(files) == 0 {
			p.t.Errorf("%s: there is no package %s", number, m[1])
		}
	}
	if len(named) == 0 {
		p.t.Errorf("%s names no package", number)
	}
	p.product(number, product)
	p.shown(number, shown)
}

func (p *seedsPage) product(number, product string) {
	ways := 0
	for _, m := range namedVerb.FindAllStringSubmatch(product, -1) {
		if ways++; !slices.Contains(p.verbs, m[1]) {
			p.t.Errorf("%s: there is no verb %s", number, m[1])
		}
	}
	for _, call := range namedCall.FindAllString(product, -1) {
		if ways++; !slices.Contains(p.calls, call) {
			p.t.Errorf("%s: there is no call %s", number, call)
		}
	}
	for _, m := range namedSetting.FindAllStringSubmatch(product, -1) {
		if ways++; !strings.Contains(p.settings, `{"`+m[1]+`",`) {
			p.t.Errorf("%s: there is no setting %s", number, m[1])
		}
	}
	if ways == 0 {
		p.t.Errorf("%s is not used by the product", number)
	}
}

func (p *seedsPage) shown(number, shown string) {
	pkg, found := "", 0
	for _, m := range evidenceItem.FindAllStringSubmatch(shown, -1) {
		switch dir, root, test, script := m[1], m[2], m[3], m[4]; {
		case dir != "":
			pkg = dir
		case root != "":
			pkg = "."
		case script != "":
			found++
			if _, err := os.Stat(filepath.Join(pkg, "testdata/script", script)); err != nil {
				p.t.Errorf("%s: %v", number, err)
			}
		default:
			found++
			if p.tests[pkg] == nil {
				p.tests[pkg] = testsOf(p.t, pkg)
			}
			if !slices.Contains(p.tests[pkg], test) {
				p.t.Errorf("%s: %s has no %s", number, pkg, test)
			}
		}
	}
	if found == 0 {
		p.t.Errorf("%s has no test", number)
	}
}

// verbsOfCLI returns the verbs of the command line.
func verbsOfCLI(t *testing.T) (verbs []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`a\.([a-z]+)Command\(\)`).FindAllStringSubmatch(textOf(t, "internal/cli", ".go"), -1) {
		verbs = append(verbs, m[1])
	}
	return verbs
}

// callsOfProtos returns the calls of all services, as Service/Method.
func callsOfProtos(t *testing.T) (calls []string) {
	t.Helper()
	service := ""
	for line := range strings.SplitSeq(textOf(t, "proto", ".proto"), "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) > 1 && words[0] == "service":
			service = words[1]
		case len(words) > 1 && words[0] == "rpc":
			name, _, _ := strings.Cut(words[1], "(")
			calls = append(calls, service+"/"+name)
		}
	}
	return calls
}

// textOf returns the files of a directory whose names end in a suffix, one after the other.
func textOf(t *testing.T, dir, suffix string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) {
			return err
		}
		data, err := os.ReadFile(path)
		all.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
