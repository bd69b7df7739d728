package gfm_test

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"pgregory.net/rapid"

	"github.com/stet-dev/stet/transcript/internal/gfm"
)

var (
	ours   = goldmark.New(goldmark.WithExtensions(gfm.Extension{}))
	theirs = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList))

	// What goldmark writes and this package leaves out. Text cannot look like it: there
	// "<" and quotes are escaped.
	leftOut = regexp.MustCompile(` style="text-align:[a-z]+"|<input (checked="" )?disabled="" type="checkbox">`)
)

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func render(t failer, md goldmark.Markdown, source string) string {
	t.Helper()
	var b bytes.Buffer
	if err := md.Convert([]byte(source), &b); err != nil {
		t.Fatalf("render %q: %v", source, err)
	}
	return b.String()
}

func check(t failer, source string) {
	t.Helper()
	got, want := render(t, ours, source), leftOut.ReplaceAllString(render(t, theirs, source), "")
	if got != want {
		t.Fatalf("%q\n got %q\nwant %q", source, got, want)
	}
}

var sources = []string{
	"| a | b |\n|---|---|\n| 1 | 2 |\n",
	"a | b\n:-- | --:\n1 | 2 | 3\n4\n\nafter",
	"a\n:-:\n1\n| 2 |\n||\n|\n",
	"before\nand\na | b\n---|---\n1 | 2",
	"| a |\n|---|---|\n| 1 |\n",
	"| a | b | c |\n|---|---|\n",
	"| a |\n| -- - |\n",
	"a\n---\nb\n|\n|:\n::\n",
	"a | b\n    ---|---\n",
	"> a | b\n> ---|---\n> 1 | ~~2~~\n\n- x | y\n  ---|---\n  1 | 2\n",
	"| `a \\| b` | c \\| d | `e` \\| `f\\|g\\|h` |\n|---|---|---|\n| ``i \\| ` j`` | `k | l` |\n",
	"| \\| |\n|-|\n| `\\|` `\\|\\|` | `x\\|` |\n",
	"|a|\f\n|-|\v\n|b|\n",
	"\\| a |\n|---|\n",
	"a ~b~ ~~c~~ ~~~d~~~ ~~e~ f~~ ~~*g*~~ *~~h*~~ ~ ~~",
	"~~a\nb~~ ~~ c ~~ x~~y~~z",
	"- [ ] a\n- [x] b\n- [X]\n- [y] c\n- [\t]  d\n- [ ]e\n- *x* [ ] f\n",
	"1. [ ] a\n\n   [ ] b\n2. > [ ] c\n\n[ ] d\n\n[ ]: /url\n",
	"- [x]\n  next\n- [x](link) [ ]\n- [\n",
	"<b>| a |</b>\n|---|\n| www.a.example http://b.example |",
}

func TestHTMLIsThatOfGoldmark(t *testing.T) {
	for _, source := range sources {
		check(t, source)
	}
	if got, want := render(t, ours, "|a|\n|-|\n|~~b~~|\n\n- [x] c\n"), "<table>\n<thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td><del>b</del></td>\n</tr>\n</tbody>\n</table>\n<ul>\n<li> c</li>\n</ul>\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnythingIsAsInGoldmark(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"|", "|", "-", "-", "---", ":", "\n", "\n", "\n\n", " ", "    ", "\t", "`", "``", "\\", "\\|", "~", "~~", "[ ]", "[x] ", "[", "]", "- ", "1. ", "> ", "a", "b", "*", "é", "\f", "<b>", "&amp;"})
	rapid.Check(t, func(t *rapid.T) {
		source := ""
		for _, piece := range rapid.SliceOfN(pieces, 0, 60).Draw(t, "pieces") {
			source += piece
		}
		check(t, source)
	})
}

func FuzzHTMLIsThatOfGoldmark(f *testing.F) {
	for _, source := range sources {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) { check(t, source) })
}
