package stet

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A dependency is a row of the table in docs/DESIGN.md.
type dependency struct{ module, version, licence, released, why string }

// licenceTexts tell licences by a sentence of theirs. Those that are not allowed
// are here to be recognised.
var licenceTexts = map[string]*regexp.Regexp{
	"Apache-2.0":   regexp.MustCompile(`Apache License,? Version 2\.0`),
	"BSD-2-Clause": regexp.MustCompile(`Redistributions of source code must retain`),
	"BSD-3-Clause": regexp.MustCompile(`to endorse or promote products derived from`),
	"GPL":          regexp.MustCompile(`GNU (AFFERO |LESSER |LIBRARY )?GENERAL PUBLIC LICENSE`),
	"ISC":          regexp.MustCompile(`Permission to use, copy, modify, and(/or)? distribute`),
	"MIT":          regexp.MustCompile(`Permission is hereby granted, free of charge`),
	"MPL-2.0":      regexp.MustCompile(`Mozilla Public License Version 2\.0`),
}

// allowedLicences may be linked into the program; tests may use MPL-2.0, too.
var allowedLicences = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

func TestDependenciesAreKnown(t *testing.T) {
	table, required, linked := dependencyTable(t), requirements(t), linkedModules(t)
	cached := cachedModules(t, slices.Collect(maps.Keys(required)))
	for _, module := range slices.Sorted(maps.Keys(required)) {
		d, ok := table[module]
		if !ok {
			t.Errorf("go.mod requires %s %s, which docs/DESIGN.md does not explain", module, required[module])
			continue
		}
		if d.version != required[module] {
			t.Errorf("%s: go.mod has %s, docs/DESIGN.md %s; review the new version and its licence", module, required[module], d.version)
			continue
		}
		forTests := strings.HasPrefix(d.why, "tests: ")
		if len(d.why) < len("tests: ")+3 {
			t.Errorf("%s has no reason", module)
		}
		if forTests == linked[module] {
			t.Errorf("%s is linked into the program: %v, which its reason %q contradicts", module, linked[module], d.why)
		}
		for _, licence := range strings.Split(d.licence, ", ") {
			if !slices.Contains(allowedLicences, licence) && (licence != "MPL-2.0" || !forTests) {
				t.Errorf("%s has the licence %s, which is not allowed", module, licence)
			}
		}
		if _, err := time.Parse(time.DateOnly, d.released); err != nil {
			t.Errorf("%s: when was %s released? %v", module, d.version, err)
		}
		compareWithCache(t, d, cached[module])
	}
	for module := range table {
		if required[module] == "" {
			t.Errorf("docs/DESIGN.md explains %s, which go.mod does not require", module)
		}
	}
}

// dependencyTable reads the rows of docs/DESIGN.md that have five columns.
func dependencyTable(t *testing.T) map[string]dependency {
	t.Helper()
	text, err := os.ReadFile("docs/DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	table := make(map[string]dependency)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 5 || !strings.Contains(cells[0], ".") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		table[cells[0]] = dependency{cells[0], cells[1], cells[2], cells[3], cells[4]}
	}
	return table
}

// requirements returns the direct dependencies with their versions.
func requirements(t *testing.T) map[string]string {
	t.Helper()
	var mod struct {
		Require []struct {
			Path, Version string
			Indirect      bool
		}
	}
	if err := json.Unmarshal(goCommand(t, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	required := make(map[string]string)
	for _, r := range mod.Require {
		if !r.Indirect {
			required[r.Path] = r.Version
		}
	}
	return required
}

// linkedModules returns the modules of which the program has packages.
func linkedModules(t *testing.T) map[string]bool {
	t.Helper()
	linked := make(map[string]bool)
	for _, module := range strings.Fields(string(goCommand(t, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/stet"))) {
		linked[module] = true
	}
	return linked
}

// cachedModule is what this machine has of a module: nothing, if no package that was
// built so far uses it.
type cachedModule struct {
	Path, Dir string
	Time      *time.Time
}

func cachedModules(t *testing.T, names []string) map[string]cachedModule {
	t.Helper()
	cached := make(map[string]cachedModule)
	out := json.NewDecoder(bytes.NewReader(goCommand(t, append([]string{"list", "-m", "-json"}, names...)...)))
	for {
		var m cachedModule
		if err := out.Decode(&m); errors.Is(err, io.EOF) {
			return cached
		} else if err != nil {
			t.Fatal(err)
		}
		cached[m.Path] = m
	}
}

// compareWithCache holds a row to the module itself.
func compareWithCache(t *testing.T, d dependency, module cachedModule) {
	t.Helper()
	// Proxies date a release by its tag or by its commit, in UTC or where it was made.
	if released, err := time.Parse(time.DateOnly, d.released); err == nil && module.Time != nil && module.Time.Sub(released).Abs() > 48*time.Hour {
		t.Errorf("%s %s was released on %s, docs/DESIGN.md says %s", d.module, d.version, module.Time.UTC().Format(time.DateOnly), d.released)
	}
	if module.Dir == "" {
		return
	}
	if got := licencesOf(t, module.Dir); strings.Join(got, ", ") != d.licence {
		t.Errorf("%s %s has the licence %q, docs/DESIGN.md says %q", d.module, d.version, strings.Join(got, ", "), d.licence)
	}
}

// licencesOf names the licences in a module's directory, in alphabetical order.
func licencesOf(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"LICEN*", "COPYING*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			words := strings.Join(strings.Fields(string(text)), " ")
			for name, sentence := range licenceTexts {
				if sentence.MatchString(words) && !slices.Contains(found, name) {
					found = append(found, name)
				}
			}
		}
	}
	if slices.Contains(found, "BSD-3-Clause") { // which has the sentence of the shorter one
		found = slices.DeleteFunc(found, func(name string) bool { return name == "BSD-2-Clause" })
	}
	slices.Sort(found)
	return found
}

// goCommand runs go without a network.
func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly")
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		t.Fatalf("go %q: %v\n%s", args, err, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
