package highlight

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stet-dev/stet/internal/testenv"
)

// left are the languages of chroma that the package comment says are missing.
var left = []string{"Haxe", "Raku"}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

func chromaDir(t *testing.T) string {
	t.Helper()
	return goList(t, "-m", "-f", "{{.Dir}}", "github.com/alecthomas/chroma/v2")
}

// What this package is there for: chroma's own set of lexers must not be linked, as
// it works before main does.
func TestProgramHasNoEagerLexers(t *testing.T) {
	deps := strings.Fields(goList(t, "-deps", "github.com/stet-dev/stet/cmd/stet"))
	if !slices.Contains(deps, "github.com/stet-dev/stet/internal/highlight") {
		t.Error("the program does not highlight")
	}
	if slices.Contains(deps, "github.com/alecthomas/chroma/v2/lexers") {
		t.Error("the program links chroma's lexers")
	}
}

// Copies are the module's, byte for byte: after an upgrade, run go generate.
func TestArchiveIsFresh(t *testing.T) {
	dir := chromaDir(t)
	files, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	compare := func(name string, got []byte, original string) {
		want, err := os.ReadFile(filepath.Join(dir, original))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not the %s of the module", name, original)
		}
	}
	license, err := os.ReadFile("lexers.COPYING")
	if err != nil {
		t.Fatal(err)
	}
	compare("lexers.COPYING", license, "COPYING")
	for _, f := range files.File {
		if path, ok := strings.CutPrefix(f.Name, "embedded/"); ok {
			data, err := fs.ReadFile(files, f.Name)
			if err != nil {
				t.Fatal(err)
			}
			compare(f.Name, data, "lexers/embedded/"+path)
		}
	}
}

// Every name finds what it finds in chroma: lexers have the same heads, and the same
// order, which decides among equals.
func TestNamesAreChromas(t *testing.T) {
	ours := registry()
	var order, wantOrder []string
	for _, lexer := range ours.Lexers {
		order = append(order, lexer.Config().Name)
	}
	for _, want := range lexers.GlobalLexerRegistry.Lexers {
		config := want.Config()
		if slices.Contains(left, config.Name) {
			continue
		}
		wantOrder = append(wantOrder, config.Name)
		got := ours.Get(config.Name)
		if got == nil {
			t.Errorf("no lexer for %s", config.Name)
			continue
		}
		if diff := cmp.Diff(config, got.Config(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got): %s", config.Name, diff)
		}
		if typ := fmt.Sprintf("%T", want); !strings.HasPrefix(typ, "*lexers.") && typ != fmt.Sprintf("%T", got) {
			t.Errorf("%s is put together as %T, want %s", config.Name, got, typ)
		}
		for _, alias := range config.Aliases {
			if got, want := ours.Get(alias).Config().Name, lexers.Get(alias).Config().Name; got != want {
				t.Errorf("%q is %s, want %s", alias, got, want)
			}
		}
	}
	if diff := cmp.Diff(append(wantOrder, "Go raw string"), order); diff != "" {
		t.Errorf("order (-want +got): %s", diff)
	}
}

// A rule that names a lexer which is not there panics when it matches.
func TestLexersThatOthersUse(t *testing.T) {
	files, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	using := regexp.MustCompile(`<using lexer="([^"]*)"`)
	n := 0
	for _, f := range files.File {
		data, err := fs.ReadFile(files, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range using.FindAllSubmatch(data, -1) {
			n++
			if name := string(match[1]); registry().Get(name) == nil {
				t.Errorf("%s uses %q, which is not there", f.Name, name)
			}
		}
	}
	if n == 0 {
		t.Error("no lexer uses another")
	}
}

// otherwise are samples that need what this package leaves out.
var otherwise = []string{"haxe", "raku"}

// Chroma's samples have the tokens that chroma expects.
func TestTokensAreChromas(t *testing.T) {
	dir := filepath.Join(chromaDir(t), "lexers", "testdata")
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		sample, ok := strings.CutSuffix(path, ".actual")
		if err != nil || !ok || filepath.Base(filepath.Dir(path)) == "analysis" {
			return err
		}
		language := strings.Split(d.Name(), ".")[0]
		if parent := filepath.Dir(path); parent != dir {
			language = filepath.Base(parent)
		}
		if slices.Contains(otherwise, language) {
			return nil
		}
		n++
		return compareTokens(t, language, path, sample+".expected")
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 300 {
		t.Errorf("%d samples in %s", n, dir)
	}
}

// maxSample leaves out samples that take seconds, unless there is time.
var maxSample = testenv.Scale(64<<10, 1<<20)

func compareTokens(t *testing.T, language, sample, expected string) error {
	t.Helper()
	text, err := os.ReadFile(sample)
	if err != nil || len(text) > maxSample {
		return err
	}
	data, err := os.ReadFile(expected)
	if err != nil {
		return err
	}
	var want []chroma.Token
	if err := json.Unmarshal(data, &want); err != nil {
		return err
	}
	diff := ""
	// The lexers take a rule that needs more than a quarter of a second for one that does
	// not match. A machine that stood still for that long is asked again.
	for range 10 {
		got, err := chroma.Tokenise(chroma.Coalesce(registry().Get(language)), nil, string(text))
		if err != nil {
			return err
		}
		if diff = cmp.Diff(want, got); diff == "" {
			return nil
		}
	}
	t.Errorf("%s (-want +got): %s", filepath.Base(sample), diff)
	return nil
}
