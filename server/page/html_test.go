package page

import (
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/highlight"
)

func init() { highlight.Patient(time.Hour) }

func TestHighlightedLanguages(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a.go", "func f() { return `{{.}}` } // c",
			"{k func} {nf f}() { {k return} {s `}{c {{}{nb .}{c }}}{s `} } {c // c}"},
		{"go", "var a = 1", "{k var} a = {m 1}"},
		{"a.py", "@d\ndef f(x):\n    return 'a' # c",
			"{nb @d}\n{k def} {nf f}(x):\n    {k return} {s 'a'} {c # c}"},
		{"a.ts", "const a: string = `x${1}`", "{k const} a: {k string} = {s `x}{s ${}{m 1}{s }}{s `}"},
		{"a.js", "export function f() { return null }", "{k export} {k function} f() { {k return} {k null} }"},
		{"a.tsx", `const a = <b c="d">e</b>`, `{k const} a = <{nf b} {nb c}={s "d"}>e</{nf b}>`},
		{"a.html", `<p class="a">x<script>let a = 1</script></p>`,
			`<{nf p} {nb class}={s "a"}>x<{nf script}>{k let} a = {m 1}</{nf script}></{nf p}>`},
		{"a.css", "a { color: red } /* c */", "{nf a} { {k color}: {k red} } {c /* c */}"},
		{"a.md", "---\na: 1\n---\n# T\n* `x`\n```go\nvar a\n```\n",
			"---\n{nf a}: {m 1}\n---\n{nf # T}\n{k *} {s `x`}\n{s ```go}\n{k var} a\n{s ```}\n"},
		{"a.c", "#include <a.h>\nint f(void);", "{c #include} {c <a.h>}\n{k int} {nf f}({k void});"},
		{"a.java", `class A { String s = "x"; }`, `{k class} {nf A} { String s = {s "x"}; }`},
		{"a.rb", "def f\n  'x' # c\nend", "{k def} {nf f}\n  {s 'x'} {c # c}\n{k end}"},
		{"a.sh", `if true; then echo "x"; fi # c`, `{k if} true; {k then} {nb echo} {s "x"}; {k fi} {c # c}`},
		{"a.sql", "SELECT 1 FROM t -- c", "{k SELECT} {m 1} {k FROM} t {c -- c}"},
		{"a.json", `{"a": [1, true]}`, `{{nf "a"}: [{m 1}, {k true}]}`},
		{"a.yaml", "a: 1 # c", "{nf a}: {m 1} {c # c}"},
		{"a.proto", "message A { string b = 1; }", "{k message} {nf A} { {k string} b = {m 1}; }"},
		{"Dockerfile", "FROM a\nRUN echo 1", "{k FROM} {s a}\n{k RUN} {nb echo} {m 1}"},
		{"a.svelte", "{#if a}<p>x</p>{/if}", "{{k #if} a}<{nf p}>x</{nf p}>{{k /if}}"},
		{"a.el", "(require 'x) ; c", "({nb require} {s 'x}) {c ; c}"},
	} {
		got := strings.Join(highlighted(t.Context(), c.name, c.text), "\n")
		if got := short.Replace(got); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// short writes {class text} for a span, so that what is expected can be read.
var short = strings.NewReplacer(`<span class="`, "{", `">`, " ", "</span>", "}",
	"&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&amp;", "&")

func TestTextWithoutHighlights(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"a.unheard-of", "var a"},
		{"", "var a"},
		{"a.go", ""},
		{"a.go", strings.Repeat("a", highlight.MaxBytes+1)},
	} {
		if got := highlighted(t.Context(), c.name, c.text); got != nil {
			t.Errorf("%q: %q, want nothing", c.name, got)
		}
	}
}
