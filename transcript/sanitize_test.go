package transcript_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/stet-dev/stet/transcript"
)

// referencePolicy is what the sanitizer does, as told to one that many others use.
func referencePolicy(classes bool) *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "li", "em", "strong", "del",
		"code", "pre", "blockquote", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("start").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("ol")
	p.AllowElements("ol")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.AllowRelativeURLs(false)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	if classes {
		p.AllowAttrs("class").Matching(regexp.MustCompile(`^[a-z][a-z0-9]{0,3}$`)).OnElements("span")
	}
	return p
}

// asParsed returns HTML as a browser would understand it within a page.
func asParsed(t *testing.T, source string) (nodes []*html.Node, rendered string) {
	t.Helper()
	nodes, err := html.ParseFragment(strings.NewReader(source), &html.Node{Type: html.ElementNode, Data: "article", DataAtom: atom.Article})
	if err != nil {
		t.Fatalf("parse %q: %v", source, err)
	}
	var b strings.Builder
	for _, n := range nodes {
		if err := html.Render(&b, n); err != nil {
			t.Fatalf("render %q: %v", source, err)
		}
	}
	return nodes, b.String()
}

// foreignPart returns what a parsed piece of HTML holds that it must not.
func foreignPart(n *html.Node, classes bool) string {
	switch n.Type {
	case html.TextNode:
		return ""
	case html.ElementNode:
	default:
		return fmt.Sprintf("a node of type %d: %q", n.Type, n.Data)
	}
	if n.Namespace != "" {
		return fmt.Sprintf("<%s> of %s", n.Data, n.Namespace)
	}
	allowed := map[string]string{"p": "", "br": "", "hr": "", "h1": "", "h2": "", "h3": "", "h4": "", "h5": "", "h6": "", "ul": "", "ol": "start",
		"li": "", "em": "", "strong": "", "del": "", "code": "", "pre": "", "blockquote": "", "table": "", "thead": "", "tbody": "", "tr": "",
		"th": "", "td": "", "a": "href rel"}
	if classes {
		allowed["span"] = "class"
	}
	attributes, ok := allowed[n.Data]
	if !ok {
		return "<" + n.Data + ">"
	}
	for _, a := range n.Attr {
		bad := fmt.Sprintf("<%s %s=%q>", n.Data, a.Key, a.Val)
		if a.Namespace != "" || !strings.Contains(" "+attributes+" ", " "+a.Key+" ") {
			return bad
		}
		switch a.Key {
		case "href":
			// What browsers leave out must not be what makes it harmless.
			u, err := url.Parse(strings.Map(func(r rune) rune {
				if r <= ' ' {
					return -1
				}
				return r
			}, a.Val))
			if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
				return bad
			}
		case "rel":
			if a.Val != "nofollow noreferrer" {
				return bad
			}
		case "start":
			if !regexp.MustCompile(`^[0-9]{1,9}$`).MatchString(a.Val) {
				return bad
			}
		case "class":
			if !regexp.MustCompile(`^[a-z][a-z0-9]{0,3}$`).MatchString(a.Val) {
				return bad
			}
		}
	}
	if n.Data == "a" && len(n.Attr) != 2 {
		return fmt.Sprintf("a link with %v", n.Attr)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if bad := foreignPart(c, classes); bad != "" {
			return bad
		}
	}
	return ""
}

// checkSanitized holds the sanitizer to its promise for one text: what it leaves is
// harmless, and the reference would take nothing more from it.
func checkSanitized(t *testing.T, source string) {
	t.Helper()
	for _, classes := range []bool{false, true} {
		got := transcript.Sanitize(source, classes)
		nodes, rendered := asParsed(t, got)
		for _, n := range nodes {
			if bad := foreignPart(n, classes); bad != "" {
				t.Errorf("of %q is left %s, in %q", source, bad, got)
			}
		}
		if _, again := asParsed(t, referencePolicy(classes).Sanitize(got)); again != rendered {
			t.Errorf("of %q is left %q, of which the reference leaves\n%q", source, rendered, again)
		}
		if again := transcript.Sanitize(got, classes); again != got {
			t.Errorf("of %q is left %q, of which %q is left", source, got, again)
		}
	}
}

const link = `rel="nofollow noreferrer"`

var sanitized = []struct{ in, want string }{
	{"", ""},
	{" \n", " \n"},
	{"a < b && c > d \"q\" 'r'", "a &lt; b &amp;&amp; c &gt; d &#34;q&#34; &#39;r&#39;"},
	{"<p>x</p><br><br/><hr /><P>y</P>", "<p>x</p><br><br><hr><p>y</p>"},
	{`<h1 id="x" class="y" style="color:red">t</h1>`, "<h1>t</h1>"},
	{`<ol start="7"><li>x</li></ol><ol start="-1"></ol><ol start="1234567890"></ol><ol start=""></ol>`, `<ol start="7"><li>x</li></ol><ol></ol><ol></ol><ol></ol>`},
	{`<table><thead><tr><th style="text-align:left">h</th></tr></thead><tbody><tr><td colspan=9>d</td></tr></tbody></table>`,
		"<table><thead><tr><th>h</th></tr></thead><tbody><tr><td>d</td></tr></tbody></table>"},
	{"<div><b>bold</b> <i>i</i></div>", "bold i"},
	{`<input checked="" disabled="" type="checkbox"> task`, " task"},

	// Scripts and whatever runs.
	{"a<script>alert(1)</script>b", "ab"},
	{"a<script/>alert(1)</script>b", "ab"},
	{"a<SCRIPT SRC=//evil.example>alert(1)</ScRiPt >b", "ab"},
	{"a<script>alert(1)", "a"},
	{"a</script>b", "ab"},
	{"<scr<script>ipt>alert(1)</scr</script>ipt>", "ipt&gt;alert(1)ipt&gt;"},
	{"<scr\x00ipt>alert(1)</scr\x00ipt>", "alert(1)"},
	{"<p onclick=alert(1) onmouseover='x' ON\x00LOAD=y>t</p>", "<p>t</p>"},
	{"<p/onclick=alert(1)>t</p>", "<p>t</p>"},
	{"<img src=x onerror=alert(1)>", ""},
	{"<svg onload=alert(1)><p>x</p></svg>", "<p>x</p>"},
	{"<svg><style><img src=x onerror=alert(1)></style></svg>", ""},
	{"<body onload=alert(1)><frameset><frame src=javascript:1></frameset>t", "t"},
	{"<object data=x><embed src=y>inside</object>after", "after"},
	{"<object><object>1</object>2</object>3", "3"},
	{"<form action=javascript:1><button formaction=javascript:2>go</button></form>", "go"},
	{"<base href=//evil.example><link rel=stylesheet href=x><meta http-equiv=refresh content=0>", ""},

	// Text that is not read as HTML.
	{"<textarea><script>alert(1)</script></textarea>", "&lt;script&gt;alert(1)&lt;/script&gt;"},
	{"<title></title><img src=x onerror=alert(1)></title>x", "x"},
	{"<style>*{display:none}</style>x", "x"},
	{"<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">x", "&#34;&gt;x"},
	{"<template><script>alert(1)</script><p>t</p></template>", "<p>t</p>"},
	{"<iframe srcdoc='<script>1</script>'><p>x</p></iframe>y", "y"},
	{"<xmp><p onclick=1></xmp>", "&lt;p onclick=1&gt;"},
	{"<plaintext><script>1</script>", "&lt;script&gt;1&lt;/script&gt;"},
	{"<!-- <p>x</p> -->y", "y"},
	{"<!--><script>alert(1)</script>-->", "--&gt;"},
	{"<!-- never ends <p>", ""},
	{"<!doctype html [<!entity x '<p>'>]>x", "&#39;&gt;]&gt;x"},
	{"<![CDATA[<script>alert(1)</script>]]>x", "alert(1)]]&gt;x"},
	{"<?php echo '<p>' ?>x", "&#39; ?&gt;x"},
	{"&lt;script&gt;alert(1)&lt;/script&gt;", "&lt;script&gt;alert(1)&lt;/script&gt;"},
	{"&#60;script&#62;", "&lt;script&gt;"},
	{"<", "&lt;"},
	{"a\x00b", "a\x00b"},

	// Links.
	{`<a href="https://a.example/x?y=1&amp;z=2#f" title="t" target="_blank" rel="opener">x</a>`, `<a href="https://a.example/x?y=1&amp;z=2#f" ` + link + `>x</a>`},
	{`<a href=" HTTP://a.example/ ">x</a>`, `<a href="http://a.example/" ` + link + `>x</a>`},
	{`<a href="mailto:a@b.example">x</a>`, `<a href="mailto:a@b.example" ` + link + `>x</a>`},
	{`<a href="https://a.example/ä b">x</a>`, "x"},
	{`<a href="https://a.example/&quot;onclick=1">x</a>`, `<a href="https://a.example/%22onclick=1" ` + link + `>x</a>`},
	{`<a name="n">x</a>`, "x"},
	{`<a href>x</a><a href="">y</a>`, "xy"},
	{`<a href="/path">x</a><a href="//host/path">y</a><a href="#here">z</a>`, "xyz"},
	{`<a href="javascript:alert(1)">x</a>`, "x"},
	{`<a href="JaVaScRiPt:alert(1)">x</a>`, "x"},
	{"<a href=\"java\tscript:alert(1)\">x</a>", "x"},
	{"<a href=\"java\nscript:alert(1)\">x</a>", "x"},
	{"<a href=\"java\rscript:alert(1)\">x</a>", "x"},
	{"<a href=\"java\x00script:alert(1)\">x</a>", "x"},
	{"<a href=\"\x01javascript:alert(1)\">x</a>", "x"},
	{`<a href="java&#9;script:alert(1)">x</a>`, "x"},
	{`<a href="java&#x0A;script:alert(1)">x</a>`, "x"},
	{`<a href="&#106;avascript&colon;alert(1)">x</a>`, "x"},
	{`<a href="&Tab;javascript:alert(1)">x</a>`, "x"},
	{`<a href="javascript&#58;//https://a.example/%0aalert(1)">x</a>`, "x"},
	{"<a href=\"http\n://a.example\">x</a>", "x"},
	{`<a href="data:text/html;base64,PHNjcmlwdD4=">x</a>`, "x"},
	{`<a href="vbscript:x">x</a><a href="file:///etc/passwd">y</a><a href="blob:https://a.example/1">z</a>`, "xyz"},
	{`<a href="javascript:1" href="https://a.example">x</a>`, "x"},
	{`<a href="https://a.example" href="javascript:1">x</a>`, `<a href="https://a.example" ` + link + `>x</a>`},
	{`<a href="https://a.example" onclick=alert(1)>x<a href="javascript:1">y</a>z</a>`, `<a href="https://a.example" ` + link + `>x</a>yz`},
	{`<a href="javascript:1">x<a href="https://a.example">y</a>z</a>`, `x<a href="https://a.example" ` + link + `>y</a>z`},
	{`</a>x`, "x"},

	// Unclosed, and what parsers turn into something else.
	{"<p><em>x", "<p><em>x"},
	{"<p x='", ""},
	{"<p title='</p><script>alert(1)</script>'>x</p>", "<p>x</p>"},
	{"<p <script>alert(1)</script>x", "<p>alert(1)x"},
	{"<<script>alert(1)//<</script>", "&lt;"},
	{`<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">`, "<table>"},
	{"<svg></p><style><a id=\"</style><img src=1 onerror=alert(1)>\">", "</p>&#34;&gt;"},
	{"<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>", ""},
	{"<noembed><p x='</noembed><img src=x onerror=alert(1)>'></p>", "&#39;&gt;</p>"},
	{"<table><td><script>alert(1)</script><tr><a href=javascript:1>x</table>", "<table><td><tr>x</table>"},
	{"<select><option><style></option></select><img src=x onerror=alert(1)></style>", ""},
	{"<x:script xmlns:x='http://www.w3.org/1999/xhtml'>alert(1)</x:script>", "alert(1)"},
	{"<ſcript>alert(1)</ſcript><\u212aode>k", "&lt;ſcript&gt;alert(1)&lt;\u212aode&gt;k"},
}

func TestSanitize(t *testing.T) {
	for _, tt := range sanitized {
		if got := transcript.Sanitize(tt.in, false); got != tt.want {
			t.Errorf("Sanitize(%q)\n got %q\nwant %q", tt.in, got, tt.want)
		}
		checkSanitized(t, tt.in)
	}
}

func TestSanitizeClasses(t *testing.T) {
	const in = `<span class="nx">a</span><span class="too long">b</span><span class="K1">c</span><span class="1k">d</span><span class="abcde">e</span><span class="k1" onclick=1>f</span><p class="nx">g</p>`
	for classes, want := range map[bool]string{
		true:  `<span class="nx">a</span><span>b</span><span>c</span><span>d</span><span>e</span><span class="k1">f</span><p>g</p>`,
		false: "abcdef<p>g</p>",
	} {
		if got := transcript.Sanitize(in, classes); got != want {
			t.Errorf("with classes %t\n got %q\nwant %q", classes, got, want)
		}
	}
}

// TestFragmentIsWhatTheReferenceLeaves compares byte by byte, for what Markdown gives.
func TestFragmentIsWhatTheReferenceLeaves(t *testing.T) {
	sources := append([]string{
		"# One\n\n## Two *em* **strong** ~~del~~ `code`\n\n1. a\n2. b\n\n7. c\n\n- x\n- [ ] task\n- [x] done\n\n> quote\n\n---\n",
		"| a | b |\n|:--|--:|\n| 1 | [l](https://a.example/?q=\"x\"&y='z') |\n",
		"[m](mailto:a@b.example) <https://a.example/ü?a=b&c=d> [rel](other.md) ![img](https://a.example/x.png \"t\")\\\nbroken",
		"```go\nfunc main() { println(\"<&>'\") }\n```\n\n    indented <b>\n\n&copy; &amp; &#0; \"quotes\" 'single'",
	}, hostile...)
	for _, source := range sources {
		spans := func(_, code string) string { return `<span class="k">` + html.EscapeString(code) + `</span>` }
		if got, want := transcript.Fragment(source, spans), referencePolicy(true).Sanitize(transcript.Unsanitized(source, spans)); got != want {
			t.Errorf("of %.200q is left\n%.400q, the reference leaves\n%.400q", source, got, want)
		}
	}
}

func FuzzSanitize(f *testing.F) {
	for _, tt := range sanitized {
		f.Add(tt.in)
	}
	f.Fuzz(checkSanitized)
}
