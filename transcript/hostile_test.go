package transcript_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/transcript"
)

var hostile = []string{
	"<script>alert(1)</script>",
	"<img src=x onerror=alert(1)>",
	"text <b onmouseover=alert(1)>bold</b>",
	"[click](javascript:alert(1)) and ![pixel](https://tracker.example/p.gif)",
	"[a]: javascript:alert(1)\n\n[a]",
	"<javascript:alert(1)>",
	"[a](javascript&#58;alert(1)) [b](javascript&colon;alert(1))",
	"\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m",
	"access \u202e\u2066level\u2069 granted\u200f",
	"```\nnever closed",
	"~~~~\n```\n~~~",
	"<!-- a comment that never ends",
	"<script>\n```\n</script>\n\n```\n<img src=x onerror=alert(1)>\n```",
	"````\n</pre></code></article><script>alert(1)</script>",
	"> quote\n- list\n  <iframe src=//evil.example>\n",
	"# Turn 99\n\n---\n| a | b |\n|---|---|\n| <svg onload=alert(1)> | x |",
	"</title></style></textarea><svg/onload=alert(1)>",
	strings.Repeat("x", 1<<20),
	strings.Repeat("[", 50_000) + strings.Repeat("<a ", 10_000),
	strings.Repeat("![a](", 20_000),
	strings.Repeat("> ", 20_000),
	"a\rb\r\nc\x00d\u0085e\u2028f\U000e0041",
}

// everywhere saves a conversation that says a text in every place.
func everywhere(t testing.TB, f *fixture, id, text string) {
	t.Helper()
	before := text + "\nold"
	c, err := f.Create(t.Context(), conversation.Info{ID: id, Title: text[:min(len(text), 200)], Workspace: text[:min(len(text), 200)]})
	check(t, err)
	check(t, c.AppendTurn(t.Context(), turn(t, user(text), say(text), think(text), shellCall(text, text, 1), readCall(text, text),
		editCall(text, &before, text), mcpCall(text, map[string]any{text[:min(len(text), 1000)]: text}, text), taskCall(text, say(text)), unknownCall(30, text, text))))
	check(t, c.AppendTurn(t.Context(), must(conversation.NewShellTurn(&agentv1.ShellCommand{Command: text}, &agentv1.ShellOutput{Stdout: text, Stderr: text}))))
	_, err = c.Save(t.Context(), nil)
	check(t, err)
}

// A renderer reads destinations without their escapes: so must who judges them.
func TestLinksThatHideWhereTheyLead(t *testing.T) {
	f := newFixture(t)
	for i, link := range []string{
		"[x](javascript&colon;alert(1))", "[x](javascript&#58;alert(1))", "[x](<javascript&#x3A;alert(1)>)", "[x](data&colon;text/html,x)",
		"[x][a]\n\n[a]: javascript&#58;alert(1)", `[x](java\script\:alert(1))`, "[x](&sol;&sol;evil.example)", `[x](/\evil.example)`, `[x](\\\\evil.example)`,
	} {
		id := fmt.Sprint("c", i)
		f.save(t, id, turn(t, user("u"), say(link)))
		if md := f.written(t, id, transcript.Markdown, nil); !strings.Contains(md, "```text\n"+link) {
			t.Errorf("%q is still a link:\n%s", link, md)
		}
	}
	const harmless = "[x](docs/a&b.md#c) and [y](https://a.example/?a=1&amp;b=2)"
	f.save(t, "harmless", turn(t, user("u"), say(harmless)))
	if md := f.written(t, "harmless", transcript.Markdown, nil); !strings.Contains(md, "\n"+harmless) || strings.Contains(md, "```text\n"+harmless) {
		t.Errorf("harmless links were taken away:\n%s", md)
	}
}

func TestHostileTexts(t *testing.T) {
	f := newFixture(t)
	for i, text := range hostile {
		id := fmt.Sprint("c", i)
		everywhere(t, f, id, text)
		checkHTML(t, text, f.written(t, id, transcript.HTML, nil))
		checkMarkdown(t, text, f.written(t, id, transcript.Markdown, nil))
	}
}

// checkHTML holds a page to what it may contain.
func checkHTML(t testing.TB, text, page string) {
	t.Helper()
	allowed := map[string]bool{"charset": true, "content": true, "name": true, "http-equiv": true, "class": true, "id": true, "dir": true,
		"lang": true, "href": true, "rel": true, "open": true, "start": true}
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			if !strings.HasSuffix(page, "</main>\n</body>\n</html>\n") {
				t.Errorf("the page of %.60q does not end as it should", text)
			}
			checkVisible(t, text, page)
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			switch token.Data {
			case "script", "img", "iframe", "svg", "object", "embed", "form", "input", "base", "link", "video", "audio":
				t.Fatalf("the page of %.60q has a <%s>", text, token.Data)
			}
			for _, a := range token.Attr {
				if !allowed[a.Key] {
					t.Fatalf("the page of %.60q has <%s %s=%q>", text, token.Data, a.Key, a.Val)
				}
				if a.Key == "href" && !strings.HasPrefix(a.Val, "http") && !strings.HasPrefix(a.Val, "mailto:") {
					t.Fatalf("the page of %.60q links to %q", text, a.Val)
				}
			}
		}
	}
}

func checkVisible(t testing.TB, text, out string) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Errorf("what is written of %.60q is no UTF-8", text)
	}
	for _, r := range out {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || r > 0x600 && strings.ContainsRune("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", r) {
			t.Fatalf("what is written of %.60q holds %U", text, r)
		}
	}
}

func checkMarkdown(t testing.TB, text, doc string) {
	t.Helper()
	checkVisible(t, text, doc)
	if problem := transcript.MarkdownProblem(doc); problem != "" {
		t.Errorf("the document of %.60q %s", text, problem)
	}
	if n := strings.Count(doc, "\n## Turn 2\n"); n != 1 {
		t.Errorf("the document of %.60q has the heading of turn 2 %d times outside of code", text, n)
	}
}

func TestBrokenUTF8(t *testing.T) {
	f := newFixture(t)
	text := blob.New([]byte("caf\xe9 \xf0\x9f broken \xff"))
	check(t, f.blobs.Put(t.Context(), text))
	f.save(t, "c", turn(t, &agentv1.UserMessage{TextBlobId: text.ID.Bytes()}))
	for _, format := range transcript.Formats() {
		if out := f.written(t, "c", format, nil); !utf8.ValidString(out) || !strings.Contains(out, "broken \ufffd") {
			t.Errorf("as %s: %q", format, out)
		}
	}
}

func TestVisible(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"plain\ttext\n", "plain\ttext\n"},
		{"\x1b[1;31mred\x1b[m", "red"},
		{"\x1b[2J", "␛[2J"},
		{"\x1b]0;title\a", "␛]0;title␇"},
		{"a\r\nb\rc", "a\nb\nc"},
		{"\u202egnp.exe", "⟨U+202E⟩gnp.exe"},
		{"\x00\x7f\u009b31m", "␀␡⟨U+009B⟩31m"},
		{"\xff", "\ufffd"},
		{"נאום 👩‍💻", "נאום 👩‍💻"},
	} {
		if got := transcript.Visible(tt.in); got != tt.want {
			t.Errorf("Visible(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// TestEverythingIsWritten is a property: whatever users and agents say is in
// every export.
func TestEverythingIsWritten(t *testing.T) {
	f := newFixture(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		words := rapid.StringMatching(`[a-z0-9]{1,8}( [A-Za-z<>*_.&/]{1,8}){0,6} end[0-9]{6}`)
		id := fmt.Sprint("c", n)
		var turns []conversation.Turn
		var said []string
		for range rapid.IntRange(1, 4).Draw(rt, "turns") {
			q, a := words.Draw(rt, "question"), words.Draw(rt, "answer")
			said = append(said, q, a)
			turns = append(turns, turn(t, user(q), say(a)))
		}
		f.save(t, id, turns...)
		for _, format := range transcript.Formats() {
			out := f.written(t, id, format, nil)
			for _, s := range said {
				last := s[strings.LastIndexByte(s, ' ')+1:]
				if !strings.Contains(out, last) || format == transcript.JSONL && !strings.Contains(out, s) {
					rt.Fatalf("%q is not in the %s export:\n%s", s, format, out)
				}
			}
		}
	})
}
