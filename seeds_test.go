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
	namedFlag    = regexp.MustCompile("`(?:stet [^`]*)?--([a-z-]+)")
	namedFunc    = regexp.MustCompile("`([a-z]+)\\.([A-Z]\\w*)`")
	evidenceItem = regexp.MustCompile("`([a-z0-9/]+)`:|\\b(root):|\\b((?:Test|Fuzz)[A-Z]\\w*)|\\b([a-z_-]+\\.txtar)")
)

// TestSeedsAreInTheProduct checks that each system of docs/SEEDS.md has a package, a way
// to use it in the product and tests, and that all of them exist.
func TestSeedsAreInTheProduct(t *testing.T) {
	page, err := os.ReadFile("docs/SEEDS.md")
	if err != nil {
		t.Fatal(err)
	}
	p := newSeedsPage(t)
	p.fail = func(format string, args ...any) { t.Errorf(format, args...) }
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

// TestSeedsWithoutAProductPathAreFound checks the check: a row fails if what it names does
// not exist, or is not in the program.
func TestSeedsWithoutAProductPathAreFound(t *testing.T) {
	p := newSeedsPage(t)
	const packages, shown = "`blob`", "`blob`: TestSumIsSHA256"
	for _, row := range []struct{ packages, product, shown string }{
		{packages, "", shown},
		{packages, "every client", shown},
		{packages, "`stet nothing`", shown},
		{packages, "`stet command`", shown},
		{packages, "`stet blob --nothing`", shown},
		{packages, "BlobService/Nothing", shown},
		{packages, "setting `remote.nothing`", shown},
		{packages, "`stet blob`, by `blob.Nothing`", shown},
		{packages, "`stet blob`, by `agentrun.NewScriptedNothing`", shown},
		{"`blob/nothing`", "`stet blob`", shown},
		{"`kv/kvtest`", "`stet blob`", shown}, // a suite, which the program does not contain
		{packages, "`stet blob`", "`blob`: TestNothing"},
		{packages, "`stet blob`", "`internal/cli`: nothing.txtar"},
		{packages, "`stet blob`", ""},
	} {
		failed := false
		p.fail = func(string, ...any) { failed = true }
		if p.row("0", row.packages, row.product, row.shown); !failed {
			t.Errorf("this row is accepted: %v", row)
		}
	}
	p.fail = t.Errorf
	p.row("0", packages, "`stet blob`, BlobService/Put, setting `remote.url`, `stet export --base`, by `jsoncheckpoint.Create`", shown)
}

type seedsPage struct {
	t        *testing.T
	fail     func(format string, args ...any)
	verbs    []string
	calls    []string
	settings string
	server   string
	program  map[string]bool // the packages that the program contains
	code     map[string]string
	tests    map[string][]string
}

func newSeedsPage(t *testing.T) *seedsPage {
	t.Helper()
	p := &seedsPage{t: t, verbs: verbsOfCLI(t), calls: callsOfProtos(t), tests: make(map[string][]string), program: map[string]bool{}, code: map[string]string{}}
	p.settings = codeOf(t, "internal/cli")
	p.server = codeOf(t, "server") + codeOf(t, "agentrun") + codeOf(t, "cloudagent")
	imports := ourImports(t)
	var add func(pkg string)
	add = func(pkg string) {
		if p.program[pkg] {
			return
		}
		p.program[pkg] = true
		p.code[pkg] = codeIn(t, pkg)
		for _, imported := range imports[pkg] {
			add(imported)
		}
	}
	add("cmd/stet")
	return p
}

// called reports whether the program calls a function outside of its package.
func (p *seedsPage) called(pkg, name string) bool {
	for in, code := range p.code {
		if filepath.Base(in) != pkg && strings.Contains(code, pkg+"."+name+"(") {
			return true
		}
	}
	return false
}

func (p *seedsPage) row(number, packages, product, shown string) {
	named := namedPackage.FindAllStringSubmatch(packages, -1)
	for _, m := range named {
		if files, err := filepath.Glob(filepath.Join(m[1], "*.go")); err != nil || len(files) == 0 {
			p.fail("%s: there is no package %s", number, m[1])
		} else if !p.program[m[1]] {
			p.fail("%s: the program does not contain %s", number, m[1])
		}
	}
	if len(named) == 0 {
		p.fail("%s names no package", number)
	}
	p.product(number, product)
	p.shown(number, shown)
}

func (p *seedsPage) product(number, product string) {
	ways := 0
	for _, m := range namedVerb.FindAllStringSubmatch(product, -1) {
		if ways++; !slices.Contains(p.verbs, m[1]) {
			p.fail("%s: there is no verb %s", number, m[1])
		}
	}
	for _, call := range namedCall.FindAllString(product, -1) {
		if ways++; !slices.Contains(p.calls, call) {
			p.fail("%s: there is no call %s", number, call)
			continue
		}
		_, method, _ := strings.Cut(call, "/")
		if !regexp.MustCompile(`func \(\w+ \*?\w+\) ` + method + `\(`).MatchString(p.server) {
			p.fail("%s: nothing answers %s", number, call)
		}
	}
	for _, m := range namedFlag.FindAllStringSubmatch(product, -1) {
		if !strings.Contains(p.settings, `, "`+m[1]+`", `) {
			p.fail("%s: there is no flag --%s", number, m[1])
		}
	}
	for _, m := range namedFunc.FindAllStringSubmatch(product, -1) {
		if !p.called(m[1], m[2]) {
			p.fail("%s: the program does not call %s.%s", number, m[1], m[2])
		}
	}
	for _, m := range namedSetting.FindAllStringSubmatch(product, -1) {
		if ways++; !strings.Contains(p.settings, `{"`+m[1]+`",`) {
			p.fail("%s: there is no setting %s", number, m[1])
		}
	}
	if ways == 0 {
		p.fail("%s is not used by the product", number)
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
				p.fail("%s: %v", number, err)
			}
		default:
			found++
			if p.tests[pkg] == nil {
				p.tests[pkg] = testsOf(p.t, pkg)
			}
			if !slices.Contains(p.tests[pkg], test) {
				p.fail("%s: %s has no %s", number, pkg, test)
			}
		}
	}
	if found == 0 {
		p.fail("%s has no test", number)
	}
}

// verbsOfCLI returns the verbs of the command line: those that its list of commands has
// and that say how they are used.
func verbsOfCLI(t *testing.T) (verbs []string) {
	t.Helper()
	list, err := os.ReadFile("internal/cli/commands.go")
	if err != nil {
		t.Fatal(err)
	}
	code := codeOf(t, "internal/cli")
	for _, m := range regexp.MustCompile(`\ta\.([a-z]+)Command\(\),`).FindAllStringSubmatch(string(list), -1) {
		if regexp.MustCompile(`(Use:\s+|Command\()"` + m[1] + `[ "]`).MatchString(code) {
			verbs = append(verbs, m[1])
		}
	}
	return verbs
}

// codeOf returns the Go files of a tree that are not tests.
func codeOf(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
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

// codeIn returns the Go files of a package that are not tests.
func codeIn(t *testing.T, pkg string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
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
