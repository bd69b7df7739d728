package highlight

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alecthomas/chroma/v2"

	"github.com/stet-dev/stet/internal/testenv"
)

func TestNamesOfFilesAndLanguages(t *testing.T) {
	for name, want := range map[string]string{
		"dir/main.go": "Go", "golang": "Go", "GO": "Go",
		"README.md": "markdown", "Makefile": "Makefile", "index.php": "PHP", "index.phtml": "PHTML",
		"a.ts": "TypeScript", "a.tsx": "TypeScript", "a.py": "Python", "a.html": "HTML",
	} {
		lexer := forName(name)
		if lexer == nil {
			t.Errorf("nothing for %q, want %s", name, want)
		} else if got := lexer.Config().Name; got != want {
			t.Errorf("%s for %q, want %s", got, name, want)
		}
	}
	for _, name := range []string{"", "noise", "a.unheard-of", "haxe", "raku"} {
		if lexer := forName(name); lexer != nil {
			t.Errorf("%s for %q, want nothing", lexer.Config().Name, name)
		}
	}
}

// Files that share an answer get the one that each would get by itself: with every
// pattern and every name of a language, and with stems and endings of others.
func TestAlikeNamesGetTheSameLexer(t *testing.T) {
	var names []string
	for _, lexer := range registry().Lexers {
		c := lexer.Config()
		for _, glob := range slices.Concat(c.Filenames, c.AliasFilenames) {
			plain := strings.NewReplacer("*", "some", "?", "x", "[", "", "]", "").Replace(glob)
			names = append(names, plain, "dir.d/"+plain, "a."+plain)
		}
		names = append(names, c.Name, "x."+c.Name)
		names = append(names, c.Aliases...)
	}
	names = append(names, "a.go.orig", "a.go~", "a.unheard-of", "a.unheard-of.go", ".go", ".bashrc", "go", "Makefile.in", "CMakeLists.txt", "a.", "..", "vb.net", "x/.go")
	shared := 0
	for i, name := range names {
		if key := alike(name); key != name {
			if shared++; i%31 != 0 && !testenv.Long() {
				continue // chroma takes its time
			}
			if got, want := find(registry(), key), find(registry(), name); got != want {
				t.Errorf("%q shares the answer of %q, %v, and would get %v by itself", name, key, got, want)
			}
		}
	}
	if shared < len(names)/4 {
		t.Errorf("only %d of %d names share answers", shared, len(names))
	}
	for _, pair := range [][2]string{{"server/a.go", "b.go"}, {"x/y/z.tsx", "App.tsx"}, {"1.unheard-of", "2.unheard-of"}} {
		if alike(pair[0]) != alike(pair[1]) {
			t.Errorf("%q and %q do not share an answer", pair[0], pair[1])
		}
	}
}

// Answers are kept, those without a lexer as well, but not without end.
func TestAnswersAreKept(t *testing.T) {
	for _, name := range []string{"a.go", "a.unheard-of"} {
		want := find(registry(), name)
		for range 2 {
			if got := forName(name); got != want {
				t.Errorf("%v for %q, want %v", got, name, want)
			}
		}
		if got, ok := asked.get(alike(name)); !ok || got != want {
			t.Errorf("kept %v %t for %q, want %v", got, ok, name, want)
		}
	}
	var some answers
	for i := range 3*maxAnswers + 1 {
		some.put(fmt.Sprint(i), nil)
		if n := len(some.byName); n > maxAnswers {
			t.Fatalf("%d answers are kept", n)
		}
		if _, ok := some.get(fmt.Sprint(i)); !ok {
			t.Fatalf("answer %d is lost", i)
		}
	}
	if lexer := forName(strings.Repeat("a", maxName) + ".go"); lexer != nil {
		t.Errorf("%s for a name without end", lexer.Config().Name)
	}
}

// Lexers are read and compiled on first use, also with several callers at once.
func TestFirstUseByMany(t *testing.T) {
	registry = sync.OnceValue(load)
	asked = answers{}
	const text = "---\na: 1\n---\n# Title\n```go\nvar a = `{{.}}`\n```\n"
	results := make([]string, 8)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() { results[i] = tokens(t, "a.md", text) })
	}
	group.Wait()
	for _, got := range results {
		if got != results[0] || !strings.Contains(got, "KeywordDeclaration") {
			t.Errorf("tokens %s, want %s", got, results[0])
		}
	}
}

func tokens(t *testing.T, name, text string) string {
	all, err := chroma.Tokenise(forName(name), &chroma.TokeniseOptions{State: "root"}, text)
	if err != nil {
		t.Error(err)
	}
	var b strings.Builder
	for _, token := range all {
		b.WriteString(token.Type.String() + " " + token.Value + "|")
	}
	return b.String()
}

func TestPartsOfText(t *testing.T) {
	for name, c := range map[string]struct {
		language, text, want string
	}{
		"front matter":              {"md", "---\na: 1\n---\n# T\n", "NameTag a|"},
		"front matter, CRLF":        {"md", "---\r\na: 1\r\n---\r\n# T\n", "NameTag a|"},
		"front matter without text": {"md", "---\na: 1\n---", "NameTag a|"},
		"a line and no more":        {"md", "---\n# T\n", "GenericHeading # T"},
		"no front matter":           {"md", "# T\n---\na: 1\n---\n", "GenericHeading # T"},
		"body of JSON":              {"http", "POST / HTTP/1.1\nContent-Type: application/json\n\n{\"a\":1}", `NameTag "a"|`},
		"body, CRLF":                {"http", "HTTP/1.1 200 OK\r\ncontent-type: application/problem+json; charset=utf-8\r\n\r\n{\"a\":1}", `NameTag "a"|`},
		"body of another kind":      {"http", "HTTP/1.1 200 OK\nContent-Type: application/x-none\n\n{\"a\":1}", `Generic {"a":1}|`},
		"body of no kind":           {"http", "HTTP/1.1 200 OK\nHost: a\n\n{\"a\":1}", `Generic {"a":1}|`},
		"header that is none":       {"http", "HTTP/1.1 200 OK\n: a\n\n{\"a\":1}", "KeywordReserved HTTP|"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tokens(t, c.language, c.text); !strings.Contains(got, c.want) {
				t.Errorf("tokens %s, want %s", got, c.want)
			}
		})
	}
}
